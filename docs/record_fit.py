"""The session in docs/fit.md, recorded from the real command line in a real terminal.

python docs/record_fit.py          print the recording
python docs/record_fit.py --write  put it into the page

The model's replies were composed, and come from a server on this machine: in each mode it does as many tasks as `CAN`
says. Everything else is real. Seconds are replaced, so that the recording is the same each time.
"""

from __future__ import annotations

import json
import re
import sys
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from recording import END, Recorder, response
from replay_server import Asked, Recorded, ReplayServer  # found by the import before it

from agentkit.fit.plain_tasks import TASKS, FitTask, Storeroom
from agentkit.formats import render_calls
from agentkit.messages import ToolCall
from agentkit.models.constraint import ODD
from agentkit.tool import ToolRegistry

PAGE: Final = Path(__file__).parent / "fit.md"
COMMAND: Final = (
    "agentkit fit --model openai:qwen2.5-1.5b --base-url $OPENAI_BASE_URL --server llamacpp --modes native,xml,xml+c"
)
CAN: Final = {"native": 3, "xml": 10, "xml+c": 11}
"""How many of the tasks the model does in each mode: the first ones."""
TOKENS: Final = {"native": (620, 31), "xml": (781, 42), "xml+c": (781, 40)}
SPECS: Final = ToolRegistry(Storeroom()).specs()
_IDS = count(1)


class Solver(ReplayServer):
    """Answers like a model that can do some of the tasks."""

    def _next(self, asked: Asked) -> Recorded:
        said = [message for message in asked.body["messages"] if message["role"] == "user"]
        task = next((task for task in TASKS if task.prompt == _text(said[0])), None)
        if task is None:
            return Recorded(_word())
        return Recorded(_turn(task, _mode(asked.body), asked.body["messages"]))


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _word() -> bytes:
    """What shows that a grammar is enforced, not streamed."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ODD}}
    return json.dumps({"id": "c", "object": "chat.completion", "model": "composed", "choices": [choice]}).encode()


def _mode(body: dict[str, Any]) -> str:
    if body.get("tools"):
        return "native"
    system = _text(body["messages"][0])
    assert "<find-part>" in system
    return "xml+c" if "grammar" in body else "xml"


def _turn(task: FitTask, mode: str, messages: list[dict[str, Any]]) -> bytes:
    step = sum(message["role"] == "assistant" for message in messages)
    if task not in TASKS[: CAN[mode]]:
        return response("I cannot do that.", tokens=TOKENS[mode])
    if step >= len(task.calls):
        return response(" ".join(task.says).replace(r"\b", ""), tokens=TOKENS[mode])
    name, arguments = task.calls[step]
    if mode == "native":
        return response("", (f"call_{next(_IDS)}", name, dict(arguments)), tokens=TOKENS[mode])
    return response(render_calls(mode.removesuffix("+c"), [ToolCall("", name, arguments)], SPECS), tokens=TOKENS[mode])


def recording() -> str:
    """Play the session; returns the screen contents, with seconds and the server's address replaced."""
    with TemporaryDirectory() as name, Solver([]) as server:
        recorder = Recorder(Path(name), server.url)
        recorder.run(COMMAND)
    text = recorder.recording.replace("$OPENAI_BASE_URL", "http://localhost:8000/v1")
    return re.sub(r"(?m)(^\S+ +\d+ of \d+ .*\d)( +[\d.]+)$", lambda found: found[1] + "1.0".rjust(len(found[2])), text)


if __name__ == "__main__":
    start = f"<!-- recording: python docs/{Path(sys.argv[0]).name} --write -->\n"
    new = f'{start}\n```text title="recording"\n{recording().rstrip()}\n```\n\n{END}'
    if "--write" not in sys.argv[1:]:
        sys.stdout.write(new)
    else:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(start)
        PAGE.write_text(f"{before}{new}{rest.partition(END)[2]}", encoding="utf-8")
