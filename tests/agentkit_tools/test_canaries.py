"""A secret in a tool's configuration is seen nowhere: no log, repr, trace, result or stored thread, whatever happens.

A row is one place for a secret: how the tool is made with it, its calls, and the ways in which the other side behaves.
A tool of the table in `test_called` that is neither here nor in `NO_SECRET` fails the last test.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from confining import WHY
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from ready_made import tool_classes
from site_server import Page, SiteServer, Visit

from agentkit.events import Event
from agentkit.interop.mcp import MCPTools
from agentkit.messages import ToolCall
from agentkit.telemetry import OpenTelemetry
from agentkit.testing import ScriptedModel
from agentkit.threads import ThreadManager
from agentkit_tools.python import Python
from agentkit_tools.remote_python import RemotePython
from agentkit_tools.search import MassiveDS, RetrievalSearch, SemanticScholar, SerperSearch
from agentkit_tools.shell import Shell
from agentkit_tools.web import Web

CANARY: Final = "canary-5be0f4c7d1"
JSON: Final = {"Content-Type": "application/json"}


def echo(visit: Visit) -> str:
    """All that a server was sent."""
    return json.dumps([visit.path, visit.query, visit.headers, visit.body])


def hits(said: str) -> dict[str, Any]:
    """An answer that all the services could have given, with this text in every place for one."""
    document = {"title": said, "url": said, "contents": said, "text": said}
    return {
        "organic": [{"title": said, "link": said, "snippet": said}],
        "data": [{"snippet": {"text": said}, "paper": {"corpusId": said, "title": said}}],
        "results": {"passages": [[said]]},
        "result": [[{"document": document, "score": 1}]],
        said: said,
    }


def page(said: str) -> dict[str, Any]:
    """An answer that both readers of pages could have given."""
    read = {"url": said, "title": said, "content": said}
    return {"data": read, "results": [{"url": said, "markdown": said, "metadata": {"title": said}}], said: said}


def mcp(visit: Visit) -> dict[str, Any]:
    """An MCP server's answer: one tool, which tells what the server was sent."""
    said = echo(visit)
    tool = {"name": "look", "description": said, "inputSchema": {"type": "object", "description": said}}
    info = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": said, "version": ""}}
    results = {
        "initialize": info,
        "tools/list": {"tools": [tool]},
        "tools/call": {"content": [{"type": "text", "text": said}], "structuredContent": {said: said}},
    }
    return {"jsonrpc": "2.0", "id": visit.body.get("id"), "result": results.get(visit.body["method"], {})}


def mcp_fails(visit: Visit) -> dict[str, Any]:
    """The same; each call is an error."""
    if visit.body["method"] != "tools/call":
        return mcp(visit)
    return {
        "jsonrpc": "2.0",
        "id": visit.body["id"],
        "error": {"code": -1, "message": echo(visit), "data": echo(visit)},
    }


Way = Callable[[Visit], Page]


def refusing(status: int) -> Way:
    return lambda visit: Page({"error": echo(visit)}, status, {**JSON, "X-Key": first_line(visit), "Retry-After": "0"})


def first_line(visit: Visit) -> str:
    """What was sent, as a header or an address can repeat it."""
    return "".join(c for c in echo(visit) if c.isalnum() or c in "-_.")


def redirect(visit: Visit) -> Page:
    return Page(status=307, headers={"Location": f"/elsewhere?sent={first_line(visit)}"})


def away(visit: Visit) -> Page:
    return Page(status=302, headers={"Location": f"http://{first_line(visit)}.invalid/"})


def garbage(visit: Visit) -> Page:
    return Page(f"<p>{echo(visit)}".encode(), 200, JSON)


FAILING: Final[dict[str, Way]] = {
    "401": refusing(401),
    "500": refusing(500),
    "a redirect": redirect,
    "a redirect to elsewhere": away,
    "what is not JSON": garbage,
    "nothing": lambda visit: Page(b"", 200, {"Content-Length": "100", "X-Key": first_line(visit)}),
}
SEARCH: Final = {"its request": lambda visit: Page(hits(echo(visit))), **FAILING}
READER: Final = {"its request": lambda visit: Page(page(echo(visit))), **FAILING}
MCP: Final = {"its request": lambda v: Page(mcp(v)), "an error": lambda v: Page(mcp_fails(v)), **FAILING}


