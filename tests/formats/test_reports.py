"""Public reports: texts that real models wrote, and the events of each.

A text is read as its calls or errors say; as text, in which a call was attempted, so that the model is asked again
(`lost_attempts`); or as mere text. `later` marks what the reader does not do yet, with what is missing. Inputs are our
own rebuilds; each report has variants of its kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from format_tools import spec

from agentkit.events import CallEnd, CallError, Event, SourceEvent, Text, merge
from agentkit.formats import Parser, ToolSpec, auto, parse, render_calls
from agentkit.messages import ToolCall
from agentkit.processor.error_results import unknown_tool
from agentkit.processor.lost_attempts import find_attempt

BASH = spec("bash", None, ("command",), command="string")
WEATHER = spec("get_weather", None, ("location",), location="string", date="string")
TOOLS = (BASH, WEATHER, spec("read_file", None, ("path",), path="string"))

LS = "bash(command='ls')"
PWD = "bash(command='pwd')"
ASKED = "asked again: bash"


def outcome(text: str, format: str, tools: Sequence[ToolSpec] = TOOLS) -> list[str]:
    """The calls and errors of a text, the same whole and by the character; or the tool that it tries to call."""
    declared = auto() if format == "auto" else format
    events = parse(text, declared, tools)
    parser = Parser(declared, tools)
    streamed: list[SourceEvent] = [event for c in text for event in parser.feed(c)]
    assert merge([*streamed, *parser.close()]) == events
    found = [said for event in events if (said := shown(event))]
    unread = find_attempt("".join(e.text for e in events if isinstance(e, Text)), tools) if not found else None
    return [f"asked again: {unread.name}"] if unread is not None else found


def shown(event: Event) -> str:
    """A call as Python writes it, or an error's code."""
    match event:
        case CallEnd(_, call):
            return f"{call.name}({', '.join(f'{k}={v!r}' for k, v in call.arguments.items())})"
        case CallError(_, code):
            return code
    return ""


def later(reason: str, format: str, text: str, *wanted: str) -> Any:
    """A row that the reader does not read so yet."""
    return pytest.param(format, text, [*wanted], marks=pytest.mark.xfail(strict=True, reason=reason))


def row(format: str, text: str, *wanted: str) -> Any:
    """A text in a format, and what is read of it."""
    return pytest.param(format, text, [*wanted])


def rows(*found: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("format", "text", "wanted"), found)


@rows(
    row("harmony", ' to=functions.bash<|channel|>commentary json<|message|>{"command":"ls"}<|call|>', LS),
    row("harmony", 'commentary to=functions.bash <|constrain|>json<|message|>{"command":"ls"}<|call|>', LS),
    row("harmony", '<|channel|>analysis<|message|>List.<|end|> to=functions.bash code<|message|>{"command":"ls"}', LS),
    row("harmony", 'assistant to=functions.bash<|channel|>commentary<|message|>{"command":"ls"}<|call|>', LS),
    row("harmony", "The recipient is written to=functions.bash and so on."),
)
def test_an_opening_whose_first_token_belongs_to_the_prompt(format: str, text: str, wanted: list[str]) -> None:
    """Sources: vllm#51977, hermes-agent#84231."""
    assert outcome(text, format) == wanted


@rows(
    row("gemma4", 'call:bash{command:"ls"}', ASKED),
    row("gemma4", "I look.\ncall:bash{command:ls}", ASKED),
    row("gemma4", "call: the bash {x}"),
    row("functiongemma", "call:bash{command:ls}", ASKED),
    row("kimi_k2", 'functions.bash:0{"command":"ls"}', ASKED),
    row("harmony", 'assistantcommentary to=functions.bash json{"command":"ls"}', ASKED),
    row("deepseek_v3", 'function bash\n```json\n{"command":"ls"}\n```', ASKED),
    row("mistral_compact", 'bash{"command":"ls"}', ASKED),
    row("glm45", "bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n", "invalid_json"),
    row("kimi_k2", 'In YAML, functions.bash is a key: {"a": 1}'),
)
def test_special_tokens_that_a_server_stripped(format: str, text: str, wanted: list[str]) -> None:
    """Sources: openclaude#380, mlx-vlm#1351, omlx#1854."""
    assert outcome(text, format) == wanted


def dsml(bar: str) -> str:
    """A call of DeepSeek V4 with these bars."""
    return (
        f'<{bar}DSML{bar}tool_calls>\n<{bar}DSML{bar}invoke name="bash">\n<{bar}DSML{bar}parameter name="command" '
        f'string="true">ls</{bar}DSML{bar}parameter>\n</{bar}DSML{bar}invoke>\n</{bar}DSML{bar}tool_calls>'
    )


