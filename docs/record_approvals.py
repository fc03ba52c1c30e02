"""The session in docs/terminal.md, recorded from the real command line in a real terminal.

python docs/record_approvals.py          print the recording
python docs/record_approvals.py --write  put it into the page

The model's responses were composed, in the wire format of OpenAI's chat completions, and come from a server on this
machine; everything else is real. Times are replaced, so that the recording is the same each time.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from recording import QUESTION, Recorder, main, response
from replay_server import ReplayServer  # found by the import before it

PAGE = Path(__file__).parent / "terminal.md"
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


def until_started(folder: Path) -> None:
    """Wait until the tool to be stopped is running."""
    deadline = time.monotonic() + 30
    while not (folder / "tape").exists():
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
        recorder = Recorder(folder, server.url, lambda: until_started(folder))
        prompt = "you>"
        edited = '{"name": "index.txt", "text": "plan.txt, todo.txt"}'
        recorder.run(
            CHAT,
            (prompt, "Delete old.txt and plan.txt, then list the rest.\r"),
            (QUESTION, "y"),
            (QUESTION, "n"),
            (r"\(may be empty\):", "I still need it\r"),
            (QUESTION, "e"),
            ("json> .*", f"\x01\x0b{edited}\r"),
            (prompt, "Back them up.\r"),
            ("running back_up.*", "\x03"),
            (prompt, "Never mind. Delete todo.txt.\r"),
            (QUESTION, "l"),
            (prompt, "\x04"),
        )
        left = sorted(path.name for path in folder.glob("*.txt"))
        recorder.run("agentkit threads list")
        recorder.run("agentkit threads approve notes call_5")
        recorder.run(CHAT, (prompt, "\x04"))
        recorder.run("agentkit threads show notes")
        now = sorted(path.name for path in folder.glob("*.txt"))
    if (left, now) != (["index.txt", "plan.txt", "todo.txt"], ["index.txt", "plan.txt"]):
        raise SystemExit(f"the notes are not as expected: {left}, then {now}")
    return recorder.recording


if __name__ == "__main__":
    main(PAGE, "notes.py", TOOL, recording())
