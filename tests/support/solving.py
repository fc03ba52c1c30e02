"""A scripted model that does the tasks of `agentkit.fit` as well as it is told to, in each calling mode."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import count

from agentkit.events import Usage
from agentkit.fit.plain_tasks import TASKS, FitTask
from agentkit.formats import render_calls
from agentkit.messages import AssistantMessage, SystemMessage, TextPart, ToolCall, UserMessage
from agentkit.models import ModelRequest
from agentkit.testing import ScriptedModel
from agentkit.tool import ToolRegistry

ALL = frozenset(task.name for task in TASKS)
FIRST = frozenset(task.name for task in TASKS[:4])
BY_PROMPT = {task.prompt: task for task in TASKS}
SIGNS = {"hermes": "<tool_call>", "invoke": "<invoke ", "xml": "## <find-part>"}
"""What the prompt of a format has and the others have not."""
_IDS = count()


def solving(can: Mapping[str, Collection[str]], tokens: Mapping[str, int] | None = None) -> ScriptedModel:
    """A model that does these tasks in these modes; what it cannot do it answers with a shrug.

    Args:
        can: the names of tasks, by the mode.
        tokens: of each request, by the mode.
    """

    def answer(request: ModelRequest) -> list[object]:
        mode = mode_of(request)
        used = Usage((tokens or {}).get(mode, 100), 10)
        said = [message for message in request.messages if isinstance(message, UserMessage)]
        task = BY_PROMPT.get("".join(part.text for part in said[0].content if isinstance(part, TextPart)))
        step = sum(isinstance(message, AssistantMessage) for message in request.messages)
        if task is None or task.name not in can.get(mode, ()):
            return ["Hm.", used]
        return [_next(task, step, mode), used]

    return ScriptedModel(answer, name="openai:solver")  # type: ignore[arg-type]  # lists of lines


def mode_of(request: ModelRequest) -> str:
    """The calling mode of a request."""
    if request.tools:
        return "native"
    system = "".join(str(message.content) for message in request.messages if isinstance(message, SystemMessage))
    return next(mode for mode, sign in SIGNS.items() if sign in system)


def _next(task: FitTask, step: int, mode: str) -> object:
    if step >= len(task.calls):
        return " ".join(task.says).replace(r"\b", "")
    name, arguments = task.calls[step]
    call = ToolCall("" if mode != "native" else f"call_{next(_IDS)}", name, arguments)
    return call if mode == "native" else render_calls(mode, [call], SPECS)


def _specs() -> tuple[object, ...]:
    from agentkit.fit.plain_tasks import Storeroom

    return ToolRegistry(Storeroom()).specs()


SPECS = _specs()