@rows(
    row("deepseek_v4", dsml("||"), LS),
    row("deepseek_v4", dsml("|"), LS),
    row("deepseek_v4", dsml(":"), ASKED),
    row(
        "deepseek_v31",
        '<|tool_calls_begin|><|tool_call_begin|>bash<|tool_sep|>{"command":"ls"}<|tool_call_end|><|tool_calls_end|>',
        LS,
    ),
    row("deepseek_v31", '<｜tool call begin｜>bash<｜tool sep｜>{"command":"ls"}<｜tool call end｜>', ASKED),
    row("kimi_k2", '<｜tool_call_begin｜>functions.bash:0<｜tool_call_argument_begin｜>{"command":"ls"}', ASKED),
)
def test_delimiters_in_look_alike_characters(format: str, text: str, wanted: list[str]) -> None:
    """Sources: GenericAgent#804, flocks#687."""
    assert outcome(text, format) == wanted


def kimi(id: str) -> str:
    """A call of Kimi K2 with this id."""
    return f'<|tool_call_begin|>{id}<|tool_call_argument_begin|>{{"command":"ls"}}<|tool_call_end|>'


def hermes(name: str) -> str:
    """A call of Hermes with this name."""
    return f'<tool_call>\n{{"name": "{name}", "arguments": {{"command": "ls"}}}}\n</tool_call>'


@rows(
    row("kimi_k2", kimi("functions_bash_2"), LS),
    row("kimi_k2", kimi("bash:0"), LS),
    row("hermes", hermes("functions.bash"), LS),
    row("hermes", hermes("tools/bash"), LS),
    row("hermes", hermes("bash<|channel|>analysis"), LS),
    row("pythonic", "[functions.bash(command='ls')]", LS),
    row("hermes", hermes("bash_2"), "bash_2(command='ls')"),
    row("hermes", hermes("functions.sh"), "functions.sh(command='ls')"),
)
def test_a_name_with_other_decoration_than_the_templates(format: str, text: str, wanted: list[str]) -> None:
    """Sources: exo#2281, sglang#21377, llama.cpp#24658."""
    assert outcome(text, format) == wanted


def test_a_decorated_name_that_two_tools_fit_is_unknown() -> None:
    two = (*TOOLS, spec("bash_2", None, ("command",), command="string"))
    assert outcome(kimi("functions_bash_2"), "kimi_k2", two) == ["functions_bash_2(command='ls')"]


@pytest.mark.parametrize("name", ["functions.bash", "tools/bash", "bash<|channel|>analysis", "functions_bash_2"])
def test_a_decorated_name_of_a_native_call_is_answered_with_the_tool_that_was_meant(name: str) -> None:
    said = unknown_tool(name, ("bash", "read_file"))
    assert said == f"there is no tool {name!r}; did you mean 'bash'? The tools are: bash, read_file"


@rows(
    row("kimi_k2", 'On it. functions.bash:0 <|tool_call_argument_begin|> {"command":"ls"}', ASKED),
    row("deepseek_v31", 'bash<｜tool▁sep｜>{"command":"ls"}<｜tool▁call▁end｜>', ASKED),
    row("mistral_compact", 'On it. bash[ARGS]{"command":"ls"}', ASKED),
    row("plamo3", 'bash<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>{"command":"ls"}', ASKED),
)
def test_a_later_token_of_the_format_after_an_offered_tools_name(format: str, text: str, wanted: list[str]) -> None:
    """Source: goose#8269."""
    assert outcome(text, format) == wanted


@rows(
    row("glm45", "<tool_call>bashcommand</arg_key><arg_value>ls</arg_value></tool_call>", "invalid_json"),
    row("glm45", "<tool_call>bash\ncommand</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>", "invalid_arguments"),
    row(
        "qwen3_coder", "<tool_call>\n<functionbash>\n<parameter=command>\nls\n</parameter>\n</function>", "invalid_json"
    ),
)
def test_a_damaged_opening_in_unmistakable_markup(format: str, text: str, wanted: list[str]) -> None:
    """Source: vllm#47190."""
    assert outcome(text, format) == wanted


@rows(
    row("hermes", '[TOOL_CALL] {"tool": "bash", "args": {"command": "ls"}} [/TOOL_CALL]', ASKED),
    row("auto", '[TOOL_CALL]\n{"name": "bash", "arguments": {"command": "ls"}}\n[/TOOL_CALL]', LS),
    row("hermes", '[TOOL_REQUEST]{"name": "bash", "arguments": {"command": "ls"}}[END_TOOL_REQUEST]', ASKED),
    row("hermes", '<tool_use>{"name": "bash", "arguments": {"command": "ls"}}</tool_use>', ASKED),
)
def test_a_wrapper_that_no_format_declares(format: str, text: str, wanted: list[str]) -> None:
    """Source: lmstudio-bug-tracker#1177."""
    assert outcome(text, format) == wanted


