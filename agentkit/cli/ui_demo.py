"""The agent of `agentkit ui --demo`: real tools in one folder, and a script in place of a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from agentkit.agent import Agent
    from agentkit.events import SourceEvent
    from agentkit.messages import ToolCall
    from agentkit.models import ModelRequest

NAME: Final = "demo"
"""The name of the model."""

PROMPT: Final = "Write a greeting in Python, and its README. Then make it French, and show me the file."
"""A message to begin with."""

_PAUSE: Final = 0.015
"""Seconds between two pieces of a reply: about as fast as a small model on a laptop."""
_PIECE: Final = 5
"""Characters of a piece."""

_CODE: Final = '''\
def greet(name: str) -> str:
    """Return a greeting."""
    return f"Hello, {name}!"


print(greet("agentkit"))
'''

_END: Final = """\
{outcome}

| step | tool | needs approval |
|---|---|---|
| 1 | `create_file`, twice | yes |
| 2 | `str_replace` | yes |
| 3 | `read_file` | no |

This model is a **script**, whatever you write to it. The tools, the files and the approvals are real. Try this:

- Write again, deny a call with a reason, or edit its arguments first.
- Choose another format in the header, such as `xml` or `hermes`, and look at a call as the model wrote it.
- Reload the page while a call waits, or end the server and start it again with `{again}`: the call still waits.

With a model of your own:

```sh
agentkit ui --model openai:gpt-5 --tools agentkit_tools.files:Files
```
"""


class DemoModel:
    """A model that follows the script of the demonstration, as slowly as a real one.

    Args:
        folder: of the files.
        again: the command that returns to the threads later.
        format: the text format in which it writes calls; None for native calls.
    """

    def __init__(self, folder: Path, again: str, format: str | None = None) -> None:
        from agentkit.testing import ScriptedModel

        self._folder, self._again = folder, again
        self._model = ScriptedModel(self._turn, name=NAME, format=format, chunk=_PIECE)

    @property
    def name(self) -> str:
        """The model's name."""
        return NAME

    @property
    def format(self) -> Any:
        """The text format in which it writes calls; None for native calls."""
        return self._model.format

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        """Play the next turn of the script."""
        async for event in self._model.stream(request):
            await asyncio.sleep(_PAUSE)
            yield event

    def _turn(self, request: ModelRequest) -> Any:
        from agentkit.events import Thinking, Usage
        from agentkit.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage

        since = list(_since_question(request.messages, UserMessage))
        turns = sum(isinstance(message, AssistantMessage) for message in since)
        failed = [message for message in since if isinstance(message, ToolMessage) and message.error]
        written = [call for message in since if isinstance(message, AssistantMessage) for call in message.calls]
        spent = Usage(input_tokens=900 + 300 * turns, output_tokens=120)
        if failed or turns > 2:
            done = f"Done: {_target(written)} greets in French."
            outcome = "Not all of it was done, as you can see above." if failed else done
            return [_END.format(outcome=outcome, again=self._again), spent]
        if turns == 0:
            name = next(self._free())
            readme = f"# {name}\n\n`greet(name)` returns a greeting.\n"
            return [
                Thinking("Two files are needed: the program, and a short README that says how to use it."),
                "I'll write both files first.\n\n",
                ToolCall("", "create_file", {"file_path": f"{name}.py", "file_contents": _CODE}),
                ToolCall("", "create_file", {"file_path": f"{name}.md", "file_contents": readme}),
                spent,
            ]
        path = _target(written)
        if turns == 1:
            change = {"file_path": path, "old_str": 'f"Hello, {name}!"', "new_str": 'f"Bonjour, {name} !"'}
            return ["Now the greeting in French.\n\n", ToolCall("", "str_replace", change), spent]
        return [ToolCall("", "read_file", {"file_path": path}), spent]

    def _free(self) -> Iterator[str]:
        """Names without a file."""
        names = ("hello", *(f"hello_{n}" for n in range(2, 10_000)))
        return (name for name in names if not (self._folder / f"{name}.py").exists())


def _since_question(messages: Any, question: type) -> Iterator[Any]:
    """The messages after the last one of the user."""
    last = max(n for n, message in enumerate(messages) if isinstance(message, question))
    return iter(messages[last + 1 :])


def _target(calls: list[ToolCall]) -> str:
    """The file of the first call."""
    return str(calls[0].arguments.get("file_path", "hello.py")) if calls else "hello.py"


def demo_agent(folder: Path, again: str) -> Agent:
    """Return the agent.

    Args:
        folder: where its tools work; created if missing.
        again: the command that returns to the threads later.
    """
    from agentkit.agent import Agent
    from agentkit.tool.registry import ToolRegistry
    from agentkit_tools.files import Files

    files, registry = Files(folder), ToolRegistry()
    for method in (files.create_file, files.str_replace, files.read_file):
        registry.register_function(method, requires_approval=method != files.read_file)
    return Agent(DemoModel(folder, again), registry, name=NAME)
