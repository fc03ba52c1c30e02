"""`agentkit threads`, and chats that are kept: what a user types and reads, on a store in a folder of its own."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from command_line import Say, called, command, roles, said, typed
from replay_server import ReplayServer
from terminal import Terminal
from warm_program import PROGRAM, begin

from agentkit.checks.visible_text import visible
from agentkit.cli.terminal import arguments, block, cells, fold, truncate
from agentkit.cli.transcript import age, transcript
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel
from agentkit.testing.scripted_model import ScriptedTurn
from agentkit.threads import Append, Log, ThreadManager, open_store
from agentkit.tool.registry import ToolRegistry

HOSTILE = "\x1b]52;c;cm0gLXJmIC8=\x07\x1b[2Jdone\u202e\r\x9b31m"
TOOLS = """\
import asyncio
from pathlib import Path

from agentkit import openapi_schema


class Post:
    @openapi_schema(requires_approval=True)
    def send(self, to: str, copies: int = 1) -> str:
        with Path("sent").open("a") as file:
            file.write(f"{to} {copies}\\n")
        return f"sent to {to}"

    @openapi_schema
    async def wait(self) -> str:
        Path("begun").touch()
        await asyncio.sleep(600)
        return "waited"
"""


def send(to: str, *, force: bool = False) -> str:
    """Send."""
    return HOSTILE if to == "hostile" else f"sent to {to}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "post_of_cli_test.py").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "ada")
    return tmp_path


def kept(id: str, script: Iterable[ScriptedTurn], *messages: str, requires_approval: bool = False) -> Log:
    """A thread in `agentkit.db`: each message answered by the script."""

    async def write() -> Log:
        registry = ToolRegistry()
        registry.register_function(send, requires_approval=requires_approval)
        manager, model = ThreadManager(registry=registry), ScriptedModel(script)
        await manager.create_thread(id)
        for message in messages:
            await manager.add_message(id, message)
            await manager.run_thread(id, model=model).complete()
        log = await manager.get_log(id)
        await manager.aclose()
        return log

    return asyncio.run(write())


SEND = ToolCall("c1", "send", {"to": "bob"})
POST = ("--tools", "post_of_cli_test:Post", "--thread", "post")


# list, show, export, delete


def test_list_shows_state_and_first_words(say: Say) -> None:
    kept("calm", ["Hello."], "Hi\nthere")
    kept("post", [SEND], "Send it.", requires_approval=True)
    status, out, err = say("threads", "list")
    assert (status, err) == (0, "")
    assert sorted(line.split(maxsplit=4) for line in out.splitlines()[2:]) == [
        ["calm", "2", "0", "s", "at rest             Hi there"],
        ["post", "2", "0", "s", "waits for approval  Send it."],
    ]


def test_show_draws_turns_calls_and_results(say: Say) -> None:
    kept("t", [["On it.", SEND], "Sent."], "Send it to Bob.")
    status, out, _ = say("threads", "show", "t")
    lines = out.splitlines()
    assert status == 0
    assert lines[0].split()[0] == "you"
    assert lines[1:3] == ["  Send it to Bob.", ""]
    assert lines[3].split()[:3] == ["turn", "1", "scripted"]
    assert lines[4] == "  On it."
    assert lines[5].startswith("  → send ")
    assert lines[5].endswith(" ms")
    assert "✓" in lines[5]
    assert lines[6:8] == ['      to: "bob"', "    = sent to bob"]
    assert lines[10:12] == ["  Sent.", ""]
    assert lines[12].startswith("2 turns, 1 call, ")
    assert {len(lines[n]) for n in (0, 3, 5)} == {80}, "times and durations end at the right edge"


def test_show_tells_of_approvals(say: Say) -> None:
    kept("t", [SEND], "Send it.", requires_approval=True)
    assert "    ? call ID c1\n" in say("threads", "show", "t")[1]
    assert say("threads", "approve", "t", "c1", "--arguments", '{"to": "eve"}')[0] == 0
    out = say("threads", "show", "t")[1]
    assert "approved, not run yet\n" in out
    assert '      to: "eve"\n    ✓ approved with other arguments by ada\n' in out


def test_arguments_that_do_not_fit_the_tool_are_refused_where_it_is_known(say: Say) -> None:
    kept("t", [SEND], "Send it.", requires_approval=True)
    wrong = ("threads", "approve", "t", "c1", "--arguments", '{"copies": 2}')
    status, out, err = say(*wrong, "--tools", "post_of_cli_test:Post")
    assert (status, out) == (2, "")
    assert "/to: expected string, found nothing: it is required" in err
    status, out, err = say(*wrong)
    assert (status, out[:11]) == (0, "approved c1"), "the approval was not spent"
    assert err.startswith("the new arguments are checked when the call runs")


@pytest.mark.parametrize("width", [20, 33, 80])
def test_show_fits_the_terminal_and_passes_no_command_on_to_it(width: int) -> None:
    call = ToolCall("c1", "send", {"to": "hostile"})
    wide = "漢字" * 30
    log = kept("t", [[HOSTILE, call], f"{wide} {'x' * 200}"], f"{HOSTILE} said {wide}")
    lines = list(transcript(log, width, lambda text, *_: text, full=True))
    assert max(map(cells, lines)) <= width
    assert all(c.isprintable() for line in lines for c in line)
    assert "done" in "".join(lines)


def test_show_cuts_a_long_result_unless_told(say: Say) -> None:
    kept("t", ["\n".join(f"line {n}" for n in range(40))], "Count.")
    assert "  … 28 more lines\n" in say("threads", "show", "t")[1]
    assert "  line 39\n" in say("threads", "show", "t", "--full")[1]


def test_a_compaction_is_shown_and_its_cost_counted_and_what_it_replaced_is_exported(say: Say) -> None:
    kept("t", ["Hello."], "Hi")
    body = {"start": 2, "summary": "They met.", "answers": {}, "tokens": [900, 40], "user": None, "usage": [800, 9]}

    async def compact() -> None:
        store = open_store("agentkit.db")
        await store.commit("t", [Append(body, "compaction")])
        await store.aclose()

    asyncio.run(compact())
    lines = say("threads", "show", "t")[1].splitlines()
    assert [line.split() for line in lines[6:8]] == [
        ["compacted", "900", "→", "40", "tokens", "for", "800", "tokens", "in,", "9", "out"],
        ["They", "met."],
    ]
    assert lines[-2].startswith("1 turn, 0 calls, 800 tokens in, 9 out, ")
    assert lines[-1] == "at rest"
    assert [json.loads(line)["role"] for line in say("threads", "export", "t")[1].splitlines()] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (
            "json",
            [
                {"role": "user", "content": [{"type": "text", "text": "Send it."}]},
                {
                    "role": "assistant",
                    "content": [
                        {
                            "type": "call",
                            "id": "c1",
                            "name": "send",
                            "arguments": '{"to": "bob"}',
                            "raw": '{"to": "bob"}',
                        }
                    ],
                },
                {"role": "tool", "call_id": "c1", "name": "send", "content": [{"type": "text", "text": "sent to bob"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "Sent."}]},
            ],
        ),
        (
            "openai",
            [
                {"role": "user", "content": "Send it."},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "send", "arguments": '{"to": "bob"}'}}
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "sent to bob"},
                {"role": "assistant", "content": "Sent."},
            ],
        ),
        (
            "anthropic",
            [
                {"role": "user", "content": [{"type": "text", "text": "Send it."}]},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "c1", "name": "send", "input": {"to": "bob"}}],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "c1",
                            "is_error": False,
                            "content": [{"type": "text", "text": "sent to bob"}],
                        }
                    ],
                },
                {"role": "assistant", "content": [{"type": "text", "text": "Sent."}]},
            ],
        ),
        (
            "hermes",
            [
                {"role": "user", "content": "Send it."},
                {
                    "role": "assistant",
                    "content": '\n<tool_call>\n{"name": "send", "arguments": {"to": "bob"}}\n</tool_call>\n',
                },
                {"role": "user", "content": "<tool_response>\nsent to bob\n</tool_response>"},
                {"role": "assistant", "content": "Sent."},
            ],
        ),
    ],
)
def test_export(say: Say, shape: str, expected: Sequence[object]) -> None:
    kept("t", [SEND, "Sent."], "Send it.")
    status, out, _ = say("threads", "export", "t", "--as", shape)
    assert status == 0
    assert [json.loads(line) for line in out.splitlines()] == expected


def test_delete_needs_a_yes(say: Say) -> None:
    kept("t", ["Hello."], "Hi")
    status, _, err = say("threads", "delete", "t")
    assert (status, err) == (2, "agentkit threads: deleting cannot be undone: pass --yes if nobody can be asked\n")
    assert say("threads", "delete", "t", "--yes")[:2] == (0, "deleted t\n")
    assert "there is no thread 't'" in say("threads", "show", "t")[2]


def test_delete_asks_at_a_terminal(say: Say) -> None:
    kept("t", ["Hello."], "Hi")
    words = [*PROGRAM, "threads", "delete", "t"]
    with Terminal(words) as terminal:
        assert "delete t with its 2 entries? [y/N] " in terminal.wait_for("[y/N] ")
        terminal.type("\n")
        assert "nothing was deleted" in terminal.rest()
        assert terminal.status() == 1
    with Terminal(words) as terminal:
        terminal.wait_for("[y/N] ")
        terminal.type("y\n")
        assert terminal.rest().endswith("deleted t\n")
    assert "there is no thread" in say("threads", "show", "t")[2]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["list", "--store", "no.db"], "there is no thread store no.db here; select another with --store"),
        (["list", "--store", "mysql://u:secret@h/d"], "'mysql://…'"),
        (["list", "--store", "postgresql:u:secret@h/d"], "found what looks like a DSN"),
        (["list", "--store", "host=h password=secret"], "found what looks like a DSN"),
        (["show", "nope"], "there is no thread 'nope'"),
        (["export", "t", "--as", "nope"], "'nope': expected json, openai, anthropic, or a text format of "),
        (["approve", "t", "c9"], "no call waits for approval under the id 'c9' in thread 't'; waiting: 'c1'"),
        (["approve", "t", "c1", "--arguments", "{"], "the arguments: not JSON: "),
        (
            ["approve", "t", "c1", "--arguments", '{"to": "bob", "copies": 1, "to": "eve"}'],
            "the arguments: 'to' is given twice, with different values ('eve' and 'bob'); give it once",
        ),
        (["approve", "t", "c1", "--arguments", "[1]"], "the arguments: expected a JSON object such as "),
        (["deny", "t", "c9"], "no call waits for approval under the id 'c9'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_clear_line(say: Say, words: list[str], told: str) -> None:
    kept("t", [SEND], "Send it.", requires_approval=True)
    status, out, err = say("threads", *words)
    assert (status, out, err.count("\n")) == (1 if "no thread '" in told else 2, "", 1)
    assert err.startswith("agentkit threads: ")
    assert told in err
    assert "secret" not in err
    assert "waits for approval" in say("threads", "list")[1]


@pytest.mark.parametrize("store", ["agentkit.db", "my threads.db"])
@pytest.mark.parametrize(
    "words",
    [["show"], ["export"], ["delete", "--yes"], ["approve", "c1"], ["deny", "c1"]],
    ids=lambda words: words[0],
)
def test_what_to_do_about_a_thread_that_is_not_there(say: Say, folder: Path, words: list[str], store: str) -> None:
    kept("t", ["Hello."], "Hi")
    (folder / "agentkit.db").rename(folder / store)
    status, out, err = say("threads", words[0], "nope", *words[1:], "--store", store)
    advice = "agentkit threads list" if store == "agentkit.db" else "agentkit threads list --store 'my threads.db'"
    assert (status, out) == (1, "")
    assert err == f"agentkit threads: there is no thread 'nope'; `{advice}` shows those that are there\n"


def test_looking_for_threads_makes_no_file(say: Say, folder: Path) -> None:
    say("threads", "list")
    assert not (folder / "agentkit.db").exists()


# a chat that is kept


def sent(folder: Path) -> str:
    return (folder / "sent").read_text() if (folder / "sent").exists() else ""


def test_a_chat_goes_on_in_another_process() -> None:
    with ReplayServer([said("Hello, Ada."), said("Ada.")]) as server:
        typed(server, "I am Ada.\n", "--thread", "t", "--system", "Be brief.")
        done = typed(server, "Who am I?\n", "--thread", "t")
    assert (done.returncode, done.stdout) == (0, "Ada.\n")
    assert " · thread t (2 entries) · /help" in done.stderr
    assert "  I am Ada.\n" in done.stderr
    assert "  Hello, Ada.\n" in done.stderr
    assert [roles(r) for r in server.requests] == [["system", "user"], ["user", "assistant", "user"]]


@pytest.mark.soak
def test_without_a_terminal_the_chat_ends_with_the_call_that_waits(say: Say, folder: Path) -> None:
    with ReplayServer([called("send", '{"to": "bob"}'), said("Sent.")]) as server:
        done = typed(server, "Send it.\nnever read\n", *POST, "--store", "my threads.db")
        assert (done.returncode, done.stdout, sent(folder)) == (3, "", "")
        assert done.stderr.splitlines()[-4:] == [
            "? send waits for approval",
            (
                "waits for approval: send (call_1); agentkit threads approve post call_1 "
                "--store 'my threads.db', or deny; then open this thread again"
            ),
            "each line of standard input is one message; `agentkit run -` sends all of it as one",
            "input lines that were not sent: 1",
        ]
        again = typed(server, "never read\n", *POST, "--store", "my threads.db")
        assert (again.returncode, len(server.requests)) == (3, 1)
        approved = say("threads", "approve", "post", "call_1", "--store", "my threads.db")
        assert approved[0] == 0
        assert "agentkit chat --thread post --store 'my threads.db' --model" in approved[1]
        last = typed(server, "", *POST, "--store", "my threads.db")
    assert (last.returncode, sent(folder)) == (0, "bob 1\n")
    assert last.stdout == "Sent.\n"
    assert roles(server.requests[1]) == ["user", "assistant", "tool"]


def test_a_denied_call_is_not_run_and_the_model_reads_why(say: Say, folder: Path) -> None:
    with ReplayServer([called("send", '{"to": "bob"}'), said("As you wish.")]) as server:
        typed(server, "Send it.\n", *POST)
        assert say("threads", "deny", "post", "call_1", "--reason", "Bob is away")[0] == 0
        assert typed(server, "", *POST).returncode == 0
    assert server.requests[1].body["messages"][-1]["content"].endswith("denied this call: Bob is away")
    assert sent(folder) == ""


@pytest.mark.share(4)
@pytest.mark.parametrize(("choice", "effect"), [("always", "bob 1\n"), ("never", "")])
@pytest.mark.parametrize("thread", [(), ("--thread", "post")], ids=["in memory", "in a thread"])
def test_a_script_decides_beforehand(folder: Path, choice: str, effect: str, thread: tuple[str, ...]) -> None:
    with ReplayServer([called("send", '{"to": "bob"}'), said("Well.")]) as server:
        done = typed(server, "Send it.\n", *POST[:2], *thread, "--approve", choice)
    assert (done.returncode, done.stdout, sent(folder)) == (0, "Well.\n", effect)
    assert roles(server.requests[1]) == ["user", "assistant", "tool"]


def test_without_terminal_and_thread_the_call_cannot_wait(folder: Path) -> None:
    with ReplayServer([called("send", '{"to": "bob"}')]) as server:
        done = typed(server, "Send it.\nnever read\n", *POST[:2])
    assert (done.returncode, sent(folder), len(server.requests)) == (3, "", 1)
    assert "or keep the call with --thread NAME" in done.stderr


def test_every_tool_may_be_made_to_wait() -> None:
    with ReplayServer([called("wait", "{}")]) as server:
        assert typed(server, "Wait.\n", *POST, "--require-approval").returncode == 3


def test_what_a_killed_chat_left_is_settled_when_it_is_opened_again(folder: Path) -> None:
    with ReplayServer([called("wait", "{}"), said("It was interrupted.")]) as server:
        chat = begin(command(server, *POST), "Wait.\n")
        until(folder / "begun")
        chat.send_signal(signal.SIGKILL)
        chat.wait()
        done = typed(server, "", *POST)
    assert (done.returncode, done.stdout) == (0, "It was interrupted.\n")
    assert "started, no answer yet" in done.stderr
    assert server.requests[1].body["messages"][-1]["content"].startswith("interrupted while running")


def until(file: Path) -> None:
    """Wait until a tool has made its mark."""
    deadline = time.monotonic() + 30
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_thread_that_somebody_else_runs_is_neither_run_nor_deleted(say: Say, folder: Path) -> None:
    with ReplayServer([called("wait", "{}")]) as server:
        chat = begin(command(server, *POST), "Wait.\n")
        until(folder / "begun")
        status, out, err = say("threads", "delete", "post", "--yes")
        other = typed(server, "", *POST)
        chat.kill()
        chat.wait()
    assert (status, out) == (1, "")
    assert err.startswith("agentkit threads: thread 'post': not deleted while it runs; ")
    assert other.returncode == 1
    assert "is running this thread.\nIt continues there" in other.stderr
    assert len(server.requests) == 1


# at a terminal

QUESTION = "[y]es [a]lways [p]attern [n]o [e]dit [l]ater? "


@pytest.mark.soak
def test_only_a_clear_answer_to_the_question_counts(folder: Path) -> None:
    with (
        ReplayServer([called("send", '{"to": "bob"}'), said("Sent.")]) as server,
        Terminal(command(server, *POST)) as terminal,
    ):
        terminal.wait_for("you> ")
        terminal.type("Send it.\ny\n")  # the y is typed before anything was asked
        terminal.wait_for(QUESTION)
        for no_answer in ("\n", "yeah\n"):
            terminal.type(no_answer)
            terminal.wait_for(QUESTION)
        assert sent(folder) == ""
        terminal.type("Y\n")
        assert "Sent." in terminal.wait_for("you> ")
        terminal.type("\x04")
        assert terminal.status() == 0
    assert sent(folder) == "bob 1\n"


def test_edited_arguments_must_fit_the_tool(folder: Path) -> None:
    with (
        ReplayServer([called("send", '{"to": "bob"}'), said("Sent.")]) as server,
        Terminal(command(server, *POST[:2])) as terminal,
    ):
        terminal.wait_for("you> ")
        terminal.type("Send it.\n")
        question = QUESTION.replace(" [l]ater", "")
        terminal.wait_for(question)
        terminal.type("e\n")
        terminal.wait_for("json> ")
        for given, told in [
            ("{", ["the arguments: not JSON"]),
            ('{"to": "eve", "to": "bob"}', ["'to' is given twice, with different values"]),
            ('{"copies": 2}', ["\n- /to: expected"]),
            ('{"to": "eve", "copies": "many"}', ["\n- /copies: expected"]),
            ('{"copies": "many"}', ["\n- /to: expected", "\n- /copies: expected"]),
        ]:
            terminal.type(f"{given}\n")
            shown = terminal.wait_for("json> ")
            assert [text for text in told if text not in shown] == []
        terminal.type('{"to": "eve", "copies": 2}\n')
        assert "Sent." in terminal.wait_for("you> ")
    assert sent(folder) == "eve 2\n"
    assert "The user changed the arguments" in server.requests[1].body["messages"][-1]["content"]


def test_ctrl_c_at_the_question_puts_it_off_and_writing_on_withdraws_the_call(folder: Path) -> None:
    with (
        ReplayServer([called("send", '{"to": "bob"}'), said("Fine.")]) as server,
        Terminal(command(server, *POST)) as terminal,
    ):
        terminal.wait_for("you> ")
        terminal.type("Send it.\n")
        terminal.wait_for(QUESTION)
        terminal.press("\x03", until="agentkit threads approve post call_1, or deny")
        terminal.wait_for("you> ")
        terminal.type("Leave it.\n")
        assert "Fine." in terminal.wait_for("you> ")
    assert sent(folder) == ""
    assert roles(server.requests[1]) == ["user", "assistant", "tool", "user"]


@pytest.mark.soak
def test_a_call_that_was_stopped_stays_stopped_when_the_thread_is_opened_again(folder: Path) -> None:
    with ReplayServer([called("wait", "{}"), said("Hello again.")]) as server:
        with Terminal(command(server, *POST)) as terminal:
            terminal.wait_for("you> ")
            terminal.type("Wait.\n")
            until(folder / "begun")
            terminal.type("\x03")
            assert "✗ wait cancelled" in terminal.wait_for("(stopped)\n")
            terminal.wait_for("you> ")
            terminal.type("\x04")
            assert terminal.status() == 0, "to stop an answer is no failure"
        reopened = typed(server, "", *POST)
        assert (reopened.returncode, len(server.requests)) == (0, 1)
        assert "✗ cancelled" in reopened.stderr
        typed(server, "Hi.\n", *POST)
    assert roles(server.requests[1]) == ["user", "assistant", "tool", "user"]


def test_a_question_in_a_narrow_terminal_hides_nothing(folder: Path) -> None:
    to = "a" * 50 + "\u202e\x1b[1A\x1b[2K"
    with (
        ReplayServer([called("send", json.dumps({"to": to}))]) as server,
        Terminal(command(server, *POST), columns=40) as terminal,
    ):
        terminal.wait_for("you> ")
        terminal.type("Send it.\n")
        terminal.wait_for("? send\n")
        asked = terminal.wait_for("[y] [a] [p] [n] [e] [l]? ").splitlines()[:-1]
    assert asked == [
        '  to: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa',
        "    ⋮ aaaaaaaaaaaaaaaaaaaaa\\u202e\\u001b[",
        '    ⋮ 1A\\u001b[2K"',
    ]


# text for a terminal


def test_an_argument_cannot_pass_for_another() -> None:
    given = {"path": 'a"\n', "text": "x\n  force: true", "a\nforce": True, "hidden": "one\n\x1b[2Ktwo"}
    assert list(arguments(given, 40)) == [
        "path:",
        '  | a"',
        "  | ",
        "text:",
        "  | x",
        "  |   force: true",
        "a\\u000aforce: true",
        'hidden: "one\\n\\u001b[2Ktwo"',
    ]


def test_text_is_folded_by_columns_not_by_characters() -> None:
    assert list(fold("漢字漢字", 5)) == ["漢字", "漢字"]
    assert cells("e\u0301漢") == 3
    assert list(block("a\tb\nlong line here", 12, "  ")) == ["  a   b", "  long line", "  here"]
    assert (truncate("one  two\nthree", 20), truncate("one  two\nthree", 8)) == ("one two three", "one two…")


def test_nothing_is_invisible() -> None:
    assert visible("a\u200bb\x00\U000e0041 ü") == "a\\u200bb\\u0000\\U000e0041 ü"


def test_age() -> None:
    assert [age(s) for s in (-1, 59, 60, 3600, 86_400 * 40)] == ["0 s", "59 s", "1 min", "1 h", "40 d"]