class Secret(NamedTuple):
    """One place for a secret.

    Attributes:
        where: in words.
        tool: makes the tool, from a folder and the address of a server.
        calls: what the model calls: names and arguments.
        ways: how the server behaves, by what it answers with.
        env: variables of this process.
        missing: what this machine lacks for it.
        sent: whether a server that behaves must have received the secret, which shows that the row tests something.
    """

    where: str
    tool: Callable[[Path, str], object]
    calls: tuple[tuple[str, dict[str, Any]], ...]
    ways: Mapping[str, Way] = {"nothing": garbage}
    env: Mapping[str, str] = {}
    missing: str = ""
    sent: bool = True


TEA: Final = {"query": "tea"}
SHOWING: Final = "import os\nprint(dict(os.environ), open('/proc/self/environ', 'rb').read())\n"
LOCAL: Final = """\
import json, os, sys
said = json.dumps(dict(os.environ))
for line in sys.stdin:
    asked = json.loads(line)
    tool = {"name": "look", "description": said, "inputSchema": {"type": "object"}}
    info = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": said, "version": ""}}
    results = {"initialize": info, "tools/list": {"tools": [tool]}}
    print(said, file=sys.stderr, flush=True)
    if asked["method"] == "tools/call":
        print(said, flush=True)
        break
    if "id" in asked:
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": results.get(asked["method"], {})}
        print(json.dumps(answer), flush=True)
"""
"""An MCP server that tells its environment, and dies when it is called."""


TABLE_OF_SECRETS: Final = [
    Secret(
        "SerperSearch: api_key",
        lambda _, url: SerperSearch(url=f"{url}/a", api_key=CANARY),
        (("serper_search", TEA),),
        SEARCH,
    ),
    Secret(
        "SerperSearch: variable",
        lambda _, url: SerperSearch(url=f"{url}/a"),
        (("serper_search", TEA),),
        {"its request": SEARCH["its request"], "401": FAILING["401"]},
        {"SERPER_API_KEY": CANARY},
    ),
    Secret(
        "SemanticScholar: api_key",
        lambda _, url: SemanticScholar(url=f"{url}/a", api_key=CANARY),
        (("s2_search", TEA),),
        SEARCH,
    ),
    Secret("MassiveDS: url", lambda _, url: MassiveDS(f"{url}/a?key={CANARY}"), (("massive_ds_search", TEA),), SEARCH),
    Secret(
        "RetrievalSearch: url",
        lambda _, url: RetrievalSearch(f"{url}/a?token={CANARY}"),
        (("search", {"query_list": ["tea"]}),),
        SEARCH,
    ),
    Secret(
        "RemotePython: api_endpoint",
        lambda _, url: RemotePython(f"{url}/a?token={CANARY}"),
        (("python", {"code": "print(42)"}),),
        {"its request": lambda visit: Page({"output": echo(visit), "error": None}), **FAILING},
    ),
    Secret(
        "Web: Jina's key",
        lambda _, url: Web(reader="jina", service_url=url, allow=["127.0.0.1"]),
        (("fetch_page", {"url": "http://127.0.0.1/tea"}),),
        READER,
        {"JINA_API_KEY": CANARY},
    ),
    Secret(
        "Web: Crawl4AI's key",
        lambda _, url: Web(reader="crawl4ai", service_url=url, allow=["127.0.0.1"]),
        (("fetch_page", {"url": "http://127.0.0.1/tea"}),),
        READER,
        {"CRAWL4AI_API_KEY": CANARY},
    ),
    Secret(
        "Shell: env, which the command may read",
        lambda _, url: Shell(env={"SERVICE_KEY": CANARY}),
        (
            ("execute_command", {"command": 'test -n "$SERVICE_KEY" && echo there; no-such-program'}),
            ("execute_command", {"command": "sleep 9", "timeout": 0.2}),
            ("execute_command", {"command": "kill -SEGV $$"}),
            ("execute_command", {"command": "echo a", "folder": "nowhere"}),
            ("execute_command", {"command": "sleep 9", "blocking": False, "session_name": "s"}),
            ("list_commands", {}),
            ("check_command_output", {"session_name": "s"}),
            ("terminate_command", {"session_name": "s"}),
        ),
        missing=WHY,
        sent=False,
    ),
    Secret(
        "Shell: this process's environment",
        lambda _, url: Shell(),
        (("execute_command", {"command": "env; cat /proc/*/environ /proc/*/cmdline"}),),
        env={"SERVICE_KEY": CANARY},
        missing=WHY,
        sent=False,
    ),
    Secret(
        "Python: this process's environment",
        lambda _, url: Python(),
        (("python", {"code": SHOWING}), ("python", {"code": SHOWING + "1/0"})),
        env={"SERVICE_KEY": CANARY},
        missing=WHY,
        sent=False,
    ),
    Secret(
        "MCPTools: headers",
        lambda _, url: MCPTools(f"{url}/mcp", name="m", headers={"Authorization": f"Bearer {CANARY}"}),
        (("m_look", {}),),
        MCP,
    ),
    Secret("MCPTools: url", lambda _, url: MCPTools(f"{url}/mcp?key={CANARY}", name="m"), (("m_look", {}),), MCP),
    Secret(
        "MCPTools: env",
        lambda folder, _: MCPTools(local(folder), name="m", env={"SERVICE_KEY": CANARY}, pins=folder / "pins.json"),
        (("m_look", {}),),
        sent=False,
    ),
    Secret(
        "MCPTools: this process's environment",
        lambda folder, _: MCPTools(local(folder), name="m", approve=lambda command: True),
        (("m_look", {}),),
        env={"SERVICE_KEY": CANARY},
        sent=False,
    ),
]

