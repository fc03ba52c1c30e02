"""A server's tools as tools of ours: names, results, progress, cancellation; one session that is opened again."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the official SDK is not installed: agentkit-calls[mcp]")

from mcp_kit import LOCAL, SUPPORT, acall, call, declared, notes, raw

from agentkit import Agent, ImagePart, TextPart, ThreadManager, ToolRegistry
from agentkit.errors import ConfigError, SchemaError
from agentkit.interop.mcp import MCPProgress, MCPTools
from agentkit.interop.mcp.endpoints import LocalServer
from agentkit.messages import ToolCall, ToolMessage
from agentkit.testing import ScriptedModel

PROGRESS: list[MCPProgress] = []


@pytest.fixture(scope="module")
def local() -> Iterator[ToolRegistry]:
    """The tools of a server by the official SDK."""
    with MCPTools(LOCAL, name="local", approve=lambda _: True, on_progress=PROGRESS.append) as tools:
        yield ToolRegistry(tools)


# ---------------------------------------------------------------- called like any other


@pytest.mark.parametrize("format", [None, "xml", "qwen3_coder", "hermes"])
def test_its_tools_are_called_in_json_and_in_text(local: ToolRegistry, format: str | None) -> None:
    script = [ToolCall("", "local_echo", {"text": "a < b && c"}), "Done."]
    result = Agent(ScriptedModel(script, format=format, chunk=5), [*local.tools.values()]).run_sync("Go.")
    [answer] = [m for m in result.messages if isinstance(m, ToolMessage)]
    assert (answer.name, answer.text, result.text) == ("local_echo", "a < b && c", "Done.")


def test_a_thread_manager_takes_a_server_like_a_class(tmp_path: Path) -> None:
    async def main() -> list[str]:
        async with ThreadManager() as threads, raw(tmp_path, "look", "never") as server:
            threads.add_tool(server, ["raw_look"])
            return list(threads.registry.tools)

    assert asyncio.run(main()) == ["raw_look"]


def test_wrong_arguments_do_not_reach_the_server(tmp_path: Path) -> None:
    with raw(tmp_path, declared("look", properties={"n": {"type": "integer"}}, required=["n"])) as server:
        script = [ToolCall("", "raw_look", {"n": "many"}), "Oh."]
        result = Agent(ScriptedModel(script), [server]).run_sync("Go.")
        answers = [m.text for m in result.messages if isinstance(m, ToolMessage)]
        assert answers == ['invalid arguments for raw_look:\n- /n: expected integer, found string "many"']
        assert not [line for line in notes(tmp_path) if "tools/call" in line]


def test_a_parameter_may_have_any_name(tmp_path: Path) -> None:
    names = {"self": 1, "context": 2, "arguments": 3, "kwargs": 4, "a-b": 5, "class": 6}
    properties = {name: {"type": "integer"} for name in names}
    with raw(tmp_path, declared("look", properties=properties)) as server:
        said = json.loads(call(ToolRegistry(server), "raw_look", **names).text)
        assert said["arguments"] == names


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["raw_read", "raw_fs_write_all"]),
        ({"name": "disk"}, ["disk_read", "disk_fs_write_all"]),
        ({"prefix": ""}, ["read", "fs_write_all"]),
        ({"rename": {"read": "look"}}, ["look", "raw_fs_write_all"]),
        ({"rename": lambda name: name.upper() if name == "read" else None}, ["READ"]),
        ({"only": ["fs.write/all"]}, ["raw_fs_write_all"]),
        ({"prefix": "1mcp_", "only": ["read"]}, ["_1mcp_read"]),
    ],
)
def test_names(tmp_path: Path, options: dict[str, Any], names: list[str]) -> None:
    with raw(tmp_path, "read", "fs.write/all", **options) as server:
        assert list(ToolRegistry(server).tools) == names


@pytest.mark.parametrize("options", [{"only": ["write"]}, {"rename": {"write": "look"}}])
def test_a_tool_that_does_not_exist_cannot_be_chosen(tmp_path: Path, options: dict[str, Any]) -> None:
    with (
        raw(tmp_path, "read", **options) as server,
        pytest.raises(ConfigError, match=r"no tool 'write'; .*'read'"),
    ):
        ToolRegistry(server)


def test_a_long_name_is_shortened_to_one_that_providers_accept(tmp_path: Path) -> None:
    with raw(tmp_path, "a" * 100, "a" * 101) as server:
        assert [len(name) for name in ToolRegistry(server).tools] == [64, 64]


# ---------------------------------------------------------------- results


def test_text_images_audio_and_resources_are_kept(local: ToolRegistry) -> None:
    result = call(local, "local_picture")
    assert [p.text if isinstance(p, TextPart) else p.media_type for p in result.content] == [
        "a dot",
        "image/png",
        "[audio/wav, 3 bytes: not shown]",
        "file:///a.txt:\nin a",
        "resource 'b' at file:///b.txt",
    ]
    assert isinstance(result.content[1], ImagePart)
    assert result.metadata == {"mcp": {"data": [{"media_type": "audio/wav", "base64": "AAAA"}]}}


def test_structured_content_is_the_output(local: ToolRegistry) -> None:
    result = call(local, "local_structured")
    assert (result.output, result.text) == ({"rows": 3}, '{"rows": 3}')


def test_an_error_result_is_an_error(local: ToolRegistry) -> None:
    assert (call(local, "local_fail").error, call(local, "local_crash").ok) == ("no such row", False)


def test_a_server_that_asks_for_input_is_refused_without_a_handler(local: ToolRegistry) -> None:
    assert call(local, "local_ask").ok is False


def test_progress_is_passed_on(local: ToolRegistry) -> None:
    PROGRESS.clear()
    assert call(local, "local_steps").text == "done"
    assert [(p.tool, p.call_id, p.progress, p.total, p.message) for p in PROGRESS] == [
        ("local_steps", "call_1", 1, 2, "step 1"),
        ("local_steps", "call_1", 2, 2, "step 2"),
    ]


def test_a_cancellation_is_passed_on(local: ToolRegistry) -> None:
    async def main() -> str:
        task = asyncio.create_task(acall(local, "local_sleep"))
        await asyncio.sleep(0)  # the task starts
        await acall(local, "local_echo", text="the other call has been sent before this one")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return (await acall(local, "local_cancelled")).text

    assert asyncio.run(main()) == "sleep"


# ---------------------------------------------------------------- one session


def test_all_calls_and_all_event_loops_share_one_process(tmp_path: Path) -> None:
    with raw(tmp_path, "look") as server:
        tools = ToolRegistry(server)
        pids = {json.loads(call(tools, "raw_look").text)["pid"] for _ in range(3)}
        assert (len(pids), len([n for n in notes(tmp_path) if n.startswith("start")])) == (1, 1)


def test_a_server_that_exits_during_a_call_is_started_again_for_the_next(tmp_path: Path) -> None:
    with raw(tmp_path, "exit", "look", "never") as server:
        tools = ToolRegistry(server)

        async def both() -> list[str | None]:
            return [r.error for r in await asyncio.gather(acall(tools, "raw_never"), acall(tools, "raw_exit"))]

        lost = asyncio.run(both())
        said = (
            "the call may have taken effect, but the connection to the MCP server was lost: Connection closed; it "
            "exited with status 9; its last words: out of memory; the next call connects again"
        )
        assert lost == [said, said]
        assert call(tools, "raw_look").ok
        assert len([n for n in notes(tmp_path) if n.startswith("start")]) == 2


def test_a_server_killed_between_calls_is_started_again(tmp_path: Path) -> None:
    with raw(tmp_path, "look") as server:
        tools = ToolRegistry(server)
        os.kill(json.loads(call(tools, "raw_look").text)["pid"], signal.SIGKILL)
        results = [call(tools, "raw_look") for _ in range(2)]  # the first may meet the death itself
        assert results[-1].ok


def test_closing_ends_the_process_and_answers_later_calls(tmp_path: Path) -> None:
    server = raw(tmp_path, "look")
    tools = ToolRegistry(server)
    pid = json.loads(call(tools, "raw_look").text)["pid"]
    server.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert call(tools, "raw_look").error == "the MCP server 'raw' was closed"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["no-such-program"], "there is no program 'no-such-program'"),
        (LocalServer(("true",), cwd="/no-such-folder"), "there is no folder '/no-such-folder'"),
        (["python3", "-c", "import sys; sys.exit('no licence')"], "exited with status 1; its last words: no licence"),
    ],
)
def test_a_server_that_cannot_start_says_why(command: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ToolRegistry(MCPTools(command, name="x", approve=lambda _: True))


def test_a_silent_server_is_given_up(tmp_path: Path) -> None:
    silent = MCPTools(["sleep", "60"], name="x", approve=lambda _: True, connect_timeout=0.5)
    with pytest.raises(ConfigError, match=r"not ready after 0\.5 s \(sleep 60\)"):
        ToolRegistry(silent)
    silent.close()


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("server", "options", "said"),
    [
        ("npx -y server", {}, r"as a list of words, \['npx', '-y', 'server'\]"),
        ([], {}, "expected a URL, a command as a list of strings"),
        ({"args": []}, {}, "either 'command' or 'url'"),
        ({"url": "http://x/sse", "type": "sse"}, {}, "only streamable HTTP"),
        ("https://", {}, "not a URL"),
        (["x"], {"headers": {"A": "b"}}, "a local server gets env="),
        ("http://x", {"env": {"A": "b"}}, "gets headers="),
        (["x"], {"env": {"A": 1}}, r"env\.A: expected a valid string"),
        (["x"], {"env": "A=5"}, "env: expected a valid dictionary"),
        ("http://x", {"headers": "A: b"}, "headers: expected a valid dictionary"),
        (["x"], {"timeout": 0}, "timeout: expected greater than 0"),
        (["x"], {"rename": ["read"]}, "rename: expected a valid dictionary or expected callable"),
        (["x"], {"requires_approval": "yes"}, "requires_approval: expected a valid boolean or expected callable"),
        ({"command": "npx", "args": "-y server"}, {}, "args: 'str' instances are not allowed as a Sequence"),
        ({"command": "npx", "env": {"PORT": 80}}, {}, r"env\.PORT: expected a valid string"),
        ({"command": "npx", "arg": ["-y"]}, {}, "an MCP server has no 'arg'; did you mean 'args'?"),
        (["x"], {"timout": 5}, "did you mean 'timeout'"),
        ("http://x", {"headers": {"A": "b\nc"}}, "'A' contains a character that HTTP cannot carry"),
        (["x"], {"only": "read"}, "only: 'str' instances are not allowed as a Sequence"),
    ],
)
def test_wrong_settings_are_refused_at_once(server: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        MCPTools(server, **options)


def test_the_servers_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "canary-123456")
    entries = {
        "files": {"command": "npx", "args": ["-y", "server-files", "${HOME_DIR:-/srv}", "${TOKEN}"], "env": {"A": "b"}},
        "remote": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        "off": {"command": "x", "disabled": True},
    }
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": entries}))
    files, remote = MCPTools.from_file(tmp_path / "servers.json")
    command = "npx -y server-files '${HOME_DIR:-/srv}' '${TOKEN}'"
    assert repr(files) == f"MCPTools({command + ', with A in its environment'!r}, name='files')"
    assert repr(remote) == "MCPTools('https://example.org/mcp', name='remote')"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read as JSON"),
        (
            '{"mcpServers": {"a": {"env": {"KEY": "secret-1", "KEY": "secret-2"}}}}',
            "'KEY' is given twice",
        ),
        ('{"mcpServers": {"a": {"url": "https://a"}, "a": {"url": "https://b"}}}', "'a' is given twice"),
        ("[]", "expected .*mcpServers"),
        ('{"mcpServers": {"a": {"command": "${NOT_SET_ANYWHERE}"}}}', "a: the environment variable NOT_SET_ANYWHERE"),
        ('{"mcpServers": {"a": {}}}', "a: an MCP server has either"),
        ('{"mcpServers": {"a": {"command": "npx", "args": "-y secret"}}}', "a: an MCP server: args: 'str' instances"),
        ('{"mcpServers": {"a": {"url": "https://a", "header": {"A": "secret"}}}}', "a: an MCP .* mean 'headers'"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "servers.json").write_text(text)
    with pytest.raises(ConfigError, match=said) as caught:
        MCPTools.from_file(tmp_path / "servers.json")
    assert "secret" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.json: cannot be read: No such file or directory\Z"):
        MCPTools.from_file(tmp_path / "none.json")


def test_a_key_that_has_no_meaning_here_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    MCPTools({"command": "npx", "autoApprove": ["look"]})
    assert caplog.messages == ["an entry of an MCP server has 'autoApprove', which has no meaning here"]


def test_without_a_hook_the_command_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "agentkit.mcp"), raw(tmp_path, "look", approve=None) as server:
        ToolRegistry(server)
    assert "starts the MCP server 'raw': " in caplog.text
    assert str(tmp_path / "tools.json") in caplog.text


def test_two_servers_cannot_shadow_each_other(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with raw(tmp_path, "read", name="a") as a, raw(tmp_path / "b", "read", name="b") as b:
        assert list(ToolRegistry(a, b).tools) == ["a_read", "b_read"]
    with (
        raw(tmp_path, "read", prefix="") as a,
        raw(tmp_path / "b", "read", prefix="") as b,
        pytest.raises(SchemaError, match="'read' is taken"),
    ):
        ToolRegistry(a, b)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc in which to find processes")
def test_what_a_server_started_and_left_its_group_ends_with_it(tmp_path: Path) -> None:
    with raw(tmp_path, "leave") as server:
        pid = json.loads(call(ToolRegistry(server), "raw_leave").text)["left"]
        os.kill(pid, 0)
    deadline = time.monotonic() + 30  # whoever has inherited it must still reap it
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(pid)


def alive(pid: int) -> bool:
    """Whether it is more than a status that nobody has asked for."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def test_a_program_that_closes_nothing_ends_and_leaves_no_process(tmp_path: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from agentkit import ToolRegistry\n"
        "from mcp_kit import call, raw\n"
        "print(call(ToolRegistry(raw(Path(sys.argv[2]), 'look')), 'raw_look').text)\n"
    )
    words = [sys.executable, "-W", "error", "-c", program, str(SUPPORT), str(tmp_path)]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    with pytest.raises(ProcessLookupError):
        os.kill(json.loads(ran.stdout)["pid"], 0)
