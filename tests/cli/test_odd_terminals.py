"""The command line under odd conditions: what no terminal may get, odd values, closed streams, a full disk."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from unicodedata import category

import pytest
from command_line import FILES, Say, called, command, said, typed
from replay_server import ReplayServer
from terminal import Terminal

from agentkit import ToolCall, ToolRegistry
from agentkit.checks.visible_text import visible
from agentkit.cli.screen import Screen
from agentkit.cli.terminal import arguments, as_json, plain
from agentkit.events import ApprovalRequired, ArgumentDelta, CallStart, Text, Thinking, ToolCompleted, ToolFailed
from agentkit.testing import ScriptedModel
from agentkit.threads import ThreadManager
from agentkit.tool.result import ToolResult

NEEDED = "\u200c\u200d" + "".join(map(chr, [*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD]))
CONTROLS = [
    c
    for c in map(chr, (*range(0x2_0000), *range(0xE_0000, 0xE_0100)))  # the soak looks at all
    if category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\t" and c not in NEEDED
]
HOSTILE = "a" + "b".join(c for c in CONTROLS if not "\ud801" <= c <= "\udfff") + "z\x1b]0;OWNED\x07\x9b2J\u061cend"
"""Every control and format character, and one half of a surrogate pair."""


def controls_in(text: str) -> set[str]:
    """What a terminal may not get, but colours of our own."""
    return {f"U+{ord(c):04X}" for c in set(text) & set(CONTROLS)}


# What no terminal may get


@pytest.mark.soak
def test_no_control_of_any_class_is_left() -> None:
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    for shown in (plain(everything), visible("".join(CONTROLS)), as_json([everything])):
        assert controls_in(shown) == set()
    kept = set(plain(everything))
    assert {c for c in everything if c not in kept} == set(CONTROLS)
    assert json.loads(as_json([everything])) == json.loads(json.dumps([everything])), "JSON loses nothing"


def test_what_shows_nothing_is_told_where_somebody_decides() -> None:
    for hidden in ("\u3164", "\ufe0f", "\u2800", "\u115f", "\U000e0100", "\u200d", "\u00ad", "\U000e0041"):
        assert "\\" in visible(f"a{hidden}b")
        assert "\\" in "\n".join(arguments({"text": f"a\n{hidden}b"}, 80))


def test_text_of_the_world_is_left_alone() -> None:
    for text in (
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "क्\u200dष",
        "👩\u200d🚀 ❤\ufe0f",
        "\u0600\u0661",
        "à\tb\nc",
        "日本 🇨🇭",
    ):
        assert plain(text) == text


def test_events_bring_no_control_to_the_terminal() -> None:
    out = io.StringIO()
    screen, call = Screen(out), ToolCall("c", HOSTILE, {HOSTILE: HOSTILE}, "xml", HOSTILE)
    for event in (
        *(Text(HOSTILE), Thinking(HOSTILE), CallStart(0, HOSTILE), ArgumentDelta(0, HOSTILE, HOSTILE)),
        *(ToolCompleted(0, call, ToolResult(HOSTILE), 0.0), ToolFailed(0, call, ToolResult(error=HOSTILE), 0.0)),
        ApprovalRequired(0, call, HOSTILE),
    ):
        screen.show(event)
    assert controls_in(out.getvalue()) == set()


def evil(text: str = "") -> str:
    """Tell."""
    return HOSTILE


def kept(id: str, *, requires_approval: bool = False) -> None:
    """A thread in `agentkit.db` in which everything that others say is hostile."""

    async def write() -> None:
        registry = ToolRegistry()
        registry.register_function(evil, requires_approval=requires_approval)
        threads = ThreadManager(registry=registry)
        call = ToolCall(HOSTILE, "evil", {"text": HOSTILE, HOSTILE: "x"})
        wrong = ToolCall(f"2{HOSTILE}", HOSTILE, {})
        await threads.create_thread(id, messages=HOSTILE)
        script = [[HOSTILE, call, wrong, ToolCall("3", "evil", {"text": HOSTILE})], HOSTILE]
        await threads.run_thread(id, model=ScriptedModel(script)).complete()
        await threads.aclose()

    asyncio.run(write())


NAME = f"n{HOSTILE}"


@pytest.mark.parametrize("waits", [False, True])
def test_what_is_stored_brings_no_control_to_the_terminal(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    kept(NAME, requires_approval=waits)
    words: list[Sequence[str]] = [
        *(["list"], ["show", NAME], ["show", "--full", NAME], ["show", f"no {HOSTILE}"], ["approve", NAME, HOSTILE]),
        *(["export", NAME], ["export", NAME, "--as", "openai"], ["export", NAME, "--as", "anthropic"]),
        *(["export", NAME, "--as", "hermes"], ["export", NAME, "--as", HOSTILE], ["deny", NAME, "3"]),
        *(["delete", NAME], ["delete", NAME, "--yes"]),
    ]
    for one in words:
        status, out, err = say("threads", *one)
        assert controls_in(out + err) == set(), one[0]
        assert status in (0, 1, 2)
        assert out + err


def test_an_export_loses_nothing(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kept("t")
    first, *_ = say("threads", "export", "t")[1].splitlines()
    assert json.loads(first) == {"role": "user", "content": [{"type": "text", "text": HOSTILE}]}


def test_other_commands_bring_no_control_to_the_terminal(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "odd_module.py").write_text(f"def evil(text: str = '') -> str:\n    {HOSTILE!a}\n    return text\n")
    (tmp_path / "odd_module.py").write_text(
        f"def evil(text: str = {HOSTILE!a}) -> str:\n    return text\nevil.__doc__ = {HOSTILE!a}\n"
    )
    monkeypatch.chdir(tmp_path)
    text = HOSTILE.encode("utf-8", "replace").decode()
    for words in (
        *(["tools", "odd_module:evil"], ["tools", "odd_module:evil", "--json", "chat"], ["tools", HOSTILE]),
        *(["formats", "hermes", "--tools", "odd_module:evil"], ["formats", HOSTILE]),
        *(["parse"], ["parse", "--format", HOSTILE]),
    ):
        _, out, err = say(*words, stdin=f'{text}<tool_call>{{"name": "evil{text}", "arguments": {{}}}}</tool_call>')
        assert controls_in(out + err) == set(), words
    with pytest.raises(SystemExit):
        say("tools", "x", f"--{HOSTILE}")
    assert controls_in(capsys.readouterr().err) == set()


# Odd values: words and a status, never a traceback


ODD = [
    "",
    " ",
    "\0",
    "\udcff",
    "../..",
    "/",
    "-1",
    "x" * 5000,
    "'; DROP TABLE threads; --",
    "%s%n{0}",
    "\u202e",
    "[" * 3000,
]
COMMANDS: list[list[str]] = [
    ["threads", "list", "--limit", "{}"],
    ["threads", "list", "--store", "{}"],
    ["threads", "list", "--store", "sqlite:///{}"],
    ["threads", "list", "--store", "postgresql://{}"],
    ["threads", "show", "{}"],
    ["threads", "export", "{}"],
    ["threads", "export", "t", "--as", "{}"],
    ["threads", "export", "t", "--as", "xml", "--tools", "{}"],
    ["threads", "delete", "{}", "--yes"],
    ["threads", "approve", "{}", "{}"],
    ["threads", "approve", "t", "3", "--arguments", "{}"],
    ["threads", "deny", "t", "3", "--reason", "{}"],
    ["tools", "{}"],
    ["tools", FILES, "--json", "{}"],
    ["formats", "{}"],
    ["parse", "--format", "{}"],
    ["parse", "--tools", "{}"],
    ["chat", "--model", "{}"],
    ["chat", "--model", "openai:{}", "--base-url", "http://127.0.0.1:1/v1", "--thread", "{}", "--store", "odd.db"],
    ["chat", "--model", "openai:m", "--base-url", "http://127.0.0.1:1/v1", "--format", "{}"],
    ["chat", "--model", "openai:m", "--base-url", "http://127.0.0.1:1/v1", "--tools", "{}"],
]


@pytest.mark.share(3)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_odd_value_is_answered_in_words(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    kept("t", requires_approval=True)
    for odd in (*ODD, str(10**30), "[", "u@127.0.0.1:abc/db"):
        given = [word.replace("{}", odd) for word in words]
        try:
            status, out, err = say(*given, stdin="")
        except SystemExit as e:  # of argparse
            status, out, err = int(e.code or 0), "", "usage"
        assert status in (0, 1, 2), given
        assert "Traceback" not in out + err
        assert status == 0 or (out + err).strip(), given


# The streams


def program(words: list[str], how: str, folder: Path, stdin: bytes = b"", **environment: str) -> tuple[int, str, str]:
    """The program under a shell, with its streams as `how` redirects them."""
    line = f'"$@" {how}'
    done = subprocess.run(
        ["bash", "-c", line, "bash", *words],
        input=stdin,
        capture_output=True,
        cwd=folder,
        env={**os.environ, "OPENAI_API_KEY": "sk-test", **environment},
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


AGENTKIT = [sys.executable, "-m", "agentkit"]


@pytest.mark.share(5)
@pytest.mark.parametrize("words", [["formats"], ["--help"], ["threads", "--help"], ["demo"], ["parse"]], ids=" ".join)
def test_a_full_disk_behind_the_output_is_told(tmp_path: Path, words: list[str]) -> None:
    status, _, err = program([*AGENTKIT, *words], "> /dev/full", tmp_path, b"text")
    assert (status, err.count("\n")) == (1, 1)
    assert err.endswith("system error: [Errno 28] No space left on device\n")


def test_a_closed_output_is_told(tmp_path: Path) -> None:
    assert program([*AGENTKIT, "formats"], ">&-", tmp_path) == (
        1,
        "",
        "agentkit: standard output is closed; to discard the output use > /dev/null\n",
    )


def test_a_closed_input_is_an_empty_one(tmp_path: Path) -> None:
    for words in (["parse"], ["chat", "--model", "openai:m", "--base-url", "http://127.0.0.1:1/v1"]):
        status, _, err = program([*AGENTKIT, *words], "<&-", tmp_path)
        assert (status, "Traceback" in err) == (0, False)


def test_closed_errors_change_nothing(tmp_path: Path) -> None:
    assert program([*AGENTKIT, "tools", "nothing:here"], "2>&-", tmp_path)[0] == 2
    assert program([*AGENTKIT, "tools", "nothing:here"], "2>/dev/full", tmp_path)[0] == 2


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    gone = "cd gone; rmdir ../gone; "
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        ["bash", "-c", f'{gone} "$@"', "bash", *AGENTKIT, "threads", "list"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr, done.stderr.count("\n")) == (1, False, 1)


@pytest.mark.share(3)
@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "ascii:strict"])
def test_what_is_typed_arrives_whatever_the_environment_says_of_it(tmp_path: Path, encoding: str) -> None:
    with ReplayServer([said("Hello.")]) as server:
        status, out, err = program(command(server), "", tmp_path, "caf\u00e9\n".encode(), PYTHONIOENCODING=encoding)
        assert (status, out) == (0, "Hello.\n"), err
        assert server.requests[-1].body["messages"][-1]["content"] == "caf\u00e9"


@pytest.mark.share(3)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_the_output_cannot_hold_is_escaped(tmp_path: Path, encoding: str) -> None:
    call = '<tool_call>{"name": "delete", "arguments": {"path": "\u00e9\U0001f600"}}</tool_call>'
    words = [*AGENTKIT, "parse", "--format", "hermes"]
    status, out, err = program(words, "", tmp_path, call.encode(), PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert (status, err.count("Traceback")) == (0, 0)
    [read] = json.loads(out)["calls"]
    assert (read["arguments"], read["raw"]) == ({"path": "\u00e9\U0001f600"}, call)
    with ReplayServer([said("\u00e9\u20ac")]) as server:
        status, out, _ = program(command(server), "", tmp_path, b"Hi\n", PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    shown = {"ascii": "\\xe9\\u20ac\n", "latin-1": "\ufffd\\u20ac\n", "utf-8": "\u00e9\u20ac\n"}
    assert (status, out) == (0, shown[encoding])


def test_what_is_no_text_is_told_and_not_sent(tmp_path: Path) -> None:
    with ReplayServer([said("Hello.")]) as server:
        status, _, err = program(command(server), "", tmp_path, b"a\xff\n")
        assert (status, err.splitlines()[-1] + "\n") == (
            2,
            "agentkit chat: an input line is not valid UTF-8 (byte 0xff at 1); it was not sent\n",
        )
        assert server.requests == []


# Two at once


def test_a_second_chat_is_told_who_answers_and_the_first_shows_the_question(tmp_path: Path) -> None:
    from agentkit.threads import open_store

    async def hold() -> None:
        store = open_store(tmp_path / "t.db")
        await store.acquire("two", "web-1/boot/pids/4711/88", 30)
        await store.aclose()

    options = ("--thread", "two", "--store", str(tmp_path / "t.db"))
    with ReplayServer([said("One."), said("Both.")]) as server:
        typed(server, "first\n", *options)
        asyncio.run(hold())
        second = typed(server, "second\n", *options)
        assert second.returncode == 1
        assert "not answered here: process 4711 on 'web-1' is running this thread.\n" in second.stderr
        assert "Your message is saved and will be answered there, or by the next run on this thread; " in second.stderr
        assert len(server.requests) == 1


def test_the_first_chat_shows_the_question_that_came_from_the_second(tmp_path: Path) -> None:
    """The second writes while the first one's tool runs; the answer to it stands below the question."""
    (tmp_path / "slow_of_test.py").write_text(
        "import asyncio, pathlib\n\n\nasync def wait() -> str:\n    'Wait.'\n    pathlib.Path('begun').touch()\n"
        "    while not pathlib.Path('go').exists():\n        await asyncio.sleep(0.01)\n    return 'waited'\n"
    )
    options = ("--thread", "two", "--store", str(tmp_path / "t.db"))
    with ReplayServer([called("wait", "{}"), said("To both.")]) as server:
        words = command(server, "--tools", "slow_of_test:wait", *options)
        with Terminal(words, folder=tmp_path) as first:
            first.wait_for("you> ")
            first.type("first\r")
            first.wait_for("wait")
            deadline = time.monotonic() + 30
            while not (tmp_path / "begun").exists():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            second = typed(server, "second\n", *options)
            assert "Your message is saved and will be answered there" in second.stderr
            (tmp_path / "go").touch()
            assert "from elsewhere> second\nTo both.\n" in first.wait_for("To both.\n")
