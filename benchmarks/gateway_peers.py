"""Calls that real models wrote as text, through this gateway and the proxies that are also in front of local models.

    pip install forge-guardrails toolrails                  (Python 3.12)
    pip install 'litellm[proxy]==1.106.2'                   (its own environment)
    python benchmarks/gateway_peers.py [--forge PYTHON] [--toolrails PYTHON] [--litellm PYTHON] [--show]

The upstream is a server of chat completions that replies with the texts of `raw_outputs.jsonl`, read from
`../shared/data` (or from `AGENTKIT_SHARED_DATA`), whole or in deltas of 4 characters. Right are the calls that agentkit
reads in the whole text; where a row has its own expectation, these are counted too. Leaked are the bytes of text that
a client gets in excess of the text around the calls. A proxy that asks again gets the same reply.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

SUPPORT = Path(__file__).parent.parent / "tests" / "support"
sys.path[0] = str(SUPPORT)  # not this directory: `agents` is a package of openai-agents

from corpora import specs  # noqa: E402
from fake_upstream import FakeUpstream, Step, chunked, fake_upstream, whole  # noqa: E402
from recorded_recoveries import Reply, tools_named  # noqa: E402
from recordings import rows  # noqa: E402
from upstream_replies import WIRES, chat_stream, chat_whole  # noqa: E402

from agentkit.events import CallEnd, Text  # noqa: E402
from agentkit.toolspec import ToolSpec  # noqa: E402

PACE = 0.02
"""Seconds between two deltas of the paced replies."""

PACED = {
    "prose": "The meeting is on Thursday at ten, in the room on the second floor, as Anna wrote. " * 3,
    "call": "I look into the notes, where the date of the meeting should be, and then I tell you more about it. "
    'One moment.\n<tool_call>\n{"name": "read_file", "arguments": {"path": "notes/2026/november/meeting.txt", '
    '"lines": 40}}\n</tool_call>',
}
READ = ToolSpec(
    "read_file",
    "Read a file.",
    {"type": "object", "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}}},
)

LITELLM = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
}
"""What LiteLLM needs to start without a network and without a key."""

Calls = list[tuple[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Case:
    """A text, the tools that were offered, what agentkit reads in it, and what its row expects, if it says so."""

    id: str
    text: str
    tools: Sequence[ToolSpec]
    calls: Calls
    rest: str
    truth: Calls | None


def cases() -> Iterator[Case]:
    """The rows, with names as the model saw them: `.` is `_` for most."""
    for row in rows("raw_outputs.jsonl"):
        tools = specs(row.get("tools")) or tools_named(row)
        seen = {t.name: t.name if t.name in row["text"] else t.name.replace(".", "_") for t in tools}
        tools = tuple(ToolSpec(seen[t.name], t.description, t.parameters) for t in tools)
        events = Reply(row["id"], tools, row["text"]).read()
        calls = [(e.call.name, dict(e.call.arguments)) for e in events if isinstance(e, CallEnd)]
        rest = "".join(e.text for e in events if isinstance(e, Text))
        truth = row.get("ground_truth_calls")
        own = None if truth is None else [(seen[c["name"]], c["arguments"]) for c in truth]
        yield Case(row["id"], row["text"], tools, calls, rest, own)


class Texts(FakeUpstream):
    """A server whose model is called as the case of which it has the text."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        super().__init__()
        self.texts = texts

    def answer(self, headers: Mapping[str, str], body: bytes) -> Sequence[Step]:
        """The text of the case that a request names; the list of models for a request without a body."""
        if not body:
            return whole({"object": "list", "data": [{"id": name, "object": "model"} for name in self.texts]})
        asked = json.loads(body)
        model = asked["model"].removeprefix("openai/")
        text = self.texts[model]
        if not asked.get("stream"):
            return [*([len(text) / 4 * PACE] if model in PACED else []), *whole(chat_whole(text))]
        pieces = chat_stream(text[at : at + 4] for at in range(0, len(text), 4))
        if model not in PACED:
            return chunked(*pieces)
        return chunked(*(step for piece in pieces for step in (piece, PACE)))


