"""What all tests share: how Hypothesis runs, and the command line in this process."""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from command_line import Say
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from agentkit import formats
from agentkit.cli import main

NAMES = frozenset(formats.names())

# No deadline: the machine is shared, and one slow example says nothing about the code. The suite draws the same 12
# examples of each property every time; a manual soak draws new ones, as many as it asks for.
EXAMPLES = int(os.environ.get("AGENTKIT_EXAMPLES", "0"))
settings.register_profile(
    "soak", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=max(EXAMPLES, 100)
)
settings.register_profile("suite", settings.get_profile("soak"), derandomize=True, database=None, max_examples=12)
SOAK = "AGENTKIT_EXAMPLES" in os.environ and not os.environ.get("CI")
settings.load_profile("soak" if SOAK else "suite")

if not SOAK:
    # Hypothesis also draws constants of the modules that are imported by then: they depend on which tests ran before
    # in the same process, and change with any line of the package. There is no setting for it.
    NO_CONSTANTS = providers.Constants()
    providers._get_local_constants = lambda: NO_CONSTANTS

os.environ["HF_HUB_OFFLINE"] = "1"  # tests need no network; Hugging Face's libraries read it when they are imported
_SETTINGS = tempfile.TemporaryDirectory(prefix="agentkit-settings-")  # not those of who runs the tests
atexit.register(_SETTINGS.cleanup)
os.environ["XDG_CONFIG_HOME"] = _SETTINGS.name
# For the same reason one authority will do: to load those of the world takes 70 ms of CPU, for each HTTP client.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "support" / "authority.pem")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The heap of thirty thousand tests takes half a second to search for garbage: that is done once, not again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Iterator[object]:
    """A report may quote a lone surrogate, which could not be sent to the process that prints it."""
    return encodable((yield))


def encodable(value: Any) -> Any:
    match value:
        case str() if not value.isascii():
            return value.encode("utf-8", "backslashreplace").decode("utf-8")
        case dict():
            return {encodable(key): encodable(one) for key, one in value.items()}
        case list() | tuple():
            return type(value)(map(encodable, value))
    return value


_OVER: Counter[str] = Counter()


def pytest_runtest_logfinish(nodeid: str) -> None:
    """What tests leave for good, as modules and compiled patterns, is set aside: each collection would search it."""
    _OVER["tests"] += 1
    if not _OVER["tests"] % 400:
        gc.collect()
        gc.freeze()


MANY = 12  # formats
ONE_OF = 24  # of so many cases that differ in nothing but the format


def _but_for_the_format(item: pytest.Item) -> str:
    """What names a case, without its format; a case without one is alone."""
    case = getattr(item, "callspec", None)
    names = {key: getattr(value, "name", value) for key, value in case.params.items()} if case is not None else {}
    named = next((key for key, name in names.items() if isinstance(name, str) and name in NAMES), None)
    if case is None or named is None:
        return item.nodeid
    plain = {key: value for key, value in case.params.items() if isinstance(value, str | int | None)}
    others = {key: plain.get(key, at) for key, at in case.indices.items() if key != named}  # as in every process
    return f"{item.nodeid.partition('[')[0]} {others}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the cases of a test that is marked `share(n)`, all but one of n are for the soak.

    Of those that differ in nothing but the format, if they are many, one of 24 stays, or one if they are fewer;
    `share(1)` takes all. Which ones depends on the test's name alone: each format, say, is in the suite with some of
    the tests, and with the same ones on every Python. A short soak, of fewer than 100 examples, takes one more of n.
    """
    short = 0 < EXAMPLES < 100
    tests = [item.nodeid.partition("[")[0] for item in items]
    groups = [*map(_but_for_the_format, items)]
    alike, cases = Counter(groups), Counter(tests)
    places: Counter[str] = Counter()
    left_out: list[pytest.Item] = []
    for item, group, test in zip(items, groups, tests, strict=True):
        mark, name = item.get_closest_marker("share"), test
        every = min(mark.args[0], cases[test]) if mark is not None else 1  # one at least
        if mark is None and alike[group] >= MANY:
            every, name = min(ONE_OF, alike[group]), group
        if every > 1:
            place = (places[name] + crc32(name.encode())) % every
            places[name] += 1
            if place:
                item.add_marker(pytest.mark.soak)
            if place > 1 and short:
                left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Say:
    """Run one command in this process: its status, what it printed, what it complained of."""

    def run(*words: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        monkeypatch.setattr(sys, "path", list(sys.path))
        status = main(words)
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run
