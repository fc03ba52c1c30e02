"""The code server: speaks as open-instruct's does, and answers the next request whatever the last one ran."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import httpx2
import pytest
from confining import confined
from starlette.requests import Request

from agentkit_tools.code.worker import CodeOutcome
from agentkit_tools.python_server import CodeServer, ServerSettings, answer, app, parse_request, unless_left

pytestmark = confined


class Served(NamedTuple):
    """A server, as a user starts it."""

    url: str
    process: subprocess.Popen[str]
    client: httpx2.Client

    def run(self, code: str, timeout: float = 20) -> dict[str, Any]:
        response = self.client.post(f"{self.url}/execute", json={"code": code, "timeout": timeout})
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    @contextmanager
    def asking(self, request: bytes) -> Iterator[None]:
        """A client that has sent this, and leaves at the end."""
        with socket.create_connection(("127.0.0.1", int(self.url.rpartition(":")[2]))) as client:
            client.sendall(request)
            yield

    def until(self, **state: int) -> None:
        """Wait until so many are running or waiting."""
        end = time.monotonic() + 60
        while not state.items() <= (found := self.client.get(self.url).json()).items():
            assert time.monotonic() < end, f"expected {state}, found {found}"
            time.sleep(0.01)


_BODY = json.dumps({"code": "import time; time.sleep(25)", "timeout": 30}).encode()
LONG = f"POST /execute HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(_BODY)}\r\n\r\n".encode() + _BODY
"""A request that runs for longer than a test."""


@contextmanager
def serving(*options: str, errors: IO[bytes] | None = None) -> Iterator[Served]:
    command = [sys.executable, "-m", "agentkit", "python-server", "--port", "0", *options]
    env = os.environ | {"SERVICE_KEY": "canary-6f1d2c"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().partition(",")[0]
            with httpx2.Client(timeout=60, trust_env=False) as client:
                yield Served(url, process, client)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving("--workers", "2", "--queue", "4", "--max-timeout", "30", "--processes", "32") as served:
        yield served


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("print(1)", {"output": "1\n", "error": None, "success": True}),
        ("print(1)\n1 + 1", {"output": "1\n2\n", "error": None, "success": True}),
        ("import sys; sys.exit(3)", {"output": "", "error": "exit code 3", "success": False}),
        ("import sys; sys.exit(0)", {"output": "", "error": None, "success": True}),
        ("import os; print('a'); os._exit(1)", {"output": "a\n", "error": "exit code 1", "success": False}),
        (
            "import os; print('a'); os.kill(os.getpid(), 9)",
            {"output": "a\n", "error": "killed by SIGKILL", "success": False},
        ),
        ("import sys; print('w', file=sys.stderr)", {"output": "", "error": "w", "success": True}),
        (
            "print('kept')\n1/0",
            {
                "output": "kept\n",
                "error": 'Traceback (most recent call last):\n  File "<code>", line 2, in <module>\n    1/0\n    ~^~\n'
                "ZeroDivisionError: division by zero",
                "success": False,
            },
        ),
    ],
)
def test_the_answers_of_open_instruct_without_its_defects(server: Served, code: str, expected: dict[str, Any]) -> None:
    assert server.run(code) == expected


def test_a_timeout_keeps_what_was_printed(server: Served) -> None:
    found = server.run("print('before')\nimport time\ntime.sleep(60)", timeout=1.5)
    assert (found["output"], found["success"]) == ("before\n", False)
    assert found["error"].endswith("Execution timed out after 1.5 seconds")


def test_environment_and_root_are_not_visible(server: Served) -> None:
    found = server.run("import os\nprint(os.environ.get('SERVICE_KEY'), os.getuid() != 0, len(os.environ) < 12)")
    assert found["output"] == "None True True\n"


def test_nothing_passes_from_one_request_to_another(server: Served) -> None:
    for n in range(6):
        seen = "glob.glob('*'), glob.glob(tempfile.gettempdir() + '/tmp*'), hasattr(json, 'mine')"
        assert server.run(f"import glob, json, tempfile\nprint({seen})")["output"] == "[] [] False\n"
        server.run(f"import json, tempfile\njson.mine = 1\nopen('a{n}', 'w').close()\ntempfile.mkstemp()")


LEFT = {
    "a file in a folder above": "open(os.path.join(os.path.dirname(os.getcwd()), 'left'), 'w').close()",
    "a file in a folder": "os.makedirs('a/b'); open('a/b/c', 'w').close(); os.chmod('a', 0)",
    "a file that is gone": "open('x', 'w').close(); os.unlink('x')",
    "a mode": "os.chmod('.', 0o500)",
    "a mode that was set back": "os.chmod('.', 0o500); os.chmod('.', 0o755)",
    "an attribute": "os.setxattr('.', b'user.a', b'A')",
    "a time": "os.utime('.', (1, 1))",
    "a limit": "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (16, 16))",
    "niceness of the group": "os.setpriority(os.PRIO_PGRP, 0, 19)",
    "niceness of the user": "os.setpriority(os.PRIO_USER, 0, 19)",
    "processors": "os.sched_setaffinity(os.getppid(), {0})",
    "a way to be scheduled": "os.sched_setscheduler(os.getppid(), os.SCHED_BATCH, os.sched_param(0))",
}


@pytest.mark.parametrize("kind", [pytest.param("bwrap", marks=pytest.mark.soak), "landlock"])
def test_an_interpreter_serves_another_only_if_all_is_as_before(kind: str) -> None:
    """What the code of one client can change: the next one gets the same interpreter, unchanged, or another one."""
    seen = "import os, resource\nprint(os.getppid(), os.lstat('.')[:2], os.lstat('.')[8], os.listdir('.'), "
    seen += "os.listxattr('.'), [resource.getrlimit(n) for n in range(10)], os.getpriority(os.PRIO_PROCESS, 0), "
    seen += "os.sched_getscheduler(0))"

    async def main() -> None:
        server = CodeServer(ServerSettings(workers=1, kind=kind, most_seconds=20))
        await server.open()
        try:
            for name, code in LEFT.items():
                worker, before = server.workers.idle[0], (await server.run(seen, 20)).stdout
                await server.run(f"import os, resource\n{code}", 20)
                after = (await server.run(seen, 20)).stdout
                await asyncio.gather(*server.workers.replacing)
                reused = server.workers.idle[0] is worker
                assert not reused or before == after, name
                assert reused or name != "a file that is gone"
        finally:
            await server.close()

    asyncio.run(main())


SURVIVED = {
    "os_exit": "import os; os._exit(1)",
    "fork_bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "gigabyte": "import os\nfor _ in range(1 << 14): os.write(1, b'y' * 65536)",
    "hanging_import": "open('slow.py', 'w').write('import time; time.sleep(60)')\nimport slow",
    "parent_killed": "import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(60)",
    "parent_stopped": "import os, signal, time\nos.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(60)",
    "daemon": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)",
    "closed": "import os\nos.closerange(0, 100)",
    "memory": "x = []\nwhile True: x.append(bytearray(1 << 24))",
    "stack": "import sys\nsys.setrecursionlimit(1 << 30)\nf = lambda: f()\nf()",
}


@pytest.mark.parametrize("case", SURVIVED)
def test_the_next_request_is_answered_and_none_in_flight_is_lost(server: Served, case: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        hostile = threads.submit(server.run, SURVIVED[case], 0.5)
        others = [threads.submit(server.run, f"import time; time.sleep(0.2); print({n})") for n in range(3)]
        assert [other.result()["output"] for other in others] == ["0\n", "1\n", "2\n"]
        assert set(hostile.result()) == {"output", "error", "success"}
    assert server.run("print('next')")["output"] == "next\n"


def test_output_of_256_mb_is_cut_in_the_middle(server: Served) -> None:
    found = server.run("print('first')\nimport os\nfor _ in range(1 << 12): os.write(1, b'y' * 65536)\nprint('last')")
    assert found["output"].startswith("first\ny")
    assert found["output"].endswith("y" + "last\n")
    assert "[… 268,173,3" in found["output"]


def children(pid: int, *, deep: bool = True) -> set[int]:
    """The processes that this one has started, or all that come from it."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(fields[1])
    if not deep:
        return {child for child, parent in parents.items() if parent == pid}
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def test_a_request_whose_worker_is_killed_from_outside_is_answered(server: Served) -> None:
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(server.run, "import time; time.sleep(1); print('answered')")
        server.until(running=1)
        for pid in children(server.process.pid, deep=False):  # the sandboxes, not what runs in them
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert asked.result() == {"output": "answered\n", "error": None, "success": True}