NO_SECRET: Final = {
    "Conversation": "no settings",
    "Files": "a folder, and names that are protected",
    "Geo3k": "the answer, which is no secret of the operator's; that no result tells it is tested in test_rewards",
    "Gsm8k": "as Geo3k",
    "Pdf": "as Files",
    "StrReplaceEditor": "as Files",
    "TaskList": "a file",
}
"""The tools without a place for a secret, and what their settings are."""


def local(folder: Path) -> list[str]:
    (folder / "server.py").write_text(LOCAL)
    return [sys.executable, "-S", str(folder / "server.py")]


class Everything(logging.Handler):
    """Keeps every record of every logger as the most talkative program would write it."""

    def __init__(self) -> None:
        super().__init__(0)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(f"{self.format(record)} {record.args!r}")


async def run(tool: object, row: Secret, store: Path, log: list[str]) -> None:
    """Let a model make the calls in a stored thread, with traces that hold contents; note all that can be seen."""
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    calls = [ToolCall(f"c{number}", name, arguments) for number, (name, arguments) in enumerate(row.calls)]

    def note(event: Event, _: object) -> None:
        log.append(repr(event))

    hooks = [OpenTelemetry(tracer_provider=provider, contents=True), note]
    threads = ThreadManager(str(store), hooks=hooks)
    try:
        threads.add_tool(tool)
        await threads.create_thread("t", messages="Go.")
        model = ScriptedModel([*([call] for call in calls), "Done."])
        result = await threads.run_thread("t", None, model).complete()
        log += [repr(result), *(f"{message!r} {message}" for message in result.messages)]
    except Exception as e:  # noqa: BLE001 - whatever it is, it is seen: registering an MCP server that fails
        log += traceback.format_exception(e)
    finally:
        await threads.aclose()
    log += [span.to_json() for span in spans.get_finished_spans()]
    log += [repr(tool), str(tool), repr(threads)]


def cases() -> list[object]:
    return [
        pytest.param(row, way, id=f"{row.where}, answered with {way}" if row.sent else row.where)
        for row in TABLE_OF_SECRETS
        for way in row.ways
    ]


@pytest.mark.share(4)
@pytest.mark.parametrize(("row", "way"), cases())
def test_row_38_a_secret_is_seen_nowhere(
    row: Secret, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if row.missing:
        pytest.skip(row.missing)
    for name, value in row.env.items():
        monkeypatch.setenv(name, value)
    everything, root = Everything(), logging.getLogger()
    monkeypatch.setattr(root, "level", logging.DEBUG)
    root.addHandler(everything)
    stored = tmp_path / "stored"
    stored.mkdir()
    log: list[str] = []
    try:
        with SiteServer({f"/{path}": row.ways[way] for path in ("a", "mcp", "crawl", "http://127.0.0.1/tea")}) as site:
            tool = row.tool(stored, site.url)
            asyncio.run(run(tool, row, stored / "t.db", log))
            if close := getattr(tool, "close", None):
                close()
            assert not row.sent or any(CANARY in echo(visit) for visit in site.visits)
    finally:
        root.removeHandler(everything)
    shown = {"the log": everything.seen, "what a program can show": log, "the terminal": list(capfd.readouterr())}
    files = [path for path in stored.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]
    assert log
    assert {where: [text for text in texts if CANARY in text] for where, texts in shown.items()} == {
        where: [] for where in shown
    }
    assert files == []


def test_every_tool_is_here_or_has_no_secret() -> None:
    told = {row.where.partition(":")[0] for row in TABLE_OF_SECRETS}
    tools = {cls.__name__ for cls in tool_classes()} | {"MCPTools"}
    assert told | NO_SECRET.keys() == tools