@rows(
    row("qwen3_coder", "<function=bash>\n<parameter=command>ls</parameter>\n</function", LS),
    row("invoke", '<invoke name="bash">\n<parameter name="command">ls</parameter>\n</invoke', LS),
    row("glm45", "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call", LS),
    row("cline", "<bash><command>ls</command></bash", LS),
    row("hermes", '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call', LS),
    row("qwen3_coder", "<function=bash>\n<parameter=command>ls</parameter>\n", "truncated_call"),
    row("qwen3_coder", "<function=bash>\n<parameter=command>ls</paramet", "truncated_call"),
    row("qwen3_coder", "<function=bash>\n<parameter=command>ls", "truncated_call"),
)
def test_a_closing_tag_that_a_stop_string_cut(format: str, text: str, wanted: list[str]) -> None:
    """Source: OpenHands/software-agent-sdk#998."""
    assert outcome(text, format) == wanted


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("qwen3_coder", "<function=bash>\n<parameter=command>ls</parameter>\n"),
        ("invoke", '<invoke name="bash">\n<parameter name="command">ls</parameter>'),
        ("glm45", "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n"),
    ],
)
def test_a_call_that_is_cut_after_a_parameter_is_not_cut_inside_it(format: str, text: str) -> None:
    (error,) = [e for e in parse(text, format, TOOLS) if isinstance(e, CallError)]
    assert "inside 'command'" not in error.message


@rows(
    row("hermes", f"<think>a <think>b</think> maybe {hermes('bash')}</think>"),
    row("hermes", f"<think>a <think>b</think> maybe {hermes('bash')}</think>\n{hermes('read_file')}",
        "read_file(command='ls')"),
    row("qwen3_coder", "<think><think>x</think><function=bash>\n<parameter=command>\nls\n</parameter>\n"
        "</function></think>"),
    row("hermes", f"<think>a</think>\n{hermes('bash')}", LS),
    row("hermes", f"<think>The tag `<think>` opens it.</think>\n{hermes('bash')}", LS),
)  # fmt: skip
def test_nested_thinking(format: str, text: str, wanted: list[str]) -> None:
    """Source: inspect_ai#4385."""
    assert outcome(text, format) == wanted


@pytest.mark.parametrize("again", ["", "<think>", "\n<think>\n"])
def test_thinking_that_the_prompt_opened_may_open_once_more_at_the_start(again: str) -> None:
    events = parse(f"{again}a</think>\n{hermes('bash')}", "hermes", TOOLS, thinking=True)
    assert [shown(e) for e in events if shown(e)] == [LS]


DATE = '<tool_call>{"name": "bash", "arguments": {"command": "echo `date`"}}</tool_call>'
QWEN = "<tool_call>\n<function=bash>\n<parameter=command>\n{}\n</parameter>\n</function>\n</tool_call>"


@rows(
    row("hermes", f"Press the ` key.\n{DATE}", "bash(command='echo `date`')"),
    row("qwen3_coder", f"Use the ` sign:\n{QWEN.format('echo `date`')}", "bash(command='echo `date`')"),
    row("hermes", f"Press the ` key.\n{hermes('bash')}", LS),
    row(
        "mistral_compact",
        'Press the ` key.\n[TOOL_CALLS]bash[ARGS]{"command": "echo `date`"}',
        "bash(command='echo `date`')",
    ),
    row("pythonic", "Press the ` key.\n[bash(command='echo `date`')]", "bash(command='echo `date`')"),
    row("hermes", 'Like `<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>` this.'),
    row("hermes", "Like ``" + DATE + "`` this."),
    row("hermes", f"Press the ` key.\n{hermes('bash')}` is how.", ASKED),
)
def test_a_code_span_that_would_end_inside_a_call(format: str, text: str, wanted: list[str]) -> None:
    """Source: q27#30."""
    assert outcome(text, format) == wanted


GLM = "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>"


@rows(
    row("glm45", GLM.format("\n  x\n"), "bash(command='\\n  x\\n')"),
    row("hy_v3", GLM.format("\n  x\n").replace("bash\n", "bash<tool_sep>\n"), "bash(command='\\n  x\\n')"),
    row("glm45", GLM.format("x"), "bash(command='x')"),
    row("qwen3_coder", QWEN.format("\n  x\n"), "bash(command='\\n  x\\n')"),
    row("minimax_m2",
        '<invoke name="bash">\n<parameter name="command">\n  x</parameter>\n</invoke>', "bash(command='\\n  x')"),
)  # fmt: skip
def test_the_layout_of_a_family_is_not_that_of_another(format: str, text: str, wanted: list[str]) -> None:
    """Sources: vllm#48846, vllm#49567."""
    assert outcome(text, format) == wanted


