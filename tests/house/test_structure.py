"""The house plan as tests: who imports whom, what `import agentkit` loads, what the wheel holds."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "agentkit"

VALUES = {"foreign", "errors", "messages", "events", "toolspec", "checks"}
PURE = VALUES | {"schemas", "formats"}
RUNTIME = {"models", "processor", "agent", "threads", "telemetry", "testing"}

MAY_IMPORT: dict[str, set[str]] = {
    # values
    "toolspec": set(),
    "foreign": {"checks"},  # only when something is missing: `absent_imports` then looks for what was meant
    "errors": {"checks", "foreign"},  # `checks.unicode`, which imports nothing
    "checks": {"errors", "foreign"},
    "messages": {"errors", "foreign", "checks"},
    "events": {"errors", "messages", "foreign", "checks"},
    # pure and sync
    "schemas": VALUES,
    "formats": VALUES | {"schemas"},
    "grammar": VALUES | {"schemas", "formats"},
    "tool": VALUES | {"schemas", "formats"},
    # runtime: a model adapter reaches no tool and no registry, the processor reaches no model
    "models": PURE | {"grammar"},  # calls as text are held to the grammar of their format
    "processor": PURE | {"tool"},
    "agent": PURE | {"tool", "models", "processor"},
    "threads": PURE | {"tool", "models", "processor", "agent"},
    "rollout": PURE | {"tool", "models", "processor", "agent"},
    "fit": PURE | {"tool", "models", "agent", "__init__"},  # as any program of a user's
    "sandbox": VALUES,
    "telemetry": VALUES | {"models", "agent", "__init__"},
    "testing": PURE | RUNTIME | {"tool"},
    # drivers
    "cli": PURE | RUNTIME | {"tool", "interop", "rollout", "fit", "gateway", "__init__"},
    "interop": PURE | RUNTIME | {"tool", "rollout", "grammar", "__init__"},  # a server is given the grammars of calls
    "gateway": PURE | RUNTIME | {"tool", "fit", "__init__"},
}
"""Room by room, the rooms that it may import; a new room gets its own line. Every room may import itself."""

ROLLOUT = {
    "policy": set[str](),
    "samples": set[str](),
    "records": set[str](),
    "tools": {"samples", "records"},
    "tokens": {"policy", "records"},
    "loop": {"policy", "samples", "records", "tools", "tokens"},
    "distributed": {"samples", "records", "tools"},
    "report": {"records"},
}
"""The rooms of `rollout/` and those of them that each may import; "loop" are the files beside them."""

ONLY_FOR_TYPES = {("events", "tool"), ("events", "agent"), ("rollout", "interop")}
"""Upward, yet only under TYPE_CHECKING: an event carries a result that it never looks into; the events' JSON, and
rollouts' public names of verl and open-instruct, are loaded from those rooms on first use."""

HEAVY = (
    "openai",
    "anthropic",
    "lxml",
    "jsonschema",
    "httpx",
    "httpx2",
    "pydantic",
    "docstring_parser",
    "mcp",
    "pydantic_monty",
    "ray",
    "pyarrow",
    "omegaconf",
    "transformers",
    "torch",
    "matplotlib",
    "jinja2",
    "rich",
    "prompt_toolkit",
    "pygments",
    "markdown_it",
    "aiohttp",
    "uvicorn",
    "starlette",
    "yaml",
)


def imports(tree: ast.AST, typing: bool = False) -> Iterator[tuple[str, bool]]:
    """Each imported dotted name of a module, and whether only type checkers see it."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, typing) for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from ((f"{module}.{alias.name}", typing) for alias in names)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                for child in node.body:
                    yield from imports(ast.Module([child], []), typing=True)
            case ast.expr():
                pass
            case _:
                yield from imports(node, typing)


def room(path: Path) -> str:
    """The room of a file of the package: its first folder, or its own name."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@cache
def imported(file: Path) -> list[tuple[str, bool]]:
    return list(imports(parsed(file)))


FILES = sorted(PACKAGE.rglob("*.py"))
TOOLS = sorted((ROOT / "tools").rglob("*.py"))


