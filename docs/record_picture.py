"""The picture of a chat that plays, docs/images/chat.svg: `agentkit chat` with a real model, recorded in a terminal.

python docs/record_picture.py http://127.0.0.1:8080/v1     needs a server with Qwen2.5-Coder-1.5B-Instruct

The tools are those of the tutorial. The responses are the model's own. Only waits are shortened: one
of more than `LONGEST` seconds is played in that time. The seconds that the screen itself shows are the real ones.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from animated_terminal import FilmedTerminal, Frame, cut, drawn
from recording import ROOT

PICTURE = ROOT / "docs" / "images" / "chat.svg"
COLUMNS = 76
LONGEST = 3.0
TITLE = "agentkit chat · Qwen2.5-Coder-1.5B on llama.cpp"
LABEL = "A local model calls a refund tool, a person approves the call, and it runs."
CHAT = "--format xml --temperature 0 --tools desk:Orders refunds:Refunds"
FILES = re.compile(r'^```python title="(desk\.py|refunds\.py)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)
PROMPT = r"\nyou>\n[^\n]+"
STEPS = ((PROMPT, "Order A17 arrived broken. Refund 40 euros.\r"), ("· e edit", "y"))
"""How the screen ends, as a regular expression, and the keys that are then typed."""


class Clock:
    """Plays long waits faster. Times must be asked for in ascending order."""

    def __init__(self) -> None:
        self._waits: list[tuple[float, float]] = []

    def waited(self, start: float, end: float) -> None:
        """Note a wait."""
        self._waits.append((start, end))

    def played(self, at: float) -> float:
        """When in the picture a moment is shown."""
        saved = 0.0
        for start, end in self._waits:
            if end - start > LONGEST and at > start:
                saved += (min(at, end) - start) * (1 - LONGEST / (end - start))
        return at - saved


def wait(terminal: FilmedTerminal, awaited: str, clock: Clock) -> None:
    """Wait until the screen ends as a regular expression says, and then a moment longer, to read it."""
    end = re.compile(f"(?:{awaited})$")
    start = time.monotonic()
    terminal.read_until(lambda: bool(end.search("\n".join(terminal.shown.lines))), awaited, 300)
    clock.waited(start, time.monotonic())
    terminal.watch(1.5)


def filmed(url: str) -> list[tuple[float, Frame]]:
    """Play the session; returns its film."""
    program = f"{sys.executable} -m agentkit"
    words = ["bash", "-c", f"{program} chat --model openai:qwen --base-url {url} {CHAT}"]
    environment = {
        "OPENAI_API_KEY": "none",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tools'}",
        "INPUTRC": "/dev/null",
        "COLORTERM": "truecolor",
    }
    clock = Clock()
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file, source in FILES.findall((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")):
            (folder / file).write_text(source, encoding="utf-8")
        with FilmedTerminal(words, columns=COLUMNS, folder=folder, environment=environment) as terminal:
            for awaited, keys in STEPS:
                wait(terminal, awaited, clock)
                terminal.type_slowly(keys)
                terminal.watch(0.5)
            wait(terminal, PROMPT, clock)
            film = list(terminal.film)
            terminal.type("\x04")
            terminal.rest(60)
        if "40 euros for A17" not in (folder / "refunds.txt").read_text(encoding="utf-8"):
            raise SystemExit("the model refunded something else; record again")
    return [(clock.played(at), frame) for at, frame in film]


if __name__ == "__main__":
    PICTURE.write_text(drawn(cut(filmed(sys.argv[1])), COLUMNS, TITLE, LABEL), encoding="utf-8")
