"""`agentkit chat --tools` with the ready-made tools that need no arguments: a chat starts, and calls them."""

from __future__ import annotations

import pytest
from command_line import called, said, typed
from confining import confined
from replay_server import ReplayServer


@pytest.mark.parametrize(
    ("tool", "name", "arguments", "shown"),
    [
        ("agentkit_tools.shell:Shell", "execute_command", '{"command": "printf \\"\\\\033[31mred\\""}', "red"),
        ("agentkit_tools.python:Python", "python", '{"code": "6 * 7"}', "42"),
    ],
)
@confined
def test_a_chat_calls_it_in_the_sandbox(tool: str, name: str, arguments: str, shown: str) -> None:
    with ReplayServer([called(name, arguments), said("Done.")]) as server:
        ran = typed(server, "Go.\n", "--tools", tool)
    assert (ran.returncode, ran.stdout) == (0, "Done.\n")
    assert name in ran.stderr
    assert shown in ran.stderr
    assert "\x1b" not in ran.stderr