@pytest.mark.parametrize("value", ["\n  x\n", "x", "\n"])
def test_a_value_is_written_without_line_breaks_of_another_family(value: str) -> None:
    assert render_calls("glm45", [ToolCall("", "bash", {"command": value})], TOOLS) == GLM.format(value)


@rows(
    row("qwen3_coder", '{"summary": "it wrote <function=bash><parameter=command>ls</parameter></function>"}'),
    row("qwen3_coder", '[1, {"a": "<tool_call><function=bash><parameter=command>ls</parameter></function>"}]'),
    row("invoke", """{"quote": "<invoke name='bash'><parameter name='command'>ls</parameter></invoke>"}"""),
    row("hermes", '{"summary": "<tool_call>{\\"name\\": \\"bash\\", \\"arguments\\": {}}</tool_call>"}'),
    row("auto", '\n{"summary": "it wrote <function=bash><parameter=command>ls</parameter></function>"}'),
    row("qwen3_coder", '{"summary": "it called bash"}\n' + QWEN.format("ls"), LS),
    row("qwen3_coder", '{"summary": ' + QWEN.format("ls"), LS),
    row("hermes", '{"summary": "it called bash"}\n' + hermes("bash"), LS),
)
def test_a_reply_that_is_json_and_quotes_a_call(format: str, text: str, wanted: list[str]) -> None:
    """Source: goose#10606."""
    assert outcome(text, format) == wanted


ONE, OTHER = '{"name": "bash", "arguments": {"command": "ls"}}', '{"name": "bash", "arguments": {"command": "pwd"}}'


@rows(
    row("hermes", f"<tool_call>\n{ONE}\n{OTHER}\n</tool_call>", LS, PWD),
    row("hermes", f"<tool_call>\n{ONE},\n{OTHER}\n</tool_call>", LS, PWD),
    row("longcat", f"<longcat_tool_call>{ONE}{OTHER}</longcat_tool_call>", LS, PWD),
    row("hermes", f"<tool_call>\n[{ONE}, {OTHER}]\n</tool_call>", LS, PWD),
    row("hermes", f"<tool_call>\n{ONE}\n<tool_call>\n{OTHER}\n</tool_call>", LS, PWD),
)
def test_two_envelopes_in_one_tag(format: str, text: str, wanted: list[str]) -> None:
    """Source: hermes-agent#25333."""
    assert outcome(text, format) == wanted


INVOKE = (
    '<function_calls>\n<invoke name="bash">\n<parameter name="command">ls</parameter>\n</invoke>\n</function_calls>'
)


@rows(
    row("qwen3_coder", f"<function=bash> opens a call.\n{QWEN.format('ls')}", LS),
    row("qwen3_coder", "The tag <function=bash> opens a call."),
    row("invoke", f'<invoke name="bash"> opens it.\n\n{INVOKE}', LS),
    row("cline", "The tag <bash> opens a call.\n<bash>\n<command>ls</command>\n</bash>", LS),
    row("hermes", f"<tool_call> opens a call.\n{hermes('bash')}", LS),
    row("qwen3_coder", f"<tool_call> opens a call.\n{QWEN.format('ls')}", LS),
)
def test_a_mention_in_prose_does_not_take_the_rest(format: str, text: str, wanted: list[str]) -> None:
    """Source: qwen3.8-Flash-DGX#29."""
    assert outcome(text, format) == wanted


@rows(
    row("deepseek_v4",
        '<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="location" string="true">Paris '
        '<｜DSML｜parameter name="date" string="true">tomorrow</｜DSML｜parameter>\n</｜DSML｜invoke>',
        "ambiguous_call"),
    row("qwen3_coder", "<function=get_weather>\n<parameter=location>\nParis <parameter=date>\ntomorrow\n</parameter>\n"
        "</function>", "ambiguous_call"),
    row("invoke", '<invoke name="get_weather"><parameter name="location">Paris <parameter name="date">x</parameter>'
        "</invoke>", "ambiguous_call"),
)  # fmt: skip
def test_half_a_parameter_in_a_value_does_not_run(format: str, text: str, wanted: list[str]) -> None:
    assert outcome(text, format) == wanted


@rows(
    row("pythonic", "[bash(command='it's here')]", "invalid_json"),
    row("hermes", "<tool_call>{'name': 'bash', 'arguments': {'command': 'it's here'}}</tool_call>", "invalid_json"),
    row("qwen3_coder", "<function=bash>\n<parameter=command>\nls\n<\\/parameter>\n</function>", "ambiguous_call"),
    row("xml", "<bash><command>ls<\\/command></bash>", "ambiguous_call"),
)  # fmt: skip
def test_what_is_not_cut_is_not_truncated(format: str, text: str, wanted: list[str]) -> None:
    assert outcome(text, format) == wanted
