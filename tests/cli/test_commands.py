"""The command line as its user meets it: words in, lines out, and a terminal to type in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import FILES, Say, called, command, roles, said, typed
from replay_server import Recorded, ReplayServer
from terminal import Terminal
from warm_program import PROGRAM

from agentkit.cli import main
from agentkit.cli.terminal import cells, table

METHODS = ["create_file", "read_file", "str_replace", "full_file_rewrite", "delete_file", "move"]
METHODS += ["list_files", "search_files"]

# demo


def test_demo_shows_the_same_call_as_json_and_as_xml(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    status, out, err = say("demo")
    assert (status, err) == (0, "")
    assert "The models are RECORDED" in out
    assert [
        [cell.strip() for cell in line.split("│")] for line in out[out.index("str_replace\n") :].splitlines()[2:8]
    ] == [
        ['{"name": "str_replace", "arguments": {', '<str-replace file_path="xml/hello.py">'],
        ['"file_path": "json/hello.py",', "<old_str>Hello</old_str>"],
        ['"old_str": "Hello",', "<new_str>Bonjour</new_str>"],
        ['"new_str": "Bonjour"', "</str-replace>"],
        ["}}", ""],
        [f"✓ replaced 1 occurrence in {kind}/hello.py, line 2" for kind in ("json", "xml")],
    ]
    assert out.endswith("\n2 formats, 3 methods of one object, identical files ✓\n")


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_demo_fits_the_terminal(columns: int, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out = say("demo")[1]
    assert max(map(len, out.splitlines())) <= columns
    assert ("│" in out) == (columns > 60)
    assert "\\n" not in out


def test_demo_says_what_differs(tmp_path: Path) -> None:
    """The last line is the result of a comparison: with another file it is another line, and status 1."""
    from agentkit.cli.demo import CallResult, differences
    from agentkit.messages import ToolCall
    from agentkit.tool.registry import ToolRegistry
    from agentkit_tools.files import Files

    for kind, text in (("json", "a"), ("xml", "b")):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "f.txt").write_text(text)
    registry = ToolRegistry()
    registry.register_tool(Files(tmp_path), ["read_file", "move"])
    step = CallResult(ToolCall("c", "read_file", {}), "no such file", completed=False)
    assert list(differences(registry, [step], [], tmp_path)) == [
        "read_file failed: no such file",
        "the two models called different methods",
        "move was never called",
        "the files differ: ['f.txt'], ['f.txt']",
    ]


# parse


def test_parse_prints_the_calls_as_json(say: Say) -> None:
    text = 'Look: <invoke name="add"><parameter name="a">1</parameter></invoke> done'
    status, out, _ = say("parse", "--format", "invoke", stdin=text)
    assert status == 0
    assert json.loads(out) == {
        "calls": [{"name": "add", "arguments": {"a": "1"}, "format": "invoke", "raw": text[6:-5]}],
        "text": "Look:  done",
        "thinking": "",
    }


def test_parse_types_arguments_by_the_tools_and_says_what_is_wrong(say: Say) -> None:
    status, out, err = say(
        "parse", "--tools", FILES, stdin='<read-file file_path="a" limit="5"/><read-file limit="x"/>'
    )
    good, bad = json.loads(out)["calls"]
    assert (status, err) == (1, "")
    assert good["arguments"] == {"file_path": "a", "limit": 5}
    assert bad["error"]["code"] == "invalid_arguments"
    assert "/limit: expected integer" in bad["error"]["message"]


def test_parse_tells_of_unknown_tools_and_of_damage(say: Say) -> None:
    unknown = '<tool_call>{"name": "nope", "arguments": {}}</tool_call>'
    status, out, _ = say("parse", "--tools", FILES, stdin=unknown + '<tool_call>{"name": "read_file", "arg')
    errors = [call["error"] for call in json.loads(out)["calls"]]
    assert status == 1
    assert errors[0] == {"code": "unknown_tool", "message": "the tools are " + ", ".join(METHODS)}
    assert errors[1]["code"] == "truncated_call"


def test_parse_leaves_code_alone_unless_told(say: Say) -> None:
    text = '```\n<read-file file_path="a"/>\n```\n'
    assert [
        len(json.loads(say("parse", "--tools", FILES, *option, stdin=text)[1])["calls"])
        for option in ((), ("--in-code",))
    ] == [0, 1]


@pytest.mark.parametrize(
    ("encoding", "status", "path"),
    [("utf-8", 2, ""), ("latin-1", 0, "café.txt")],
)
def test_parse_alters_no_byte_that_it_cannot_read(encoding: str, status: int, path: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agentkit", "parse", "--format", "invoke"],
        input=b'<invoke name="delete"><parameter name="path">caf\xe9.txt</parameter></invoke>',
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert done.returncode == status
    if status:
        assert b"standard input is not valid UTF-8 (byte 0xe9 at 48)" in done.stderr
        assert not done.stdout
    else:
        assert json.loads(done.stdout.decode(encoding))["calls"][0]["arguments"] == {"path": path}


def test_parse_of_xml_without_tools_explains_itself(say: Say) -> None:
    assert "without --tools no tool tags are known" in say("parse", stdin="<a/>")[2]


# formats and tools


def test_formats(say: Say) -> None:
    status, out, _ = say("formats")
    assert status == 0
    assert {"xml", "invoke", "hermes"} <= {line.split()[0] for line in out.splitlines()[2:]}


def test_formats_shows_what_a_model_is_told(say: Say) -> None:
    assert '<add a="' in say("formats", "xml")[1]
    assert "<create-file" in say("formats", "xml", "--tools", FILES)[1]


def test_tools_lists_what_a_model_may_call(say: Say) -> None:
    status, out, _ = say("tools", FILES)
    assert status == 0
    assert out.splitlines()[:3] == [
        "create_file  <create-file>  Files.create_file",
        "    Create a new text file, and any missing folders. An existing file is not changed.",
        "      file_path (string, required, XML attribute): path relative to the working folder, such as src/main.py",
    ]
    assert "      offset (integer, default 1, XML attribute): the first line to read, counted from 1" in out


def test_tools_of_a_module_in_the_current_folder(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_tool_of_cli_test.py").write_text(
        'def twice(n: int) -> int:\n    """Double."""\n    return 2 * n\n'
    )
    monkeypatch.chdir(tmp_path)
    assert say("tools", "own_tool_of_cli_test:twice")[1].splitlines() == [
        "twice  twice",
        "    Double.",
        "      n (integer, required)",
    ]


def test_tools_as_json(say: Say) -> None:
    schemas = json.loads(say("tools", FILES, "--json", "anthropic")[1])
    assert [schema["name"] for schema in schemas] == METHODS
    assert schemas[0]["input_schema"]["required"] == ["file_path", "file_contents"]


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_tables_fit_the_terminal(columns: int) -> None:
    """No line is wider than the terminal, and at 60 columns the names of the formats are still whole."""
    for words in (["formats"], ["tools", FILES]):
        with Terminal([*PROGRAM, *words], columns=columns) as terminal:
            lines = terminal.rest().splitlines()
            assert terminal.status() == 0
        assert max(map(cells, lines)) <= columns
        assert len(lines) > 10
    assert len(table(("a", "b"), [("x" * 9, "some words " * 9)], 40)) == 2 + 4


def test_columns_are_left_out_in_order_where_folding_is_not_enough() -> None:
    row = tuple(name * 25 for name in "abc")
    shown = [table(("a", "b", "c"), [row], width, drop=("b", "c"))[0].split() for width in (100, 70, 50, 30)]
    assert shown == [["a", "b", "c"], ["a", "b", "c"], ["a", "c"], ["a"]]


# What goes wrong says how to fix it


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["tools", "no_such_module:X"], "'no_such_module:X': module 'no_such_module' cannot be imported"),
        (["tools", "agentkit_tools.files:Filez"], "agentkit_tools.files has no 'Filez'"),
        (["tools", "agentkit_tools.files"], "write 'module:Class' or 'module:function'"),
        (["tools", FILES, FILES], "the function name 'create_file' is taken by"),
        (["tools", FILES, "--json", "nope"], "there is no flavour of schemas 'nope'; there are chat, "),
        (["parse", "--format", "hermse"], "no format is called 'hermse'; did you mean 'hermes'?"),
        (["formats", "zzzz"], "no format is called 'zzzz'; `agentkit formats` and "),
        (["chat", "--model", "nope"], "openai:"),
        (["chat", "--model", "nope:x"], "openai:"),
        (
            ["chat", "--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1", "--format", "nope"],
            "no format is called 'nope'",
        ),
        (["chat", "--model", "openai:x"], "OPENAI_API_KEY"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_answered_with_what_was_wanted(
    say: Say, words: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    status, out, err = say(*words)
    assert (status, out) == (2, "")
    assert err.startswith(f"agentkit {words[0]}: ")
    assert told in err


@pytest.mark.parametrize("number", ["99999", "-1", "http"])
@pytest.mark.parametrize("command", [["mcp", "--http", "--tools", "m:f"], ["python-server"]])
def test_a_number_that_is_not_a_port_is_a_usage_error(
    command: list[str], number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command, f"--port={number}"])
    assert ended.value.code == 2
    assert f"argument --port: expected a port from 0 to 65535, found '{number}'" in capsys.readouterr().err


def test_without_a_command_there_is_help_with_examples(say: Say) -> None:
    status, out, err = say()
    assert (status, err) == (0, "")
    assert out.startswith("usage: agentkit ")
    assert "\nexamples:\n  agentkit demo\n" in out


@pytest.mark.parametrize(
    "command",
    ["demo", "chat", "ui", "run", "fit", "threads", "threads show", "serve", "mcp", "parse", "tools", "python-server"],
)
def test_every_help_ends_with_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([*command.split(), "--help"])
    shown = capsys.readouterr().out
    assert "None" not in shown
    assert f"\nexamples:\n  agentkit {command}" in shown or f"| agentkit {command}" in shown


def test_a_reader_that_leaves_early_is_no_error() -> None:
    shell = f"{sys.executable} -m agentkit formats xml | head -1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("# Tools\n", "")


def test_tools_may_be_an_instance(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(tmp_path / "instance_of_cli_test.py").write_text(
        "from agentkit_tools.files import Files\nfiles = Files('work')\n"
    )
    monkeypatch.chdir(tmp_path)
    assert say("tools", "instance_of_cli_test:files")[1].startswith("create_file  <create-file>  Files.create_file\n")


# chat: the program itself, against a server on this machine


def test_chat_answers_line_after_line_and_remembers() -> None:
    with ReplayServer([said("Hel", "lo."), said("Bye.")]) as server:
        done = typed(server, "hi\n\nbye\n", "--system", "Be brief.")
    assert (done.returncode, done.stdout) == (0, "Hello.\nBye.\n")
    assert [roles(r) for r in server.requests] == [["system", "user"], ["system", "user", "assistant", "user"]]


def test_chat_shows_calls_and_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text("def add(a: int, b: int) -> int:\n    return a + b\n")
    with ReplayServer([called("add", '{"a": 1, "b": 2}'), said("It is 3.")]) as server:
        done = typed(server, "1 + 2?\n", "--tools", "own:add")
    lines = done.stderr.splitlines()
    assert done.stdout == "It is 3.\n"
    assert lines[1:4] == ["→ add", "    a: 1", "    b: 2"]
    assert lines[4].startswith("✓ add ")
    assert lines[4].endswith(" ms: 3")
    assert roles(server.requests[1]) == ["user", "assistant", "tool"]


def test_chat_with_calls_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ReplayServer([said('<create-file file_path="a', '.txt">x', "</create-file>"), said("Done.")]) as server:
        done = typed(server, "write\n", "--tools", FILES, "--format", "xml")
    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert done.stderr.splitlines()[1:5] == [
        "→ create_file",
        '    file_path: "a.txt"',
        '    file_contents: "x"',
        '    (xml: <create-file file_path="a.txt">x</create-file>)',
    ]
    assert "\n✓ create_file " in done.stderr
    assert Path("a.txt").read_text() == "x"
    assert "tools" not in server.requests[0].body


def test_chat_survives_an_error_and_forgets_the_question() -> None:
    refused = Recorded(b'{"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}', 401)
    with ReplayServer([refused, said("Hello.")]) as server:
        done = typed(server, "one\ntwo\n")
    assert done.returncode == 0
    assert done.stdout == "Hello.\n"
    assert "error: " in done.stderr
    assert "401" in done.stderr
    assert "Incorrect API key" in done.stderr
    assert [m["content"] for m in server.requests[1].body["messages"]] == ["two"]


def test_chat_that_ends_with_an_error_has_status_1() -> None:
    with ReplayServer([]) as server:
        assert typed(server, "hi\n").returncode == 1


@pytest.fixture
def slow() -> Iterator[ReplayServer]:
    """First an answer that would take minutes, then a short one."""
    with ReplayServer([said("Once", *[" upon"] * 5000), said("Yes.")], pace=0.05) as server:
        yield server


def test_ctrl_d_ends_the_chat() -> None:
    with ReplayServer([said("Hello.")]) as server, Terminal(command(server)) as terminal:
        terminal.wait_for("you> ")
        terminal.type("hi\n")
        assert "Hello." in terminal.wait_for("you> ")
        terminal.type("\x04")
        assert terminal.status() == 0


def test_ctrl_c_at_the_prompt_says_how_to_end() -> None:
    with ReplayServer([]) as server, Terminal(command(server)) as terminal:
        terminal.wait_for("you> ")
        terminal.type("half")
        terminal.wait_for("half")  # echoed; a Ctrl-C right behind keys that readline has not read yet would hang it
        terminal.press("\x03", until="(Ctrl-C again, or Ctrl-D, ends the chat)\n")
        terminal.wait_for("you> ")
        terminal.type("\x04")
        assert terminal.status() == 0


def test_ctrl_c_stops_an_answer_and_keeps_what_was_said(slow: ReplayServer) -> None:
    with Terminal(command(slow)) as terminal:
        terminal.wait_for("you> ")
        terminal.type("tell\n")
        terminal.wait_for("Once upon")
        terminal.type("\x03")
        terminal.wait_for("(stopped)\n")
        terminal.wait_for("you> ")
        terminal.type("still there?\n")
        assert "Yes." in terminal.wait_for("you> ")
        terminal.type("\x04")
        assert terminal.status() == 0
    history = slow.requests[1].body["messages"]
    assert roles(slow.requests[1]) == ["user", "assistant", "user"]
    assert str(history[1]["content"]).startswith("Once upon")
