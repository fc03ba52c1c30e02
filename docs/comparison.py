"""The table of "Why agentkit": the same nine situations in three toolkits, each run, no model and no network.

python docs/comparison.py            print the table (needs openai-agents and pydantic-ai-slim)
python docs/comparison.py --write    put it into the page, and five rows into the README and the landing page
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import agents
import pydantic_ai
from agents.testing import ScriptedModel as AgentsModel
from agents.testing import assistant_message, function_call
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from typing_extensions import override

import agentkit
from agentkit.errors import DISTRIBUTION
from agentkit.messages import ToolMessage
from agentkit.testing import Replay

DOCS: Final = Path(__file__).parent
PAGE: Final = DOCS / "why.md"
START: Final = "<!-- comparison: python docs/comparison.py --write -->\n"
END: Final = "<!-- end of comparison -->\n"
LENGTH: Final = 110
"""Characters of an answer that a cell shows."""

Call = tuple[str, str]
"""A tool's name, and its arguments as JSON."""


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def fail(a: int) -> int:
    """Fail."""
    raise ValueError(f"there is no order {a}")


def stale(path: str) -> str:  # noqa: D417 - what the row is about
    """Read.

    Args:
        file: the file
    """
    return path


def untyped(path):  # noqa: ANN001, ANN201 - what the row is about
    """Read."""
    return path


class Notes:
    """A class with a method that is to be a tool."""

    def save(self, text: str) -> str:
        """Save a note."""
        return f"saved {text}"


class Toolkit:
    """What a situation needs of a toolkit: its tools from functions, and a run with a scripted model."""

    name: str

    def tool(self, function: Callable[..., Any]) -> Any:
        """A function as a tool, in the toolkit's ordinary way."""
        raise NotImplementedError

    def run(self, tools: Sequence[Any], calls: Sequence[Call], text: str = "") -> str:
        """What the model reads in answer to its calls, or the last text if it called nothing."""
        raise NotImplementedError

    def parameters(self, tool: Any) -> list[str]:
        """The parameters of a tool that a model sees."""
        raise NotImplementedError


class Agentkit(Toolkit):
    """agentkit itself."""

    name = f"agentkit {version(DISTRIBUTION)}"

    @override
    def tool(self, function: Callable[..., Any]) -> Any:
        return function

    @override
    def parameters(self, tool: Any) -> list[str]:
        class Kept:
            save = agentkit.openapi_schema(tool)

        schema = agentkit.ToolRegistry(Kept()).get_openapi_schemas()[0]
        return list(schema["function"]["parameters"]["properties"])

    @override
    def run(self, tools: Sequence[Any], calls: Sequence[Call], text: str = "") -> str:
        message = {"content": text or None, "tool_calls": [_wire(*call) for call in calls]}
        server = Replay([{"choices": [{"message": message}]}, {"choices": [{"message": {"content": "Done."}}]}])
        result = agentkit.Agent(server.model("openai:gpt-5"), list(tools)).run_sync("Go.")
        answers = [m.text for m in result.messages if isinstance(m, ToolMessage)]
        return "\n".join(answers) or _said(result.text)


def _wire(name: str, arguments: str) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}


class OpenAIAgents(Toolkit):
    """OpenAI's Agents SDK."""

    name = f"openai-agents {version('openai-agents')}"

    @override
    def tool(self, function: Callable[..., Any]) -> Any:
        return agents.function_tool(function)

    @override
    def parameters(self, tool: Any) -> list[str]:
        return list(tool.params_json_schema["properties"])

    @override
    def run(self, tools: Sequence[Any], calls: Sequence[Call], text: str = "") -> str:
        first = [*([assistant_message(text)] if text else []), *(function_call(*c, call_id="c1") for c in calls)]
        agent = agents.Agent(name="a", tools=list(tools), model=AgentsModel([first, [assistant_message("Done.")]]))
        result = agents.Runner.run_sync(agent, "Go.")
        answers = [i["output"] for i in result.to_input_list() if i.get("type") == "function_call_output"]
        return "\n".join(answers) or _said(result.final_output)