# ---------------------------------------------------------------- the proxies


class Proxy(NamedTuple):
    """A proxy: its name, and its command for an upstream and a port; None for the upstream itself."""

    name: str
    command: Callable[[str, int, Path], Sequence[str]] | None = None


def _agentkit(upstream: str, port: int, folder: Path) -> Sequence[str]:
    log = str(folder / "agentkit.log")
    return sys.executable, "-m", "agentkit", "serve", "--upstream", f"{upstream}/v1", "--port", str(port), "--log", log


def _forge(python: str) -> Callable[[str, int, Path], Sequence[str]]:
    return lambda upstream, port, _: (python, "-m", "forge.proxy", "--backend-url", upstream, "--port", str(port))


def _toolrails(python: str) -> Callable[[str, int, Path], Sequence[str]]:
    return lambda upstream, port, _: (python, "-m", "toolrails", "--ollama", upstream, "--port", str(port), "--quiet")


def _litellm(python: str) -> Callable[[str, int, Path], Sequence[str]]:
    def command(upstream: str, port: int, folder: Path) -> Sequence[str]:
        settings = {"model": "openai/*", "api_base": f"{upstream}/v1", "api_key": "k"}
        config = folder / "litellm.yaml"  # JSON is YAML
        config.write_text(json.dumps({"model_list": [{"model_name": "*", "litellm_params": settings}]}))
        litellm = str(Path(python).with_name("litellm"))
        return python, litellm, "--config", str(config), "--port", str(port), "--host", "127.0.0.1"

    return command