def test_too_many_requests_are_refused_with_when_to_come_back(server: Served) -> None:
    with ThreadPoolExecutor(4) as threads:
        with server.asking(LONG), server.asking(LONG):
            server.until(running=2)
            accepted = [threads.submit(server.run, f"print({n})") for n in range(4)]
            server.until(running=2, waiting=4)
            refused = server.client.post(f"{server.url}/execute", json={"code": "1"})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert [one.result()["output"] for one in accepted] == [f"{n}\n" for n in range(4)]


def test_clients_that_leave_cost_nothing(tmp_path: Path) -> None:
    """Neither a place in the queue nor a traceback; the code of one that has left is ended."""
    with (
        (tmp_path / "errors").open("wb") as errors,
        serving("--workers", "2", "--queue", "4", "--max-timeout", "30", errors=errors) as served,
    ):
        for end in (10, LONG.index(b"{"), len(LONG) - 5):
            with served.asking(LONG[:end]):
                time.sleep(0.1)
        for _ in range(5):
            with served.asking(LONG):
                served.until(running=1)
        assert served.run("print(1)")["output"] == "1\n"
        served.until(running=0, waiting=0)
    assert (tmp_path / "errors").read_text() == ""


def test_that_the_server_itself_stops_is_not_taken_for_a_client_that_left() -> None:
    async def disconnected() -> Any:
        return {"type": "http.disconnect"}

    async def check() -> None:
        ending, ended = asyncio.Event(), asyncio.Event()

        async def work() -> Any:
            try:
                await asyncio.sleep(60)
            finally:
                ending.set()
                await ended.wait()

        waits = asyncio.ensure_future(unless_left(Request({"type": "http"}, disconnected), work()))
        await ending.wait()
        waits.cancel()
        asyncio.get_running_loop().call_soon(ended.set)
        with pytest.raises(asyncio.CancelledError):
            await waits

    asyncio.run(check())


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 422),
        (b"[" * 100_000, 422),
        (b"{}", 422),
        (b'{"code": 5}', 422),
        (b'{"code": "1", "timeout": 0}', 422),
        (b'{"code": "1", "timeout": 1e999}', 422),
        (b'{"code": "1", "timeout": 31}', 422),
        (b'{"code": "1", "timeout": "3"}', 422),
        (b'{"code": "' + b"x" * 5_000_000 + b'"}', 413),
    ],
)
def test_what_is_no_request_is_refused(server: Served, body: bytes, status: int) -> None:
    response = server.client.post(f"{server.url}/execute", content=body)
    assert response.status_code == status
    assert response.json()["detail"]


