"""A real Chromium, driven over its own pipe: opens pages, runs JavaScript in them, takes pictures. Needs no driver.

Source of the protocol: Chromium's `--remote-debugging-pipe` (messages as JSON, each ended by a zero byte, commands on
file descriptor 3, answers and events on 4) and the DevTools protocol's domains Target, Page, Runtime and Emulation.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from types import TracebackType
from typing import Any, Final, Self

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
"""Where Chromium is; None without one."""

_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--remote-debugging-pipe",
)


class Browser:
    """One window of Chromium.

    Args:
        width: of the window, in CSS pixels.
        height: likewise.
        dark: whether the reader's system prefers dark colours.
        timeout: seconds that one command may take.
    """

    def __init__(self, width: int = 1280, height: int = 900, *, dark: bool = False, timeout: float = 60) -> None:
        self._timeout = timeout
        self._number = 0
        self._unread = b""
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        words = [str(CHROMIUM), *_FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"]
        # The shell puts the pipes where Chromium expects them: 3 and 4 may be taken here.
        line = f'exec 3<&{commands} 4>&{answers}; exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", line, "bash", *words],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._session: str | None = None
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.command("Page.enable")
        phone = width < 600
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._write)
        self._process.terminate()
        self._process.wait(30)
        os.close(self._read)
        self._profile.cleanup()

    def open(self, url: str) -> None:
        """Open a page, and wait until it is loaded."""
        failed = self.command("Page.navigate", url=url).get("errorText")
        if failed:
            raise OSError(f"{url}: {failed}")
        self.until("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page; a promise is awaited."""
        told = self.command("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise RuntimeError(f"{script}: {told['exceptionDetails']}")
        return told["result"].get("value")

    def until(self, script: str) -> Any:
        """Wait until an expression is true, and return its value.

        Raises:
            TimeoutError: it does not become true in time.
        """
        end = time.monotonic() + self._timeout
        while not (value := self.run(script)):
            if time.monotonic() > end:
                raise TimeoutError(f"{script} is still {value!r} at {self.run('location.href')}")
            time.sleep(0.05)
        return value

    def picture(self) -> bytes:
        """What the window shows, as PNG."""
        return base64.b64decode(self.command("Page.captureScreenshot", format="png")["data"])

    def command(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the protocol, and its answer."""
        self._number += 1
        body: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            body["sessionId"] = self._session
        os.write(self._write, json.dumps(body).encode() + b"\0")
        end = time.monotonic() + self._timeout
        while (said := self._message(end)).get("id") != self._number:
            pass  # an event, which nobody waits for
        if "error" in said:
            raise RuntimeError(f"{method}: {said['error']}")
        result: dict[str, Any] = said["result"]
        return result

    def _message(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._unread:
            if not select.select([self._read], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            if not (more := os.read(self._read, 1 << 20)):
                raise OSError("Chromium has ended")
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message