@contextmanager
def running(proxy: Proxy, upstream: str) -> Iterator[str]:
    """The address of a proxy in front of an upstream, for as long as the block lasts."""
    if proxy.command is None:
        yield upstream
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "output")
        environment = {**os.environ, **LITELLM}
        if proxy.name != "agentkit":
            environment.pop("PYTHONPATH", None)
        with log.open("w") as out:
            command = proxy.command(upstream, port, Path(folder))
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=folder)
        try:
            _wait(process, port, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(20)


def _wait(process: subprocess.Popen[Any], port: int, log: Path, seconds: float = 60.0) -> None:
    """Wait until a proxy accepts connections."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"{process.args} did not start:\n{log.read_text()[-3000:]}")


# ---------------------------------------------------------------- a client


class Got(NamedTuple):
    """What a client got: calls, text, and seconds until the first byte, the first text and the end."""

    calls: Calls
    text: str
    first: float
    text_at: float
    end: float


def ask(url: str, model: str, tools: Sequence[ToolSpec], *, streamed: bool) -> Got:
    """Send one request."""
    declared = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in tools
    ]
    said = [{"role": "user", "content": "Do it."}]
    body = {"model": model, "messages": said, "stream": streamed, **({"tools": declared} if declared else {})}
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    begun = time.perf_counter()
    headers = {"content-type": "application/json", "authorization": "Bearer k"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    reply = connection.getresponse()
    pieces, first, text_at = [], 0.0, 0.0
    while piece := reply.read1(65_536):
        now = time.perf_counter() - begun
        first, text_at = first or now, text_at or (now if _has_text(piece) else 0.0)
        pieces.append(piece)
    end = time.perf_counter() - begun
    connection.close()
    data = b"".join(pieces)
    if reply.status != 200:
        raise RuntimeError(f"{reply.status}: {data[:300]!r}")
    read = WIRES["chat"].read(data) if streamed else WIRES["chat"].read_whole(data)
    return Got(read.calls, read.text, first, text_at or end, end)


def _has_text(piece: bytes) -> bool:
    """Say if a piece of a stream has text of the reply."""
    for line in piece.split(b"\n"):
        if line.startswith(b"data: {") and line.endswith(b"}"):
            choices = json.loads(line[6:]).get("choices") or [{}]
            if choices[0].get("delta", {}).get("content"):
                return True
    return False


# ---------------------------------------------------------------- what is counted


@dataclass(slots=True)
class Count:
    """What one proxy did with all texts, whole or streamed."""

    made: Counter[str] = field(default_factory=Counter)
    leaked: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, case: Case, got: Got) -> None:
        """Count one reply."""
        if not case.calls:
            self.made["untouched"] += (got.calls, got.text.strip()) == ([], case.rest.strip())
        else:
            self.made["right"] += got.calls == case.calls
            self.made["wrong"] += bool(got.calls) and got.calls != case.calls
            self.leaked += max(0, len(got.text.strip().encode()) - len(case.rest.strip().encode()))
        if case.truth is not None:
            self.made["truth"] += got.calls == case.truth
        if got.calls != case.calls:
            self.faults.append(f"{case.id}: {got.calls} instead of {case.calls}"[:300])
        elif not case.calls and got.text.strip() != case.rest.strip():
            self.faults.append(f"{case.id}: {got.text!r} instead of {case.rest!r}"[:300])


def counted(url: str, found: Sequence[Case], *, streamed: bool) -> Count:
    """Ask for every case once."""
    count = Count()
    for case in found:
        try:
            count.add(case, ask(url, case.id, case.tools, streamed=streamed))
        except (RuntimeError, OSError, http.client.HTTPException, ValueError, AssertionError) as error:
            count.made["errors"] += 1
            count.faults.append(f"{case.id}: {error}"[:300])
    return count


HEAD = (
    "proxy", "", "native and right", "wrong calls", "leaked bytes", "without calls: unchanged", "as the row expects",
    "errors", "requests to the model", "first text of prose, ms", "first text of a reply with a call, ms",
)  # fmt: skip


def line(proxy: Proxy, url: str, found: Sequence[Case], upstream: Texts, *, streamed: bool, show: bool) -> None:
    """Replay every text through one proxy, and print its line of the table."""
    before = len(upstream.requests)
    count = counted(url, found, streamed=streamed)
    made, requests = count.made, len(upstream.requests) - before
    times = [f"{ask(url, name, [READ], streamed=True).text_at * 1000:.0f}" if streamed else "" for name in PACED]
    right = sum(bool(case.calls) for case in found)
    cells = (
        proxy.name, "streamed" if streamed else "whole", f"{made['right']} of {right}", made["wrong"],
        f"{count.leaked:,}", f"{made['untouched']} of {len(found) - right}",
        f"{made['truth']} of {sum(case.truth is not None for case in found)}", made["errors"], requests, *times,
    )  # fmt: skip
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    if show and proxy.command is not None:
        print("".join(f"  {fault}\n" for fault in count.faults), end="")


def main() -> None:
    """Replay every text through every proxy, and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    makers = {"forge": _forge, "toolrails": _toolrails, "litellm": _litellm}
    for name in makers:
        options.add_argument(f"--{name}", metavar="PYTHON", help="the interpreter of its environment")
    options.add_argument("--show", action="store_true", help="print each reply with other calls")
    given = options.parse_args()
    proxies = [Proxy("no proxy"), Proxy("agentkit", _agentkit)]
    proxies += [Proxy(name, made(getattr(given, name))) for name, made in makers.items() if getattr(given, name)]
    found = [*cases()]
    print(f"{len(found)} texts; a paced reply is complete after {len(PACED['call']) / 4 * PACE:.1f} s\n")
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|")
    with ExitStack() as stack:
        upstream = Texts({**{case.id: case.text for case in found}, **PACED})
        stack.enter_context(fake_upstream(upstream=upstream))
        for proxy in proxies:
            with running(proxy, upstream.url) as url:
                for streamed in (False, True):
                    line(proxy, url, found, upstream, streamed=streamed, show=given.show)


if __name__ == "__main__":
    main()
