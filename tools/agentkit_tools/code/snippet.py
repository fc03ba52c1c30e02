"""Runs Python code in this process, and reports its outcome. Knows the standard library alone.

The driver executes the text of this module in the sandbox; see there.
"""

from __future__ import annotations

import ast
import atexit
import base64
import io
import json
import linecache
import os
import signal
import sys
import threading
import time
import traceback
import types
from contextlib import suppress

TYPE_CHECKING = False  # what is imported here makes every fork slower
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

CO_COROUTINE = 0x80  # as in `inspect`, which is slow to import
MAX_VALUE = 20_000  # characters of a value's repr, and of a traceback
MAX_PICTURES = 8
MAX_PICTURE = 3_750_000  # bytes: 5 MB in base64, what the strictest provider takes


def serve(requests: Iterable[dict[str, Any]], report: int) -> int:
    """Run one request after another. Returns the exit status."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    main.__dict__["__builtins__"] = __builtins__
    status, process = 0, os.getpid()
    for request in requests:
        told = run_code(request, main.__dict__)
        status = told.get("exit") or (1 if told.get("error") else 0)
        if os.getpid() != process:  # a fork that the code did not end also comes this far
            return status
        data = f"{request['number']} {json.dumps(told)}\n".encode()
        while data:
            data = data[os.write(report, data) :]
    with suppress(KeyboardInterrupt):
        threading._shutdown()  # type: ignore[attr-defined]  # as at the end of a script: threads, then exit functions
        atexit._run_exitfuncs()
    return status


def run_code(request: dict[str, Any], namespace: dict[str, Any]) -> dict[str, Any]:
    """Run code; returns its last value, its error and its pictures, as JSON."""
    name = request["name"]

    def stop(*_: Any) -> None:
        late = time.monotonic() >= request["deadline"]  # before it, the code itself has sent the signal
        raise KeyboardInterrupt(*([f"stopped after {request['timeout']:g} s"] if late else []))

    code = request["code"]
    lines = io.StringIO(f"{code}\n", newline=None).readlines()  # split as Python does, and none without its end
    linecache.cache[name] = (len(code), None, lines, name)
    told: dict[str, Any] = {}
    try:
        signal.signal(signal.SIGINT, stop)
        value = evaluate(code, name, namespace)
        told["images"], skipped = pictures(value)
        if skipped:
            told["skipped"] = skipped
        if value is not None and not told["images"]:
            told["value"] = shorten(repr(value))
    except SystemExit as e:
        told["exit"] = exit_status(e)
    except BaseException as e:  # noqa: BLE001 - all that code can raise
        told["error"] = shorten(traceback_text(e, name))
        told["type"] = type(e).__name__
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(Exception):  # closed or replaced by the code
        sys.stdout.flush()
        sys.stderr.flush()
    return told


def evaluate(code: str, name: str, namespace: dict[str, Any]) -> Any:
    """Run the statements; returns the value of the last one if it is an expression."""
    tree = ast.parse(code, name)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        run(tree, name, namespace)
        return None
    tree.body.pop()
    run(tree, name, namespace)
    return run(ast.Expression(last.value), name, namespace)


def run(tree: ast.Module | ast.Expression, name: str, namespace: dict[str, Any]) -> Any:
    """Run a piece of a program; `await` is allowed at its top level."""
    mode = "eval" if isinstance(tree, ast.Expression) else "exec"
    compiled = compile(tree, name, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    value = eval(compiled, namespace)
    if compiled.co_flags & CO_COROUTINE:
        import asyncio  # would be half of what it takes to start

        return asyncio.run(value)
    return value


def exit_status(asked: SystemExit) -> int:
    """The status of `sys.exit(…)`; a message goes to standard error, as Python does it."""
    if asked.code is None or isinstance(asked.code, int):
        return (asked.code or 0) & 0xFF
    with suppress(Exception):
        sys.stderr.write(f"{asked.code}\n")
    return 1


def traceback_text(error: BaseException, name: str) -> str:
    """Return the traceback as Python prints it, from the code's own first line on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != name:
        trace = trace.tb_next
    last = trace
    while last is not None:  # without the function that raised the interrupt
        while last.tb_next is not None and last.tb_next.tb_frame.f_globals is globals():
            last.tb_next = last.tb_next.tb_next
        last = last.tb_next
    try:
        return "".join(traceback.format_exception(type(error), error, trace)).rstrip("\n")
    except BaseException as e:  # noqa: BLE001 - a `__str__` that raises or never returns
        return f"{type(error).__name__} (its traceback cannot be shown: {type(e).__name__})"


def shorten(text: str) -> str:
    """The text, with its middle left out if it is long."""
    if (over := len(text) - MAX_VALUE) <= 0:
        return text
    half = MAX_VALUE // 2
    return f"{text[:half]}\n[… {over} characters omitted …]\n{text[-half:]}"


def pictures(value: Any) -> tuple[list[tuple[str, str]], int]:
    """Return the pictures, each as MIME type and base64, and how many were left out.

    The pictures are the value, if it is an image, and the open figures of matplotlib, which are closed.
    """
    found = [one] if (one := picture(value)) else []
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
        found += [("image/png", png_bytes(figure)) for figure in figures if figure is not value]
        pyplot.close("all")
    small = [(kind, data) for kind, data in found if len(data) <= MAX_PICTURE]
    shown = small[:MAX_PICTURES]
    return [(kind, base64.b64encode(data).decode("ascii")) for kind, data in shown], len(found) - len(shown)


SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


def picture(value: Any) -> tuple[str, bytes] | None:
    """A value that is an image: of PIL, of matplotlib, of anything for notebooks, or the bytes of a file."""
    if isinstance(value, bytes):
        return next(((kind, value) for head, kind in SIGNATURES.items() if value.startswith(head)), None)
    if isinstance(value, type):
        return None
    if "matplotlib.figure" in sys.modules and isinstance(value, sys.modules["matplotlib.figure"].Figure):
        return "image/png", png_bytes(value)
    for kind in ("png", "jpeg"):
        data = getattr(value, f"_repr_{kind}_", bytes)()
        if isinstance(data, bytes) and data:
            return f"image/{kind}", data
    return None


def png_bytes(figure: Any) -> bytes:
    """A figure as a PNG file."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()