def test_no_two_files_import_each_other() -> None:
    """Also not in a circle of more, nor inside functions, nor by a name that a package loads on first use."""
    files = {".".join(["agentkit", *f.relative_to(PACKAGE).with_suffix("").parts]): f for f in FILES}
    homes = {
        f"{name.removesuffix('.__init__')}.{dotted.rpartition('.')[2]}": dotted
        for name, file in files.items()
        for dotted, typing in imported(file)
        if typing and name.endswith(".__init__")
    }
    graph: dict[str, set[str]] = {}
    for name, file in files.items():
        seen = {homes.get(dotted, dotted) for dotted, typing in imported(file) if not typing}
        graph[name] = {m for d in seen for m in (d, d.rpartition(".")[0]) if m in files and m != name}
    TopologicalSorter(graph).prepare()


def test_every_file_lives_in_a_room() -> None:
    assert {room(file) for file in FILES} - MAY_IMPORT.keys() <= {"__init__", "__main__"}


def test_at_most_24_entries_at_the_top() -> None:
    assert len({file.relative_to(PACKAGE).parts[0] for file in FILES}) <= 24


def test_no_file_name_twice() -> None:
    names = Counter(file.name for file in FILES if file.name not in ("__init__.py", "__main__.py"))
    assert [name for name, times in names.items() if times > 1] == []


def test_no_public_type_name_twice() -> None:
    """Classes and aliases of types, by where they are defined."""
    homes = Counter(name for file in FILES for name in set(type_names(parsed(file))))
    assert [name for name, times in homes.items() if times > 1] == []


def type_names(tree: ast.Module) -> Iterator[str]:
    """The public names at a module's top that are spelt as types are."""
    for node in tree.body:
        match node:
            case (
                ast.ClassDef(name=name)
                | ast.Assign(targets=[ast.Name(id=name)])
                | ast.AnnAssign(target=ast.Name(id=name))
            ):
                if name[0].isupper() and not name.isupper():
                    yield name


LARGE_VALUES = {
    "ModelSettings",
    "ProcessorConfig",
    "MCPKeywords",
    "MCPOptions",
    "BoundTool",
    "CodeOutcome",
    "Measures",
    "Plan",
    "RunResult",
    "TrajectoryRecord",
}
"""Each field is an option of the user's, or a part of an outcome; nothing decides by all of them."""


def test_no_class_has_more_than_12_attributes() -> None:
    """Those that it sets on itself, and its fields: as many as a reader can hold."""
    files = (*FILES, *TOOLS)
    classes = [node for file in files for node in ast.walk(parsed(file)) if isinstance(node, ast.ClassDef)]
    known = {node.name: set(attributes(node)) for node in classes if node.name not in LARGE_VALUES}
    assert {name: sorted(of) for name, of in known.items() if len(of) > 12} == {}


def test_no_file_is_longer_than_450_lines() -> None:
    assert [str(file.relative_to(ROOT)) for file in (*FILES, *TOOLS) if len(file.read_text().splitlines()) > 450] == []


def attributes(known: ast.ClassDef) -> Iterator[str]:
    """The names of a class's fields, and of what its methods set on it; not what all of its objects share."""
    for field in known.body:
        match field:
            case ast.AnnAssign(target=ast.Name(id=name)) if "ClassVar" not in ast.unparse(field.annotation):
                yield name
    for node in ast.walk(known):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


def test_no_function_is_longer_than_60_lines() -> None:
    long = [
        (str(file.relative_to(PACKAGE)), node.name)
        for file in FILES
        for node in ast.walk(parsed(file))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (node.end_lineno or 0) - node.lineno >= 60
    ]
    assert long == []


def test_imports_point_downward() -> None:
    upward = [(str(file.relative_to(PACKAGE)), there) for file in FILES for there in upward_of(file)]
    assert upward == [], "see MAY_IMPORT"


def upward_of(file: Path) -> set[str]:
    """The rooms that a file imports and may not."""
    if (here := room(file)) not in MAY_IMPORT:
        return set()
    reached = {
        (there if (there := dotted.split(".")[1]) in MAY_IMPORT else "__init__", typing)
        for dotted, typing in imported(file)
        if dotted.startswith("agentkit.")
    }
    return {
        there
        for there, typing in reached
        if there not in MAY_IMPORT[here] | {here} and not (typing and (here, there) in ONLY_FOR_TYPES)
    }


