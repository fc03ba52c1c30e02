"""What goes wrong in a tool's own code: the model is told, and so is its author, once, in the log."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentkit import Agent, FilePart, ImagePart, TextPart, ToolCall, ToolContext, ToolResult, openapi_schema
from agentkit.messages import ToolMessage
from agentkit.testing import ScriptedModel

TOOLS = "agentkit.processor.tools"


def told(tool: Any, calls: int = 1, **options: Any) -> str:
    """What the model reads of a tool that it calls so often in one turn."""
    says = ScriptedModel([[ToolCall("", tool.__name__) for _ in range(calls)], "done"])
    result = Agent(says, [tool]).run_sync("go", **options)
    assert (result.finish, result.text) == ("stop", "done")
    return next(m.text for m in result.messages if isinstance(m, ToolMessage))


def logged(caplog: pytest.LogCaptureFixture, level: int = logging.ERROR) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == TOOLS and record.levelno == level]


def look() -> str:
    """Look."""
    return {"a": "b"}["k"]


async def look_async() -> str:
    """Look."""
    return look()


@pytest.mark.parametrize("tool", [look, look_async])
def test_an_exception_is_logged_with_its_place_and_traceback(tool: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert told(tool) == "KeyError: 'k'"
    (record,) = logged(caplog)
    here, line = Path(__file__), look.__code__.co_firstlineno + 2
    assert (
        record.getMessage()
        == f"the tool {tool.__name__} raised KeyError: 'k', at {here}:{line}; the error was sent to the model"
    )
    assert (record.pathname, record.lineno) == (str(here), line)
    written = logging.Formatter().format(record)
    assert 'return {"a": "b"}["k"]' in written
    assert "agentkit/processor" not in written  # it begins where the tool does


def test_the_same_fault_is_told_once_in_each_run(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, TOOLS)
    told(look, calls=5)
    assert (len(logged(caplog)), len(logged(caplog, logging.DEBUG))) == (1, 4)
    told(look)
    assert len(logged(caplog)) == 2


def test_other_faults_of_the_same_tool_are_told(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[int] = []

    def look() -> None:
        seen.append(1)
        if len(seen) == 1:
            raise ValueError("first")
        raise ValueError("second")

    told(look, calls=2)
    assert [record.getMessage().partition(", at")[0] for record in logged(caplog)] == [
        "the tool look raised ValueError: first",
        "the tool look raised ValueError: second",
    ]


@pytest.mark.parametrize(
    ("decides", "fault"),
    [
        (lambda call, context: call.arguments["amout"] > 100, "raised KeyError: 'amout', at "),
        (lambda call, context: call.arguments["amount"], "returned 5, not True or False; "),
    ],
)
def test_what_is_wrong_with_the_function_that_decides_about_approval_is_logged(
    decides: Any, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    @openapi_schema(requires_approval=decides)
    def pay(amount: int) -> str:
        return "paid"

    assert Agent(ScriptedModel([ToolCall("", "pay", {"amount": 5})]), [pay]).run_sync("go").finish == "approval"
    (record,) = logged(caplog)
    assert f"pay, asked whether a call needs approval, {fault}" in record.getMessage()
    assert record.getMessage().endswith("; so the call needs approval")


def test_no_arguments_and_no_keys_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fetch(password: str) -> None:
        raise ValueError("Bearer abcdefghijkl was refused by https://ada:pw12345@x.org/v1?api_key=k7k7k7&q=tea")

    says = ScriptedModel([ToolCall("", "fetch", {"password": "hunter2"}), "done"])
    Agent(says, [fetch]).run_sync("go")
    (record,) = logged(caplog)
    raised, _, source = logging.Formatter().format(record).rpartition("raise ValueError(")
    assert "[key] was refused by https://[key]@x.org/v1?api_key=[key]&q=tea" in record.getMessage()
    for secret in ("abcdefghijkl", "pw12345", "k7k7k7", "hunter2"):
        assert secret not in raised + source


def test_a_long_fault_is_logged_at_once(caplog: pytest.LogCaptureFixture) -> None:
    def look() -> None:
        raise ValueError("?" + "key" * 1_000_000)

    told(look)
    (record,) = logged(caplog)
    assert len(record.getMessage()) < 1_000
    assert len(logging.Formatter().format(record)) < 12_000


def test_what_a_tool_says_as_a_result_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    def look() -> ToolResult:
        return ToolResult(error="no such file; write a path below the root")

    assert told(look) == "no such file; write a path below the root"
    assert logged(caplog) == []


def script(tmp_path: Path, setup: str) -> str:
    """The standard error of a program whose tool fails three times."""
    (tmp_path / "program.py").write_text(
        f"{setup}\n"
        "from agentkit import Agent, ToolCall\n"
        "from agentkit.testing import ScriptedModel\n"
        "def look() -> str:\n"
        "    return 1 / 0\n"
        "says = ScriptedModel([[ToolCall('', 'look')] * 3, 'done'])\n"
        "assert Agent(says, [look]).run_sync('go').text == 'done'\n"
    )
    ran = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    return ran.stderr


def test_a_program_without_logging_shows_one_line(tmp_path: Path) -> None:
    assert script(tmp_path, "") == (
        "the tool look raised ZeroDivisionError: division by zero, at "
        f"{tmp_path / 'program.py'}:5; the error was sent to the model\n"
    )


def test_a_program_that_logs_shows_the_traceback_once(tmp_path: Path) -> None:
    said = script(tmp_path, "import logging; logging.basicConfig()")
    assert said.startswith("ERROR:agentkit.processor.tools:the tool look raised ZeroDivisionError: ")
    assert said.count("Traceback") == 1


def test_a_program_can_switch_it_off(tmp_path: Path) -> None:
    assert script(tmp_path, f"import logging; logging.getLogger({TOOLS!r}).setLevel('CRITICAL')") == ""


# ---------------------------------------------------------------- what no model can read


async def fetch() -> str:
    """Fetch."""
    return "page"


NEVER: list[tuple[str, Callable[[], Any], str]] = [
    (
        "list",
        lambda: [fetch(), fetch()],
        "a coroutine at [0], which was not awaited: write `await fetch(…)`, or for several",
    ),
    ("dict", lambda: {"a": {"b": fetch()}}, "a coroutine at ['a']['b'], which was not awaited: write `await fetch(…)`"),
    ("parts", lambda: [TextPart("x"), fetch()], "a coroutine at [1], which was not awaited"),
    ("result", lambda: ToolResult({"a": fetch()}), "a coroutine at ['a'], which was not awaited"),
    ("map", lambda: {"rows": map(int, ["1"])}, "a map at ['rows'], not a value; return its result instead"),
    ("generator", lambda: (i for i in [1]), "a generator, not a value; return its result instead"),
    (
        "nested",
        lambda: ToolResult(ToolResult("x")),
        "a ToolResult inside another value: return it alone, or return its",
    ),
    ("results", lambda: [ToolResult("x"), ToolResult("y")], "a ToolResult inside another value at [0]: return it"),
]


@pytest.mark.parametrize(("value", "said"), [row[1:] for row in NEVER], ids=[row[0] for row in NEVER])
def test_what_is_still_to_be_waited_for_is_an_error(
    value: Callable[[], Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    def look() -> Any:
        return value()

    async def look_async() -> Any:
        return value()

    for tool in (look, look_async):
        assert told(tool).startswith(f"the tool returned {said}")
        assert logged(caplog)[-1].getMessage().startswith(f"the tool {tool.__name__} returned {said}")


@pytest.mark.parametrize(
    "value",
    [
        lambda: FilePart(b"%PDF-1.7"),
        lambda: [TextPart("x"), FilePart(b"%PDF-1.7")],
        lambda: ToolResult("x", content=(FilePart(b"%PDF-1.7"),)),
    ],
)
def test_a_tool_cannot_return_a_file(value: Callable[[], Any]) -> None:
    def look() -> Any:
        return value()

    assert told(look) == (
        "ConfigError: a result cannot contain a FilePart, only a user's message can: return its text, or images"
    )


def test_a_coroutine_alone_is_awaited() -> None:
    async def look() -> Any:
        return fetch()

    assert told(look) == "page"


def test_words_that_look_like_it_are_words() -> None:
    def look() -> list[str]:
        return ["(no value: 5"]

    assert told(look) == '["(no value: 5"]'


def test_a_wrong_image_is_told() -> None:
    def chart() -> ImagePart:
        return ImagePart(b"")

    assert told(chart) == (
        "ValueError: ImagePart(data=b'') is empty: for a file write ImagePart(Path('chart.png').read_bytes())"
    )


# ---------------------------------------------------------------- a context that was not given


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (
            lambda state: state.user,
            "AttributeError: this run has no context, but .user is read from it",
        ),
        (lambda state: state["user"], "KeyError: \"this run has no context, but ['user'] is read from it"),
    ],
)
def test_a_context_that_was_not_given(read: Callable[[Any], Any], said: str) -> None:
    @openapi_schema
    def look(context: ToolContext) -> str:
        return str(read(context.state))

    assert told(look).startswith(said)
    assert "agent.run('…', context=…)" in told(look)


def test_a_system_prompt_without_its_context() -> None:
    with pytest.raises(AttributeError, match=r"this run has no context, but \.language is read from it"):
        Agent(ScriptedModel(["hi"]), system=lambda context: context.language).run_sync("hi")


def test_no_context_is_an_empty_mapping() -> None:
    state = ToolContext("c", "look").state
    assert (state == {}, dict(state), state.get("user", "Ada"), "user" in state) == (True, {}, "Ada", False)
    assert not hasattr(state, "user")
