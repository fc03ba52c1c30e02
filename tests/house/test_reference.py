"""The reference: each public name is documented once, on a page of its own or with those that are read with it."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("agentkit", "agentkit.agent", "agentkit.errors", "agentkit.events", "agentkit.formats", "agentkit.interop.mcp"),
    *("agentkit.messages", "agentkit.models", "agentkit.processor", "agentkit.rollout", "agentkit.sandbox"),
    *("agentkit.telemetry", "agentkit.testing", "agentkit.threads", "agentkit.tool"),
)
APART = ("errors.install_command", "messages.answer_as_made", "messages.call_as_read", "messages.response_as_read")
APART += ("events.event", "errors.show_value", "messages.text_as_made")
"""What modules without a list of public names share with the rest of the package."""

NAMED = (type, FunctionType)


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_pages", ROOT / "docs" / "reference_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a dataclass looks for its annotations
    spec.loader.exec_module(module)
    return module


def object_of(name: str) -> object:
    """The module, class, function or value with a dotted name."""
    module, _, rest = name.rpartition(".")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return getattr(importlib.import_module(module), rest)


def own_names(module: ModuleType) -> list[str]:
    """The public classes and functions that a module defines or lists."""
    listed = getattr(module, "__all__", None)
    names = listed or [name for name in vars(module) if not name.startswith("_")]
    here = {name: getattr(module, name) for name in names}
    return [n for n, o in here.items() if isinstance(o, NAMED) and (listed or o.__module__ == module.__name__)]


def documented(name: str, options: str) -> Iterator[str]:
    """The names of the classes and functions that a directive documents, as where they are defined."""
    found = object_of(name)
    if members := re.search(r"members:((?: \[.+\])|(?:\n +- \w+)+)", options):
        inside = [getattr(found, member) for member in re.findall(r"\w+", members[1])]
    elif isinstance(found, ModuleType):
        inside = [getattr(found, own) for own in own_names(found)]
    else:
        inside = [found]
    for each in inside:
        if isinstance(each, NAMED):
            yield f"{each.__module__}.{each.__qualname__}"


def directives(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^::: (\S+)((?:\n {4}.*)*)$", text, re.MULTILINE)


def test_every_public_name_is_documented_once() -> None:
    texts = [page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "reference").rglob("*.md"))]
    times = Counter(name for text in texts for each in directives(text) for name in documented(*each))
    assert [name for name, count in times.items() if count > 1] == []
    modules = {module: importlib.import_module(module) for module in PACKAGES}
    public = {getattr(module, name) for module in modules.values() for name in own_names(module)}
    homes = {f"{each.__module__}.{each.__qualname__}" for each in public}
    assert sorted(homes - times.keys() - {f"agentkit.{name}" for name in APART}) == []


def test_every_directive_is_on_one_page(reference: ModuleType) -> None:
    paths = [path for path, _ in reference.places()]
    assert len({path.casefold() for path in paths}) == len(paths)
    for section, below in reference.sections().items():
        text = (ROOT / "docs" / section).read_text(encoding="utf-8")
        assert [each for page in below for each in page.directives] == directives(text)
