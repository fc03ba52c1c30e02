"""Replies that plainly call a tool although nothing reads them, and replies that quote, draft or describe a call."""

from __future__ import annotations

import pytest
from recovering import BARE, FENCE, HERMES, INVOKE, WRITTEN, Tools

from agentkit.processor.lost_attempts import find_attempt
from agentkit.tool.registry import ToolRegistry
from agentkit.toolspec import ToolSpec

COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
BASH = (ToolSpec("bash", "Run.", COMMAND),)
TOOLS = ToolRegistry(Tools()).specs()


@pytest.mark.parametrize(
    "text",
    [
        # public reports, by what is wrong with the call
        ' to=functions.bash<|channel|>commentary json<|message|>{"command":"ls"}<|call|>',  # vllm#51977
        'call:bash{command:"ls"}',  # openclaude#380
        '<||DSML||tool_calls>\n<||DSML||invoke name="bash">',  # GenericAgent#804
        'On it. functions.bash:0 <|tool_call_argument_begin|> {"command":"ls"}',  # goose#8269
        "<tool_call>bashcommand</arg_key><arg_value>ls</arg_value></tool_call>",  # vllm#47190
        '[TOOL_CALL] {"tool": "bash", "args": {"command": "ls"}} [/TOOL_CALL]',  # lmstudio-bug-tracker#1177
        # Qwen2.5-Coder-1.5B
        'I will run it.\n\n```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```',
        '{{"name": "bash", "arguments": {"command": "ls"}}}',
        '<tool_call name="bash">\n<parameter name="command">ls</parameter>\n</tool_call>',
        "<bash><ls></bash>",
        # replies in the Berkeley leaderboard's results
        '<?xml ?>\n{"arguments": {"command": "ls"}, "name": "bash"}\n<?xml ?>',
        'Here are the calls:\n\n<functioncall>\n{"arguments": {"command": "ls"}, "name": "bash"}\n</functioncall>',
        "```json\n[{'name': 'bash', 'parameters': {'command': 'ls'}}]\n```",
        '```json\n{"command": "ls"}\n```',
        'bash("ls")',
        'bash(command="ls',
    ],
)
def test_an_attempt(text: str) -> None:
    found = find_attempt(text, BASH)
    assert found is not None
    assert found.name == "bash"
    assert found.text in text.replace("```json\n", "").replace("\n```", "")


@pytest.mark.parametrize(
    "text", [HERMES[:-20], HERMES.replace("2", "]"), INVOKE[: INVOKE.index("2")], "<add>\n<a>1</a>"]
)
def test_a_damaged_call_is_an_attempt(text: str) -> None:
    found = find_attempt(text, TOOLS)
    assert found is not None
    assert found.name == "add"


DESCRIBED = [
    f"{FENCE}\nThis adds.",
    f"For example:\n{FENCE}",
    "For example:\n\n```tool_code\nadd(a=1, b=2)\n```",
    f"{FENCE}\n\n{FENCE}\nLike so.",
    f"You send {BARE} to it.",
    f"You send\n{BARE}\nto it.",
    f"{BARE} is how.",
    "add(a=1, b=2) gives 3",
    "You could call\n\nadd(a=1, b=2)\n\nand get 3.",
    "[add(a=1, b=2)] is a list",
    "We have [add(a=1, b=2)]",
    "Send [TOOL_CALLS] first",
    "<tool_call> is how you call add.",
    "<ping></ping>",
    "Then <ping/> it.",
    "The list: <ul><li>add</li></ul>",
    'add\n{"a": 1, "b": 2}\nis GLM\'s way',
    '{"name": "Ada", "arguments": "none"}',
    '{"a": 1, "b": 2, "sum": 3}',
    '[{"name": "note"}, {"name": "add"}]',
    "I can add two numbers, or take a note.",
]


@pytest.mark.parametrize("text", DESCRIBED)
def test_a_call_in_prose_is_none(text: str) -> None:
    assert find_attempt(text, TOOLS) is None


@pytest.mark.parametrize("name", WRITTEN)
def test_a_quoted_or_drafted_call_is_none(name: str) -> None:
    call = WRITTEN[name]
    for text in (
        f"You write ``{call}`` there." if "\n" not in call else f"So:\n```\n{call}\n```\nIs it.",
        f"So:\n\n```xml\n{call}\n```\nand no more.",
        f"Look:\n```\n{call}\n```\n```\n{call}\n```\nTwice.",
        f'You write "{call}" there.',
        f"You write “{call}” there.",
        "He said:\n> " + call.replace("\n", "\n> "),
        f"<think>maybe\n{call}\n</think>Hello",
        f"maybe\n{call}\n</think>Hello",
    ):
        assert find_attempt(text, TOOLS) is None, text


def test_time_is_bounded_for_hostile_text() -> None:
    from growth import assert_linear, cpu_seconds

    unit = '{"arguments": {"bash": <tool_call> bash( {"name": '
    assert_linear(lambda size: cpu_seconds(lambda: find_attempt(unit * (size // len(unit)), BASH)), 10_000)
