"""The table of "From other toolkits": small programs that fulfil the same wish in four toolkits, each run here.

python docs/wishes.py                 print the table; a toolkit that is not installed is skipped
python docs/wishes.py agentkit        only this column
python docs/wishes.py --write         put the table into the page (needs all four)
… --peers PYTHON                      run the others' programs with another interpreter: their requirements differ

The programs are docs/wishes/WISH_TOOLKIT.py. The first line of each is a comment: the way in a few words. They ask the
same local server (docs/wishes/local_server.py); there is no network and no key. A program has fulfilled the wish if it
prints exactly what the wish says.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from agentkit import __version__

DOCS: Final = Path(__file__).parent
PAGE: Final = DOCS / "wishes.md"
START: Final = "<!-- wishes: python docs/wishes.py --write -->\n"
END: Final = "<!-- end of wishes -->\n"
SECONDS: Final = 120
"""The longest that a program may run."""
OURS: Final = "agentkit"
PEERS: Final = "--peers"

TOOLKITS: Final = {
    OURS: ("agentkit", "agentkit-calls"),
    "pydantic_ai": ("pydantic-ai", "pydantic-ai-slim"),
    "openai_agents": ("openai-agents", "openai-agents"),
    "langchain": ("LangChain", "langchain"),
}
"""The end of a file's name, the toolkit's name, and its package."""


class Wish(NamedTuple):
    """A row of the table, and what a program prints that fulfils it."""

    text: str
    prints: str


WISHES: Final = {
    "fallback": Wish("another model answers for an overloaded one; a wrong key is an error", "Hello!\nauthentication"),
    "guard_call": Wish("a rule denies a call; the model reads why", "I may not.\nTrue"),
    "guard_input": Wish("a rule ends the run before a request is sent", "no passwords 0"),
    "guard_output": Wish("a rule makes the model answer again", "Ask Eve, please. True"),
    "remember": Wish(
        "an approval of `git log *` is remembered, even by the next process; `git log; rm` asks",
        "ran git log -5\nran git log --all\nasked git log; rm -r .",
    ),
    "pdf": Wish("a message has a PDF document", "A report.\nTrue"),
    "wrong_file": Wish("a file that the API does not take is refused before it is sent", "refused True 0"),
    "partial": Wish("structured output is shown while it is written", "before the end: True\n{128000}"),
    "output_tool": Wish("the output is a tool call; a wrong one is corrected", "City(name='Ulm', people=128000) 2"),
    "many_tools": Wish("of 500 tools fewer than 20 are offered, with any model", "It is sunny.\nTrue True"),
    "events": Wish("events become JSON and are read back, equal", "all equal"),
    "gemini": Wish("Gemini; thought signatures are sent back", "It is 3.\nTrue"),
    "bedrock": Wish("Bedrock; signed thinking is sent back", "It is 3.\nTrue"),
    "server_state": Wish("OpenAI stores the conversation; only what is new is sent", "Fine.\nresp_1 1"),
    "forgotten_state": Wish("… and everything is sent if OpenAI has deleted it", "Fine.\nTrue"),
}
"""The programs' names, and the rows."""


def python(toolkit: str) -> str:
    """The interpreter that runs a toolkit's programs."""
    arguments = sys.argv[1:]
    return sys.executable if toolkit == OURS or PEERS not in arguments else arguments[arguments.index(PEERS) + 1]


@cache
def installed(toolkit: str) -> str:
    """The version of a toolkit, or nothing."""
    if toolkit == OURS:
        return __version__
    asked = f"from importlib.metadata import version; print(version({TOOLKITS[toolkit][1]!r}))"
    ran = subprocess.run([python(toolkit), "-c", asked], capture_output=True, text=True, check=False)
    return ran.stdout.strip()


def lines(program: Path) -> list[str]:
    """The program's lines that count: not blank, and not the first, which says the way."""
    return [line for line in program.read_text(encoding="utf-8").splitlines()[1:] if line.strip()]


def outcome(name: str, program: Path) -> str:
    """Run a program in an empty folder: how many lines fulfil the wish, or what it did instead."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python(program.stem.removeprefix(f"{name}_")), "-W", "ignore", program]
        environment = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # or its import asks the network for prices
        ran = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    if ran.returncode == 0 and ran.stdout.strip() == WISHES[name].prints:
        return f"{len(lines(program))} lines"
    said = (ran.stderr if ran.returncode else ran.stdout).strip().splitlines()
    last = next((line for line in reversed(said) if line[:1].strip()), "")
    return f"**no**: `{last if len(last) <= 90 else last[:89] + '…'}`"


def cell(wish: str, toolkit: str) -> str:
    """The way, and how it ended."""
    program = DOCS / "wishes" / f"{wish}_{toolkit}.py"
    way = program.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    return f"{way}: {outcome(wish, program)}"


def table(toolkits: list[str]) -> str:
    """All wishes in these toolkits; the cells of a missing toolkit are empty."""
    rows = [["wish", *(f"{TOOLKITS[toolkit][0]} {installed(toolkit)}".strip() for toolkit in toolkits)]]
    rows.append(["---"] * len(rows[0]))
    for name, wish in WISHES.items():
        rows.append([wish.text, *(cell(name, toolkit) if installed(toolkit) else "" for toolkit in toolkits)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main(arguments: list[str]) -> None:
    """Print the table, or put it into the page."""
    chosen = [toolkit for toolkit in TOOLKITS if toolkit in arguments] or list(TOOLKITS)
    if "--write" not in arguments:
        sys.stdout.write(table(chosen))
        return
    if missing := [TOOLKITS[toolkit][1] for toolkit in chosen if not installed(toolkit)]:
        sys.exit(f"not installed: {', '.join(missing)}")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{START}\n{table(chosen)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
