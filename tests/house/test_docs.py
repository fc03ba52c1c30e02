"""What the README, the docs and the examples promise, executed."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confining import WHY, confined
from replay_server import ReplayServer
from warm_program import PROGRAM, STRICT, run

from agentkit.errors import SandboxUnavailable

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 19, "b": 23}'}}
HELLO = [
    json.dumps({"choices": [{"finish_reason": finish, "message": {"role": "assistant", **said}}]}).encode()
    for finish, said in [
        ("tool_calls", {"tool_calls": [CALL]}),
        ("stop", {"content": "19 + 23 is 42."}),
        ("stop", {"content": "Noted."}),
    ]
]
"""How the model behind the hello world answers, and the README's thread. A test that asks for more gets an error."""
FENCE = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")


class Block(NamedTuple):
    """A fenced block: its language, its options, its text, and the line on which its text begins."""

    language: str
    options: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        yield Block(match[1], match[2] or "", match[3], text.count("\n", 0, match.start(3)) + 1)


FILE = re.compile(r'title="([\w/]+\.py)"')


def is_followed(page: Path) -> bool:
    """Whether a page's blocks are files and commands for the reader's own folder."""
    return any(FILE.search(block.options) for block in blocks(page))


SERVED = ("gateway", "gateway_clients")
"""Pages whose programs need a gateway: `tests/gateway/test_gateway_pages.py` runs them."""

LONG = ("from_openai_agents",)
"""Pages that run only with the long tests: importing the SDK that they compare with takes seconds."""


def named(pages: list[Path]) -> list[object]:
    return [
        pytest.param(page, id=str(page.relative_to(ROOT)), marks=[pytest.mark.soak] if page.stem in LONG else [])
        for page in pages
    ]


def without_keys() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in KEYS}


@pytest.mark.parametrize(
    "page",
    named(
        [
            p
            for p in PAGES
            if any(b.language == "python" for b in blocks(p)) and not is_followed(p) and p.stem not in SERVED
        ]
    ),
)
def test_python_of_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ```python blocks of a page are one program; ```text title="output" is what the block before it prints."""
    monkeypatch.chdir(tmp_path)
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    with ReplayServer(HELLO) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run_page(page, monkeypatch)


def run_page(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("docs_" + page.stem.replace("-", "_"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    printed = ""
    for block in blocks(page):
        if block.language == "python":
            cell = 'title="notebook"' in block.options  # there, `await` stands outside of functions
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if cell else 0
            code = compile("\n" * (block.line - 1) + block.text, str(page), "exec", flags)
            with contextlib.redirect_stdout(io.StringIO()) as out, skipped_without_sandbox():
                ran = eval(code, module.__dict__)
                if cell:
                    asyncio.run(ran)
            printed = out.getvalue()
        elif 'title="output"' in block.options:
            assert printed == block.text, f"{page.name}:{block.line} prints something else"


@pytest.mark.soak
@pytest.mark.parametrize("page", named([p for p in PAGES if is_followed(p)]))
def test_page_is_followed_literally(page: Path, tmp_path: Path) -> None:
    """Its files are written, its ```console commands run in order; … stands for any text in what they print."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = without_keys() | {"PATH": path, "COLUMNS": "80", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for block in blocks(page):
        if file := FILE.search(block.options):
            assert block.language == "python"
            (tmp_path / file[1]).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for command, expected in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
                ran = subprocess.run(
                    ["bash", "-c", command],
                    cwd=tmp_path,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=60,
                    check=False,
                )
                pattern = r"[^\n]*".join(map(re.escape, expected.split("…")))
                assert re.fullmatch(pattern, ran.stdout), f"{page.name}: {command}\n{ran.stdout}{ran.stderr}"


@contextlib.contextmanager
def skipped_without_sandbox() -> Iterator[None]:
    """What needs a sandbox is skipped on a machine where none works, with the reason. On others it must run."""
    try:
        yield
    except SandboxUnavailable:
        if not WHY:
            raise
        pytest.skip(WHY)


@pytest.mark.parametrize("example", named(EXAMPLES))
def test_example_runs(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    with ReplayServer(HELLO) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ran = run([*STRICT, str(example)], "")
    if WHY and "SandboxUnavailable" in ran.stderr:
        pytest.skip(WHY)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.strip()


def test_hello_world_is_short_and_the_same_everywhere() -> None:
    code = [line for line in (ROOT / "examples" / "hello.py").read_text().splitlines()[1:] if line]
    assert len(code) <= 6
    assert [line for line in (ROOT / "README.md").read_text().splitlines() if line in code] == code


@pytest.mark.soak
@pytest.mark.parametrize(
    ("page", "options"),
    [("reference/catalogue.md", []), ("own_formats.md", ["--exports"]), ("parsing.md", ["--repairs"])],
)
def test_the_table_of_formats_is_fresh(page: str, options: list[str]) -> None:
    script = ROOT / "docs" / "formats_table.py"
    ran = subprocess.run([sys.executable, str(script), *options], capture_output=True, text=True, check=True)
    assert ran.stdout in (ROOT / "docs" / page).read_text(), "run: python docs/formats_table.py --write"


@pytest.mark.soak
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the line editor of other systems echoes otherwise")
@pytest.mark.parametrize(
    ("script", "page"),
    [
        ("record_approvals.py", "terminal.md"),
        ("record_chat.py", "terminal.md"),
        ("record_fit.py", "fit.md"),
        pytest.param("record_tools.py", "terminal_tools.md", marks=confined),
    ],
)
def test_a_recording_is_fresh(script: str, page: str) -> None:
    ran = subprocess.run(
        [sys.executable, ROOT / "docs" / script], capture_output=True, text=True, timeout=110, check=True
    )
    assert ran.stdout in (ROOT / "docs" / page).read_text(), f"run: python docs/{script} --write"


def joined(text: str) -> str:
    """Shell lines with each command on one line."""
    return re.sub(r"(\|)\n +|\\\n *", r"\1 ", text)


def commands(*programs: str) -> list[object]:
    """The shell lines of all pages that start one of these programs, each once."""
    found = {
        line: pytest.param(line, id=f"{page.stem}:{line}")
        for page in PAGES
        for block in blocks(page)
        if block.language in ("sh", "console", "bash", "shell")
        if not (block.language == "console" and is_followed(page))
        for line in (raw.removeprefix("$ ").strip() for raw in joined(block.text).splitlines())
        if line.split(" ")[0] in programs
    }
    return list(found.values())


@pytest.mark.parametrize("line", commands("make"))
def test_make_target_exists(line: str) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [word for word in shlex.split(line, comments=True)[1:] if "=" not in word and word not in targets] == []


@pytest.mark.parametrize("line", [p for p in commands("agentkit", "echo", "printf", "cat") if "agentkit" in str(p)])
def test_command_of_page_runs(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that needs no key and no thread, and ends, runs; of the others only the options are checked."""
    checked = re.sub(
        r"agentkit (chat|ui|run|fit|serve|threads \w+|mcp(?=.* --http)|rollout(?: report)?)\b",
        r"agentkit \1 --help",
        line,
    )
    monkeypatch.chdir(tmp_path)
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    if "|" in line:
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        words = ["bash", "-c", checked]
        ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    else:
        program, *words = shlex.split(checked, comments=True)
        assert program == "agentkit"
        ran = run([*PROGRAM, *words], "")
    assert ran.returncode == 0, ran.stderr
    for option in re.findall(r"--[a-z-]+", line):
        assert option in ran.stdout or checked == line