def test_web_pages_are_refused(server: Served) -> None:
    response = server.client.post(f"{server.url}/execute", json={"code": "1"}, headers={"Origin": "https://a.example"})
    assert response.status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "localhost:80@evil.example", "127.0.0.1.evil.example", "127.0.0.1:x"])
def test_a_name_that_is_not_the_servers_is_refused(server: Served, host: str) -> None:
    response = server.client.post(f"{server.url}/execute", json={"code": "1"}, headers={"Host": host})
    assert response.status_code == 421


def test_its_state(server: Served) -> None:
    state = server.client.get(server.url).json()
    assert (state["workers"], state["running"], state["waiting"]) == (2, 0, 0)
    assert state["sandbox"] in ("bwrap", "landlock")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_is_left_when_the_server_ends(how: int) -> None:
    with serving("--workers", "1") as served:
        with ThreadPoolExecutor(1) as threads:
            threads.submit(served.run, "import time; time.sleep(60)", 30)
            while len(left := children(served.process.pid)) < 3:
                time.sleep(0.05)
            served.process.send_signal(how)
            served.process.wait(30)
        for _ in range(100):
            if not (left := {pid for pid in left if Path(f"/proc/{pid}").exists()}):
                break
            time.sleep(0.1)
        assert left == set()


def test_what_cannot_work_is_said_at_the_start() -> None:
    for options, status, expected in [
        (["--sandbox", "docker"], 2, "expected one of"),
        (["--workers", "0"], 2, "workers=0: expected a number above 0"),
        (["--host", "203.0.113.1"], 1, "system error"),
    ]:
        command = [sys.executable, "-m", "agentkit", "python-server", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == status
        assert expected in done.stderr, done.stderr


def test_the_application_can_be_mounted_elsewhere() -> None:
    async def asked() -> dict[str, Any]:
        inner = app(ServerSettings(workers=1))
        async with inner.router.lifespan_context(inner):
            transport = httpx2.ASGITransport(inner)
            async with httpx2.AsyncClient(transport=transport, base_url="http://server") as client:
                found: dict[str, Any] = (await client.post("/execute", json={"code": "2 + 2"})).json()
                return found

    assert asyncio.run(asked()) == {"output": "4\n", "error": None, "success": True}


def test_defaults_of_a_request() -> None:
    assert parse_request(json.dumps({"code": "1"}).encode(), 60) == ("1", 5.0)
    assert answer(CodeOutcome(value="1"), 5) == {"output": "1\n", "error": None, "success": True}
