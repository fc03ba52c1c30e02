"""Every client, unmodified, through the gateway: a conversation with two tools, streamed and whole, from any upstream.

    pip install llm langchain-openai langchain-anthropic openai anthropic openai-agents pydantic-ai-slim
    npm install openai @anthropic-ai/sdk ai @ai-sdk/openai zod
    python benchmarks/gateway_clients.py [--python PATH] [--node-modules FOLDER] [--formats hermes,xml] [--wires chat]

The upstream is a scripted server over real sockets: a call, two calls at once, final words. It writes its calls
natively, or as text in a format: as a model that is taught it (translation), or as a native model by mistake (auto);
and after thinking. A cell passes if the client ran exactly these calls, and all text that it saw is the text around
them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
SUPPORT = HERE.parent / "tests" / "support"
sys.path[0] = str(SUPPORT)  # not this directory: `agents` is a package of openai-agents

from client_programs import PROGRAMS, QUESTION, RESULTS, TOOLS  # noqa: E402
from gateway_kit import gateway  # noqa: E402
from scripted_upstream import EXPECTED, scripted_upstream, settings  # noqa: E402

FORMATS = (
    "xml", "hermes", "qwen3_coder", "llama3_json", "mistral", "deepseek_v31", "kimi_k2", "glm45", "minimax_m2",
    "harmony", "pythonic", "gemma4",
)  # fmt: skip
NODE = ("openai chat", "openai responses", "anthropic", "AI SDK chat", "AI SDK responses")


class Group(NamedTuple):
    """Clients that run in one process: its command, and their names there."""

    kind: str
    command: Sequence[str]
    clients: Sequence[str]


class Cell(NamedTuple):
    """One conversation: who had it, with what, and what was wrong with it; empty if nothing was."""

    client: str
    upstream: str
    streamed: bool
    fault: str


def groups(python: str, node_modules: str | None) -> list[Group]:
    """The clients that can be run.

    Args:
        python: an interpreter with the Python clients.
        node_modules: the folder that has the JavaScript clients in its `node_modules`; None for none.
    """
    found = [Group("Python", (python, str(SUPPORT / "client_programs.py")), [*PROGRAMS])]
    if node_modules is not None:
        known = json.dumps({"question": QUESTION, "results": RESULTS, "tools": TOOLS})
        program = str(HERE / "gateway_clients.mjs")
        found.append(Group("JavaScript", ("node", program, str(Path(node_modules).resolve()), known), NODE))
    return found


def cells(group: Group, clients: Sequence[str], url: str, models: Sequence[str]) -> Iterator[Cell]:
    """Have every conversation of these clients, one at a time."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(group.command, stderr=subprocess.DEVNULL, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for client in clients:
            for model in models:
                for streamed in (False, True):
                    process.stdin.write(json.dumps([client, url, model, streamed]) + "\n")
                    process.stdin.flush()
                    line = process.stdout.readline()
                    fault = fault_of(json.loads(line)) if line else "the process ended"
                    yield Cell(f"{client} ({group.kind})", model, streamed, fault)
                    if not line:
                        return
        process.stdin.close()


def fault_of(found: dict[str, Any]) -> str:
    """What is wrong with what a client saw; empty if nothing is."""
    if "error" in found:
        return str(found["error"])
    expected = [[name, arguments] for name, arguments in EXPECTED.calls]
    if found["calls"] != expected:
        return f"calls: {found['calls']}"
    return "" if found["text"] == EXPECTED.text else f"text: {found['text']!r}"


def report(found: Sequence[Cell]) -> None:
    """The table: a row for each client, and the faults after it."""
    kinds = [(mode, streamed) for mode in ("native", "auto", "taught", "thinks") for streamed in (False, True)]
    print("| client | " + " | ".join(f"{mode}, {'streamed' if s else 'whole'}" for mode, s in kinds) + " |")
    print("|---" * (len(kinds) + 1) + "|")
    for client in dict.fromkeys(cell.client for cell in found):
        row = []
        for mode, streamed in kinds:
            here = [c for c in found if (c.client, c.streamed, mode_of(c.upstream)) == (client, streamed, mode)]
            row.append(f"{sum(not cell.fault for cell in here)} of {len(here)}")
        print(f"| {client} | " + " | ".join(row) + " |")
    print(f"\n{sum(not cell.fault for cell in found)} of {len(found)} conversations are right")
    for cell in found:
        if cell.fault:
            print(f"FAULT {cell.client}, {cell.upstream}, {'streamed' if cell.streamed else 'whole'}: {cell.fault}")


def mode_of(model: str) -> str:
    """How a model writes its calls."""
    kind = model.partition("-")[0]
    return "native" if kind == "auto" and "-native-" in model else kind


def main() -> None:
    """Run the clients that are asked for, and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--python", default=sys.executable, help="an interpreter with the Python clients")
    options.add_argument("--node-modules", metavar="FOLDER", help="the folder with the JavaScript clients")
    options.add_argument("--formats", default=",".join(FORMATS), help="those of the upstream's calls")
    options.add_argument("--wires", default="chat", help="those of the upstream: chat,messages,responses")
    options.add_argument("--clients", default="", help="only those whose names contain one of these words")
    given = options.parse_args()
    formats, words = given.formats.split(","), [word for word in given.clients.split(",") if word] or [""]
    found: list[Cell] = []
    with scripted_upstream() as upstream:
        made = settings(upstream.url, formats)
        models = [model for model in made["models"] if model.rpartition("-")[2] in given.wires.split(",")]
        with gateway(made) as url:
            for group in groups(given.python, given.node_modules):
                clients = [client for client in group.clients if any(word in client for word in words)]
                found += cells(group, clients, url, models)
    report(found)
    for reason in dict.fromkeys(upstream.refused):
        print(f"refused by the upstream: {reason}")


if __name__ == "__main__":
    main()