class PydanticAI(Toolkit):
    """Pydantic AI."""

    name = f"pydantic-ai {version('pydantic-ai-slim')}"

    @override
    def tool(self, function: Callable[..., Any]) -> Any:
        return pydantic_ai.Tool(function)

    @override
    def parameters(self, tool: Any) -> list[str]:
        return list(tool.function_schema.json_schema["properties"])

    @override
    def run(self, tools: Sequence[Any], calls: Sequence[Call], text: str = "") -> str:
        parts = [*([TextPart(text)] if text else []), *(ToolCallPart(*call, tool_call_id="c1") for call in calls)]
        script = iter([ModelResponse(parts), ModelResponse([TextPart("Done.")])])
        agent = pydantic_ai.Agent(FunctionModel(lambda *_: next(script)), tools=list(tools))
        result = agent.run_sync("Go.")
        parts_read = [
            p for m in result.all_messages() for p in m.parts if p.part_kind in ("tool-return", "retry-prompt")
        ]
        answers = [str(p.content) if isinstance(p, ToolReturnPart) else p.model_response() for p in parts_read]
        return "\n".join(answers) or _said(result.output)


def _said(text: str) -> str:
    return f"nothing runs; the user reads {text!r}"


HERMES: Final = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
ADD: Final = '{"a": 1, "b": 2}'

Situation = Callable[[Toolkit], str]


def _reads(*tools: Callable[..., Any], call: Call) -> Situation:
    return lambda kit: f"the model reads: {shown(kit.run([kit.tool(tool) for tool in tools], [call]))}"


def _defines(*tools: Callable[..., Any]) -> Situation:
    def accepted(kit: Toolkit) -> str:
        kit.run([kit.tool(tool) for tool in tools], [], "ok")
        return "accepted"

    return accepted


def _decorated(kit: Toolkit) -> str:
    return f"a tool with {' and '.join(f'`{name}`' for name in kit.parameters(kit.tool(Notes.save)))}"


def _in_text(kit: Toolkit) -> str:
    return "it runs" if kit.run([kit.tool(add)], [], HERMES) == "3" else "it does not run; the user reads the markup"


SITUATIONS: Final[dict[str, Situation]] = {
    "a model writes `<tool_call>…` instead of calling natively": _in_text,
    "the decorator is above a method, `save(self, text)`": _decorated,
    'an argument has the wrong type: `"one"` for an `int`': _reads(add, call=("add", '{"a": "one", "b": 2}')),
    "the arguments are damaged JSON": _reads(add, call=("add", '{"a": 1, "b"')),
    "the model calls a tool that does not exist": _reads(add, call=("sum", ADD)),
    "a tool raises an exception": _reads(fail, call=("fail", '{"a": 17}')),
    "the docstring describes a parameter that does not exist": _defines(stale),
    "a parameter has no type": _defines(untyped),
    "two tools have the same name": _defines(add, add),
}
"""Each row, and what happens in it."""


FIRST: Final = ("a model writes", "the decorator is", "the model calls", "a tool raises", "two tools")
"""How the rows begin that the README and the landing page also show."""
FIRST_PAGES: Final = (DOCS.parent / "README.md", DOCS / "index.md")


def shown(text: str) -> str:
    """What a model reads, as code in a cell."""
    line = " ".join(text.split()).replace("|", "\\|")
    return f"`{line if len(line) <= LENGTH else line[: LENGTH - 1] + '…'}`"


def cell(kit: Toolkit, situation: Situation) -> str:
    """What happens; an exception is also an answer."""
    try:
        return situation(kit)
    except Exception as error:  # noqa: BLE001 - whatever it is, the row shows it
        return f"the program gets `{type(error).__name__}`"


def table() -> str:
    """All situations in all toolkits."""
    logging.disable(logging.CRITICAL)  # of the tool that fails
    agents.set_tracing_disabled(True)
    kits = (Agentkit(), OpenAIAgents(), PydanticAI())
    rows = [("what happens if …", *(kit.name for kit in kits)), ("---",) * (len(kits) + 1)]
    rows += [(what, *(cell(kit, situation) for kit in kits)) for what, situation in SITUATIONS.items()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def first_rows(rows: str) -> str:
    """The rows of the table for the first screen, with the head."""
    head, line, *others = rows.splitlines(keepends=True)
    return "".join([head, line, *(row for row in others if row.startswith(tuple(f"| {words}" for words in FIRST)))])


def write(page: Path, rows: str) -> None:
    """Put the rows between the marks in a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{START}\n{rows}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Print the table, or put it into the page, and its first rows into two others."""
    rows = table()
    if "--write" not in sys.argv[1:]:
        sys.stdout.write(rows)
        return
    write(PAGE, rows)
    for page in FIRST_PAGES:
        write(page, first_rows(rows))


if __name__ == "__main__":
    main()
