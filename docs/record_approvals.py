"""The session in docs/terminal.md, recorded from the real command line in a real terminal.

python docs/record_approvals.py          print the recording
python docs/record_approvals.py --write  put it into the page

The model's responses were composed, in the wire format of OpenAI's chat completions, and come from a server on this
machine; everything else is real. Times are replaced, so that the recording is the same each time.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from replay_server import ReplayServer  # noqa: E402 - found by the line above
from terminal import Terminal  # noqa: E402

PAGE = Path(__file__).parent / "terminal.md"
START, END = "<!-- recording: python docs/record_approvals.py --write -->\n", "<!-- end of recording -->\n"
COLUMNS = 88
CHAT = "agentkit chat --thread notes --model openai:composed --tools notes:Notes"
TOOL = '''\
import asyncio
from pathlib import Path

from agentkit import openapi_schema


class Notes:
    """Notes in the current folder."""

    @openapi_schema(requires_approval=True)
    def delete_note(self, name: str) -> str:
        """Delete a note."""
        Path(name).unlink()
        return f"deleted {name}"

    @openapi_schema(requires_approval=True)
    def write_note(self, name: str, text: str) -> str:
        """Write a note."""
        Path(name).write_text(text)
        return f"wrote {name}"

    @openapi_schema
    async def back_up(self) -> str:
        """Copy all notes to the tape."""
        Path("tape").touch()
        await asyncio.sleep(3600)
        return "copied"
'''


def response(text: str, *calls: tuple[str, str, dict[str, Any]], tokens: tuple[int, int]) -> bytes:
    """One streamed response: text, then calls as `(id, name, arguments)`, then the tokens in and out."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": text}] if text else []
    for index, (id, name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        deltas.append({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]})
    choices: list[list[dict[str, Any]]] = [[{"index": 0, "delta": d, "finish_reason": None}] for d in deltas]
    choices.append([{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}])
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    chunk = {"id": "c", "object": "chat.completion.chunk", "model": "composed"}
    events = [json.dumps({**chunk, "choices": c}) for c in choices]
    events.append(json.dumps({**chunk, "choices": [], "usage": usage}))
    return "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode()


RESPONSES = [
    response(
        "Both at once:",
        ("call_1", "delete_note", {"name": "old.txt"}),
        ("call_2", "delete_note", {"name": "plan.txt"}),
        tokens=(212, 41),
    ),
    response(
        "Then I leave plan.txt and list what is left.",
        ("call_3", "write_note", {"name": "/etc/motd", "text": "Notes:\n- plan.txt\n- todo.txt\n"}),
        tokens=(301, 38),
    ),
    response("old.txt is gone, plan.txt stays, and the list is in index.txt.", tokens=(377, 19)),
    response("", ("call_4", "back_up", {}), tokens=(402, 9)),
    response("", ("call_5", "delete_note", {"name": "todo.txt"}), tokens=(431, 12)),
    response("todo.txt is deleted.", tokens=(466, 7)),
]


class Recorder:
    """Runs commands one after another in a folder, and records the screen."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.screen = ""
        self._environment = {
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": "none",
            "LOGNAME": "ada",
            "PYTHONPATH": f"{ROOT}:{ROOT / 'tools'}",
            "INPUTRC": "/dev/null",
            "LC_ALL": "C.UTF-8",
        }

    def run(self, command: str, *steps: tuple[str, str]) -> None:
        """Run a command; for each step, wait for its first text, then type its second."""
        words = [sys.executable, "-m", *shlex.split(command)]
        self.screen += f"$ {command}\n"
        with Terminal(words, columns=COLUMNS, folder=self.folder, environment=self._environment) as terminal:
            for awaited, typed in steps:
                self.screen += terminal.wait_for(awaited)
                if typed == "\x03":
                    self._until_begun()
                terminal.type(typed)
            self.screen += terminal.rest()
        self.screen += "\n"

    def _until_begun(self) -> None:
        """Wait until the tool to be stopped is running."""
        deadline = time.monotonic() + 30
        while not (self.folder / "tape").exists():
            if time.monotonic() > deadline:
                raise SystemExit("the tool did not start")
            time.sleep(0.01)
        time.sleep(0.5)  # the tool starts before the response ends; its usage comes last, and is not shown


def recording() -> str:
    """Play the session; returns the screen contents, with times replaced."""
    with TemporaryDirectory() as name, ReplayServer(RESPONSES) as server:
        folder = Path(name)
        (folder / "notes.py").write_text(TOOL)
        for note in ("old.txt", "plan.txt", "todo.txt"):
            (folder / note).write_text(f"{note}\n")
        recorder = Recorder(folder, server.url)
        question, edited = "[l]ater? ", '{"name": "index.txt", "text": "plan.txt, todo.txt"}'
        recorder.run(
            CHAT,
            ("you> ", "Delete old.txt and plan.txt, then list the rest.\n"),
            (question, "y\n"),
            (question, "n\n"),
            ("(may be empty): ", "I still need it\n"),
            (question, "e\n"),
            ("json> ", f"{edited}\n"),
            ("you> ", "Back them up.\n"),
            ("→ back_up\n    {}", "\x03"),
            ("you> ", "Never mind. Delete todo.txt.\n"),
            (question, "l\n"),
            ("you> ", "\x04"),
        )
        left = sorted(path.name for path in folder.glob("*.txt"))
        recorder.run("agentkit threads list")
        recorder.run("agentkit threads approve notes call_5")
        recorder.run(CHAT, ("you> ", "\x04"))
        recorder.run("agentkit threads show notes")
        now = sorted(path.name for path in folder.glob("*.txt"))
    if (left, now) != (["index.txt", "plan.txt", "todo.txt"], ["index.txt", "plan.txt"]):
        raise SystemExit(f"the notes are not as expected: {left}, then {now}")
    return "\n".join(map(timeless, recorder.screen.splitlines())) + "\n"


SPENT = re.compile(r"(?<![\w.])\d+(\.\d)? m?s(?!\w)")


def timeless(line: str) -> str:
    """A line with its times replaced; right-aligned text stays aligned."""
    length = len(line)
    new = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "2026-01-31 09:00:00", line)
    new = SPENT.sub("0.1 s" if " turns, " in line else "0 s" if "waits for approval" in line else "2 ms", new)
    if length == COLUMNS and (found := re.search(r" {2,}(?=\S+( {1,2}\S+)*$)", new)):
        missing = COLUMNS - len(new)
        new = f"{new[: found.start()]}{' ' * (len(found[0]) + missing)}{new[found.end() :]}"
    return new.rstrip()


def pieces() -> Iterator[str]:
    """The text between the marks: the tool, then the recording."""
    yield START
    yield f'\n`notes.py`:\n\n```text\n{TOOL}```\n\n```text title="recording"\n{recording()}```\n\n'
    yield END


def page_with(new: str) -> str:
    """The page with this recording."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{new}{after}"


def main() -> None:
    """Print the recording, or write it."""
    new = "".join(pieces())
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page_with(new), encoding="utf-8")
    else:
        sys.stdout.write(new)


if __name__ == "__main__":
    main()
