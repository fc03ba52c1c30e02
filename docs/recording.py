"""Recordings of the real command line in a real terminal, for pages of the docs. Knows no session.

The model's responses are composed, in the wire format of OpenAI's chat completions, and come from a server on this
machine; everything else is real. Times are replaced, so that a recording is the same each time.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from emulator import DrawnTerminal  # noqa: E402 - found by the line above

COLUMNS = 88
END = "<!-- end of recording -->\n"


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


class Recorder:
    """Runs commands one after another in a folder, and records the screen.

    Args:
        folder: where they run.
        url: of the server that answers for the model.
        before_ctrl_c: called before Ctrl-C is typed; waits until there is something to stop.
    """

    def __init__(self, folder: Path, url: str, before_ctrl_c: Callable[[], None] = lambda: None) -> None:
        self.folder = folder
        self.screen = ""
        self._before_ctrl_c = before_ctrl_c
        self._environment = {
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": "none",
            "LOGNAME": "ada",
            "PYTHONPATH": f"{ROOT}:{ROOT / 'tools'}",
            "INPUTRC": "/dev/null",
            "LC_ALL": "C.UTF-8",
        }

    def run(self, command: str, *steps: tuple[str, str]) -> None:
        """Run a command; for each step, wait until the last line ends as its first text says, then type its second.

        Args:
            command: a line for the shell.
            steps: of each, a regular expression for the end of the last line, and keys.
        """
        program = shlex.join([sys.executable, "-m", "agentkit"])
        words = ["bash", "-c", f'agentkit() {{ {program} "$@"; }}; {command}']
        with DrawnTerminal(words, columns=COLUMNS, folder=self.folder, environment=self._environment) as terminal:
            shown = terminal.shown
            before: list[str] = []  # a question that was just answered looks as before until its echo comes
            questions: list[tuple[int, list[str]]] = []  # which disappear: after how many lines each was, and its lines
            for awaited, typed in steps:
                end = re.compile(f"(?:{awaited})$")
                terminal.read_until(
                    lambda end=end, before=before: (
                        without_toolbar(shown.lines) != before and bool(end.search(without_toolbar(shown.lines)[-1]))
                    ),
                    awaited,
                )
                before = without_toolbar(shown.lines)
                if awaited == QUESTION:
                    questions.append(_question(before, typed))
                if typed == "\x03":
                    self._before_ctrl_c()
                terminal.type(typed)
            terminal.rest(90)  # on a busy machine, a provider's SDK alone takes a quarter of that to load
        lines = without_toolbar(shown.lines)
        for at, question in reversed(questions):
            lines[at:at] = question
        self.screen += "\n".join([f"$ {command}", *lines]) + "\n\n"

    @property
    def recording(self) -> str:
        """The screen, with times replaced."""
        return "\n".join(map(timeless, self.screen.splitlines())) + "\n"


def without_toolbar(lines: list[str]) -> list[str]:
    """The lines without the toolbar, and without the empty ones above it."""
    lines = [line for line in lines if not line.startswith(" openai:composed · ")]
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


def _question(lines: list[str], key: str) -> tuple[int, list[str]]:
    """After how many lines a question is shown, and its lines, with the key that answers it."""
    start = len(lines) - lines[::-1].index("")
    decided = sum(line.endswith((" · approved", " · denied")) for line in lines)
    return start - decided - (decided > 0), [*lines[start:], f"  [{key}]", ""]


def _spent(line: str) -> str:
    return "0.1 s" if " turns, " in line else "0 s" if "waits for approval" in line else "2 ms"


QUESTION = r"\w later"
"""The end of a question about a call."""

SPENT = re.compile(r"(?<![\w.])\d+(\.\d)? m?s(?!\w)")


def timeless(line: str) -> str:
    """A line with its times replaced; right-aligned text stays aligned."""
    length = len(line)
    new = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "2026-01-31 09:00:00", line)
    new = re.sub(r"127\.0\.0\.1:\d+", "localhost:8000", new)
    new = re.sub(r"thought for \d+ s", "thought for 2 s", new)
    new = SPENT.sub(lambda found: found[0] if "thought" in line or "attempt" in line else _spent(line), new)
    if length == COLUMNS and (found := re.search(r" {2,}(?=\S+( {1,2}\S+)*$)", new)):
        missing = COLUMNS - len(new)
        new = f"{new[: found.start()]}{' ' * (len(found[0]) + missing)}{new[found.end() :]}"
    return new.rstrip()


def main(page: Path, file: str, source: str, recording: str) -> None:
    """Print the recording of a session, or, with `--write`, put it between the marks in its page.

    Args:
        page: the page.
        file: the name of the file with the session's tools.
        source: its text.
        recording: what the terminal showed.
    """
    start = f"<!-- recording: python docs/{Path(sys.argv[0]).name} --write -->\n"
    new = f'{start}\n`{file}`:\n\n```text\n{source}```\n\n```text title="recording"\n{recording}```\n\n{END}'
    if "--write" not in sys.argv[1:]:
        sys.stdout.write(new)
        return
    before, _, rest = page.read_text(encoding="utf-8").partition(start)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{new}{after}", encoding="utf-8")
