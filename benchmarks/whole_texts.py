"""What reading a whole text costs: with no call, with 1, 8 and 1,600 calls, next to SGLang's parsers.

Both read the same texts in turn, and the fastest run of each counts; read the ratios. SGLang returns arguments as JSON
text and ours are decoded: "decoded" adds `json.loads` of SGLang's. The calls that both found are compared.

    python benchmarks/whole_texts.py [format …]
    pip download --no-deps sglang && unzip sglang-*.whl 'sglang/srt/function_call/*' -d peers
    pip install orjson partial-json-parser --target peers
    python benchmarks/whole_texts.py --sglang peers

Of SGLang only the parsers are loaded: the request types that they need are defined here.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from pydantic import BaseModel

from agentkit.formats import CATALOG, Format, ToolSpec, calls, get, parse, render_calls
from agentkit.messages import ToolCall
from formats import PROSE, lines, tools

MANY = 1600
COMPARED = {
    "hermes": ("hermes_detector", "HermesDetector"),
    "qwen3_coder": ("qwen3_coder_detector", "Qwen3CoderDetector"),
    "glm45": ("glm4_moe_detector", "Glm4MoeDetector"),
    "kimi_k2": ("kimik2_detector", "KimiK2Detector"),
}


class Function(BaseModel):
    """A tool's function as SGLang's server is sent it."""

    name: str
    description: str | None = None
    parameters: Any = None
    strict: bool | None = None


class Tool(BaseModel):
    """A tool as SGLang's server is sent it."""

    type: str = "function"
    function: Function


def sglang(folder: Path) -> None:
    """Make SGLang's parsers importable from a folder, without its server."""
    sys.path.insert(0, str(folder))
    for name in ("sglang", "sglang.srt", "sglang.srt.entrypoints", "sglang.srt.entrypoints.openai"):
        sys.modules[name] = package = ModuleType(name)
        package.__path__ = [str(folder.joinpath(*name.split(".")))]
    protocol, environ = ModuleType("sglang.srt.entrypoints.openai.protocol"), ModuleType("sglang.srt.environ")
    protocol.__dict__.update(Tool=Tool, Function=Function, ToolChoice=Any)
    environ.__dict__.update(envs=SimpleNamespace(SGLANG_FORWARD_UNKNOWN_TOOLS=SimpleNamespace(get=lambda: False)))
    sys.modules |= {protocol.__name__: protocol, environ.__name__: environ}


def fastest(*runs: Callable[[], object], times: int = 7) -> list[float]:
    """Seconds of CPU of the fastest run of each, taken in turn: all see the same load."""
    best = [float("inf")] * len(runs)
    for _ in range(times):
        for n, run in enumerate(runs):
            start = time.process_time()
            run()
            best[n] = min(best[n], time.process_time() - start)
    return best


def text_of(format: Format, offered: Sequence[ToolSpec], count: int) -> str:
    """A text with `count` calls of 350 characters of prose each, all different."""
    made = [
        ToolCall("", "create_file", {"file_path": f"{n}.c", "file_contents": lines(PROSE, 350)}) for n in range(count)
    ]
    return f"I write them now.\n{render_calls(format, made, offered)}" if made else "There is nothing to write."


def row(format: Format, offered: Sequence[ToolSpec]) -> str:
    """Our time for texts with no call, with one, with eight and with many."""
    none, one, eight, many = (text_of(format, offered, count) for count in (0, 1, 8, MANY))
    assert len(calls(parse(many, format, offered))) == MANY, format.name

    def often(text: str) -> Callable[[], object]:
        return lambda: [parse(text, format, offered) for _ in range(50)]

    a, b, c = (seconds / 50 * 1e6 for seconds in fastest(often(none), often(one), often(eight)))
    (d,) = fastest(lambda: parse(many, format, offered))
    return f"{format.name:16} {a:8.1f} {b:8.1f} {c:8.1f} {(c - b) / 7:6.1f} {len(many) // 1000:5} {d / MANY * 1e6:9.1f}"


def compare(format: Format, offered: Sequence[ToolSpec]) -> str:
    """SGLang's time for a text with many calls as a multiple of agentkit's, without and with decoding."""
    text = text_of(format, offered, MANY)
    module, name = COMPARED[format.name]
    detector = getattr(import_module(f"sglang.srt.function_call.{module}"), name)
    known = [Tool(function=Function(name=t.name, parameters=dict(t.parameters))) for t in offered]

    def theirs() -> list[Any]:
        return list(detector().detect_and_parse(text, known).calls)

    def decoded() -> list[Any]:
        return [(c.name, json.loads(c.parameters)) for c in theirs()]

    ours = [(c.name, dict(c.arguments)) for c in calls(parse(text, format, offered))]
    wrong = sum(a != b for a, b in zip(ours, decoded(), strict=False)) + abs(len(ours) - len(decoded()))
    mine, bare, whole = fastest(lambda: parse(text, format, offered), theirs, decoded)
    return (
        f"SGLang {bare / MANY * 1e6:6.1f} µs a call ({bare / mine:4.2f} times agentkit's), "
        f"decoded {whole / MANY * 1e6:6.1f} ({whole / mine:4.2f}){f', {wrong} calls differ' if wrong else ''}"
    )


def main() -> None:
    """Print a line for each format."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("formats", nargs="*")
    options.add_argument("--sglang", type=Path, help="the folder into which SGLang's wheel was unpacked")
    given = options.parse_args()
    chosen = [*map(get, given.formats or (COMPARED if given.sglang else ()))] or CATALOG
    if given.sglang:
        sglang(given.sglang)
    offered = tools()
    print(f"{'format':16} {'no call':>8} {'1 call':>8} {'8 calls':>8} {'each':>6} {'kB':>5} {MANY} each  in µs of CPU")
    for format in chosen:
        print(row(format, offered), compare(format, offered) if given.sglang else "", flush=True)


if __name__ == "__main__":
    main()