def test_typed_values_know_schemas_and_no_schema_knows_typed_values() -> None:
    """Text becomes a value by its schema: nothing that a schema is needed for depends on how values are written."""
    typed = "agentkit.schemas.typed"
    files = (PACKAGE / "schemas").glob("*.py")
    assert [file.name for file in files for dotted, _ in imported(file) if dotted.startswith(typed)] == []


def rollout_room(dotted: str) -> str:
    """The room of a module of `agentkit.rollout`: the loop, if it is in no folder."""
    return there if (there := dotted.split(".")[2]) in ROLLOUT else "loop"


@pytest.mark.parametrize("here", ROLLOUT)
def test_the_rooms_of_rollouts_are_in_order(here: str) -> None:
    folder = PACKAGE / "rollout" / ("" if here == "loop" else here)
    reached = {
        rollout_room(dotted)
        for file in (folder.glob("[!_]*.py") if here == "loop" else folder.glob("*.py"))
        for dotted, typing in imported(file)
        if dotted.startswith("agentkit.rollout.") and not typing
    }
    assert reached <= ROLLOUT[here] | {here}


def test_every_public_name_of_rollouts_is_in_the_reference() -> None:
    """With its module, or alone."""
    import agentkit.rollout as room

    listed = re.findall(
        r"^::: (\S+)", (ROOT / "docs" / "reference" / "rollouts" / "index.md").read_text(), re.MULTILINE
    )
    homes = {f"{getattr(room, name).__module__}.{name}" for name in room.__all__}
    assert sorted(home for home in homes if not {home, home.rpartition(".")[0]} & set(listed)) == []


def test_every_folder_of_rollouts_is_a_room() -> None:
    assert {folder.parent.name for folder in (PACKAGE / "rollout").glob("*/__init__.py")} == ROLLOUT.keys() - {"loop"}


@pytest.mark.parametrize(
    "file", sorted([*ROOT.glob("tools/**/*.py"), *ROOT.glob("examples/*.py")]), ids=lambda f: f.name
)
def test_ready_made_tools_and_examples_use_the_public_api(file: Path) -> None:
    rooms = ("", ".messages", ".events", ".errors", ".models", ".testing", ".sandbox", ".rollout", ".interop.mcp")
    rooms += (".agent", ".gateway.events", ".interop.verl", ".interop.open_instruct")
    public = {f"agentkit{room}" for room in rooms}
    modules = {
        node.module
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "agentkit"
    }
    assert modules <= public


LIGHT = (
    *("agentkit", "agentkit.cli", "agentkit.sandbox"),
    *("agentkit_tools", "agentkit_tools.files", "agentkit_tools.web", "agentkit_tools.search"),
    *("agentkit.rollout", "agentkit.rollout.distributed", "agentkit.rollout.report"),
    *("agentkit.interop.verl.verl_config", "agentkit.interop.open_instruct.open_instruct_config"),
    *("agentkit.interop.open_instruct", "agentkit.interop.trl", "agentkit.interop.verifiers"),
    "agentkit.interop.langchain",
)


def test_import_is_light() -> None:
    """What all of them together do not load, none of them does."""
    assert heavy_after(f"import {', '.join(LIGHT)}") == []


def test_every_public_name_is_light() -> None:
    """Also once all that a package loads on first use is loaded."""
    packages = ("agent", "formats", "processor", "rollout", "testing", "threads", "tool")
    assert heavy_after("\n".join(f"from agentkit.{package} import *" for package in packages)) == []


def heavy_after(program: str) -> list[str]:
    """The heavy packages that a program has loaded."""
    script = f"import sys\n{program}\nprint(*sorted(set({HEAVY}) & sys.modules.keys()))"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()


def test_wheel_holds_two_typed_packages_and_nothing_else(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"agentkit", "agentkit_tools", "agentkit_calls-0.1.0.dist-info"}
    assert {"agentkit/py.typed", "agentkit_tools/py.typed"} <= set(names)
    assert "agentkit_calls-0.1.0.dist-info/licenses/LICENSE" in names
    page = sorted(file.relative_to(ROOT).as_posix() for file in (PACKAGE / "gateway" / "ui" / "static").iterdir())
    assert [name for name in names if name.startswith("agentkit/gateway/ui/static/")] == page


def test_the_folder_tools_is_no_package() -> None:
    assert not (ROOT / "tools" / "__init__.py").exists()


def test_the_version_is_said_once() -> None:
    import tomllib

    import agentkit

    assert agentkit.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
