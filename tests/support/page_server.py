"""`agentkit ui` in a process, with a SQLite file and the agent of `page_agents`; it can be killed and started again."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.request import Request, urlopen

SUPPORT: Final = Path(__file__).parent
PATIENCE: Final = 60.0  # seconds: a busy machine starts a Python in five


class PageServer:
    """A context manager: a page's server on a port that stays the same.

    Args:
        folder: an empty folder for its files.
        options: further options of `agentkit ui`; without `--agent` and `--model`, the agent is that of `page_agents`.
    """

    def __init__(self, folder: Path, options: Sequence[str] = ("--agent", "page_agents:agent")) -> None:
        self.control = folder / "control"
        self.control.mkdir()
        self.store = folder / "page.db"
        self.options = options
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = (folder / "server.log").open("ab")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._log.close()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, "PAGE_CONTROL": str(self.control)}
        words = [*self.options, "--store", str(self.store), "--port", str(self.port)]
        command = [sys.executable, "-m", "agentkit", "ui", *words]
        self._process = subprocess.Popen(command, env=environment, stdout=self._log, stderr=self._log)
        _until(self._answers, "the server answers")

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def restart(self) -> None:
        """Kill it, and start it again."""
        self.kill()
        self.start()

    def clean(self) -> None:
        """Make it as new: it runs, holds nothing, and has no threads."""
        for file in self.control.iterdir():
            file.unlink()
        if self._process is None or self._process.poll() is not None:
            self.start()
        while found := self.request("GET", "threads?limit=50")["threads"]:
            for thread in found:
                self.request("POST", f"threads/{thread['id']}/stop")
                self.request("DELETE", f"threads/{thread['id']}")

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to its API, and return the JSON of the reply; None without one."""
        content = None if method == "GET" else json.dumps(body or {}).encode()
        headers = {"Content-Type": "application/json"}
        with urlopen(Request(f"{self.url}/ui/api/{path}", content, headers, method=method), timeout=PATIENCE) as reply:
            return json.loads(reply.read() or b"null")

    # ------------------------------------------------------------ the agent

    def hold(self, name: str, events: int | None = None) -> None:
        """Let a tool wait, or, with "model", the model after so many events of a reply."""
        (self.control / f"at-{name}").unlink(missing_ok=True)
        _replace(self.control / f"hold-{name}", "" if events is None else str(events))

    def until_held(self, name: str) -> None:
        """Wait until it waits."""
        _until((self.control / f"at-{name}").exists, f"{name} is held")

    def until_waiting(self, calls: int) -> None:
        """Wait until so many calls wait in the newest thread, and nothing runs there: the reply with them is stored."""

        def waits() -> bool:
            newest = self.request("GET", "threads")["threads"][0]
            return (newest["state"], newest["waiting"]) == ("waiting", calls)

        _until(waits, f"{calls} calls wait")

    def release(self, name: str) -> None:
        """Let it go on."""
        (self.control / f"hold-{name}").unlink(missing_ok=True)

    def pace(self, seconds: float, chunk: int = 6) -> None:
        """Let the model wait after each event, and send so many characters in one."""
        _replace(self.control / "pace", str(seconds))
        _replace(self.control / "chunk", str(chunk))

    def play(self, name: str, *turns: Any) -> None:
        """Let a message that begins with this word be answered by these turns."""
        _replace(self.control / f"play-{name}.json", json.dumps(turns))

    @property
    def effects(self) -> list[dict[str, Any]]:
        """The effects so far."""
        log = self.control / "effects.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    @property
    def repeated(self) -> dict[str, int]:
        """The keys of calls of which an effect happened more than once; those of idempotent tools may."""
        times = Counter(effect["key"] for effect in self.effects if effect["tool"] != "save")
        return {key: n for key, n in times.items() if n > 1}

    def command(self, *words: str) -> str:
        """Run `agentkit` on its store, and return what it printed."""
        command = [sys.executable, "-m", "agentkit", *words, "--store", str(self.store)]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"the server has ended: {Path(self._log.name).read_text()}")
        try:
            with urlopen(f"{self.url}/ui/api/setup", timeout=5) as reply:
                return reply.status == 200
        except OSError:
            return False


def _until(holds: Any, wanted: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {PATIENCE:.0f} s: {wanted}")
        time.sleep(0.01)


def _replace(path: Path, text: str) -> None:
    """Write a file at once: a reader sees all of it."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)


def _free_port() -> int:
    """A port below those that the system hands out: no other program is given it while the server is dead."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
