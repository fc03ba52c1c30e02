"""What a template adds between turns, taken from real tokenizers of five families' shapes."""

from __future__ import annotations

from typing import Any

import pytest
from small_tokenizers import FORMATS, tokenizer

from agentkit.errors import ConfigError
from agentkit.messages import AssistantMessage, ImagePart, SystemMessage, ToolCall, ToolMessage, UserMessage
from agentkit.rollout.tokens.chat_template import ChatTemplate
from agentkit.toolspec import ToolSpec

ADD = ToolSpec(
    "add",
    "Add two numbers.",
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
)
RESULT = ToolMessage("abcdefghi", "add", '3 "é"\n')
SECOND = ToolMessage("123456789", "add", "4")
FAMILIES = tuple(FORMATS)


def template(family: str, **more: Any) -> ChatTemplate:
    return ChatTemplate(tokenizer(family), **{"format": FORMATS.get(family, "hermes"), "tools": [ADD]} | more)


def decoded(family: str, ids: list[int]) -> str:
    text: str = tokenizer(family).decode(ids, skip_special_tokens=False)
    return text


AFTER_A_CALL = {
    "chatml": '<|im_end|>\n<|im_start|>user<tool_response>\n3 "é"\n\n</tool_response><|im_end|>\n'
    "<|im_start|>assistant\n",
    "headers": '<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n\n"3 \\"é\\"\\n"<|eot_id|>'
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "instructions": '</s>[TOOL_RESULTS]{"content": "3 \\"é\\"\\n", "call_id": "abcdefghi"}[/TOOL_RESULTS]',
    "observed": '<|observation|><tool_response>\n3 "é"\n\n</tool_response><|assistant|>',
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_result_as_the_template_writes_it(family: str) -> None:
    ids = template(family).answers([RESULT])
    assert decoded(family, ids) == AFTER_A_CALL[family]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_ids_are_those_of_the_whole_rendering(family: str) -> None:
    """Nothing is glued: as if the template had rendered the conversation and the tokenizer had read it at once."""
    tok = tokenizer(family)
    chat: list[dict[str, Any]] = [
        {"role": "user", "content": "What is one plus two?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": i, "type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": 2}}}
                for i in (("abcdefghi",) if family == "headers" else ("abcdefghi", "123456789"))
            ],
        },
        {"role": "tool", "tool_call_id": "abcdefghi", "name": "add", "content": RESULT.text},
        {"role": "tool", "tool_call_id": "123456789", "name": "add", "content": "4"},
    ]
    whole = tok.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
    written = template(family).answers([RESULT, SECOND])
    assert whole[-len(written) :] == written


@pytest.mark.parametrize("family", FAMILIES)
def test_the_end_of_the_turn_stands_there_once(family: str) -> None:
    made = template(family)
    with_end = made.answers([RESULT])
    assert with_end[0] in made.end_ids
    assert made.answers([RESULT], turn=[with_end[0]]) == with_end[1:]  # the engine included it
    assert made.answers([RESULT], turn=made.encoder.plain("x")) == with_end  # it stopped at a string


def test_the_line_break_after_the_end_of_a_turn_is_kept() -> None:
    """Verl issue 6501."""
    made = template("chatml")
    [end] = tokenizer("chatml").encode("<|im_end|>")
    assert decoded("chatml", made.answers([UserMessage("Go on.")], turn=[end])).startswith("\n<|im_start|>user\nGo on.")


def test_another_end_stands_for_it_unless_it_names_the_next_role() -> None:
    [padding] = tokenizer("chatml").encode("<|endoftext|>")
    assert decoded("chatml", template("chatml").answers([RESULT], turn=[padding])).startswith("\n<|im_start|>user")
    [user] = tokenizer("observed").encode("<|user|>")
    assert decoded("observed", template("observed").answers([RESULT], turn=[user])).startswith("<|observation|>")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_prompt_is_the_templates(family: str) -> None:
    made = template(family)
    chat = [{"role": "user", "content": "What is one plus two?"}]
    function = {"name": "add", "description": "Add two numbers.", "parameters": dict(ADD.parameters)}
    tools = [{"type": "function", "function": function}]
    expected = tokenizer(family).apply_chat_template(chat, tools=tools, add_generation_prompt=True, return_dict=False)
    assert made.native
    assert made.prompt([UserMessage("What is one plus two?")]) == expected


def test_a_prompt_with_turns_of_the_model() -> None:
    call = ToolCall("c1", "add", {"a": 1, "b": 2})
    said = template("chatml", tools=[]).prompt(
        [SystemMessage("Be short."), UserMessage("1+2?"), AssistantMessage(call), ToolMessage("c1", "add", "3")]
    )
    assert decoded("chatml", said) == (
        "<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\n1+2?<|im_end|>\n<|im_start|>assistant\n"
        '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user<tool_response>\n3\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )


def test_only_the_tools_of_the_trajectory_are_shown() -> None:
    other = ToolSpec("other", "", {"type": "object", "properties": {}})
    made = template("chatml", tools=[ADD, other])
    shown = decoded("chatml", made.prompt([UserMessage("Hi.")], [other]))
    assert '"other"' in shown
    assert '"add"' not in shown


@pytest.mark.parametrize(("family", "format"), [("bare", "hermes"), ("chatml", "xml"), ("instructions", "qwen3_coder")])
def test_a_template_that_shows_no_tools_or_another_format_is_taught(family: str, format: str) -> None:
    made = template(family, format=format)
    assert not made.native
    prompt = decoded(family, made.prompt([UserMessage("What is one plus two?")]))
    assert "You can call the tools listed here." in prompt
    answer = decoded(family, made.answers([RESULT, SECOND]))
    assert '3 "é"' in answer
    assert answer.count("</tool_resp" if format in ("hermes", "qwen3_coder") else "</tool_result>") == 2


def test_whether_the_template_is_used_can_be_said() -> None:
    made = template("chatml", native=False)
    assert "You can call the tools" in decoded("chatml", made.prompt([UserMessage("Hi.")]))


def test_a_template_that_rewrites_history_says_so() -> None:
    assert template("chatml").rewrites == ()
    assert template("forgetful").rewrites == (
        "drops earlier thinking when the user speaks again",
        "trims white space around replies",
    )


def test_a_picture_is_told_in_words() -> None:
    picture = ToolMessage("c", "draw", ("Here: ", ImagePart(b"\x89PNG\r\n\x1a\n0000")))
    assert "Here: (image/png, 12 bytes, not shown)" in decoded("chatml", template("chatml").answers([picture]))
    with pytest.raises(ConfigError, match="a tokenizer has no tokens for it"):
        template("chatml").prompt([UserMessage(ImagePart(b"\x89PNG\r\n\x1a\n0000"))])


BROKEN = {
    "no end": (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
        "no token that ends a turn follows",
    ),
    "upper": ("{% for m in messages %}{{ m.content | upper }}<|im_end|>{% endfor %}", "own turn is missing"),
    "shortened": (
        "{% for m in messages %}{{ m.content[:9] if m.role == 'user' else m.content }}<|im_end|>{% endfor %}",
        "missing in the rendering",
    ),
    "numbered": (
        "{% for m in messages %}{{ loop.index }} {{ m.content }}<|im_end|>{% endfor %}",
        "differently later in a conversation",
    ),
    "changed": (
        "{% for m in messages %}{{ m.content | replace('\"', '”') }}<|im_end|>{% endfor %}",
        "changes a result's text in a way that cannot be repeated",
    ),
    "raising": ("{{ raise_exception('not today') }}", "refuses a conversation of user, assistant, user: .*not today"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_template_that_cannot_be_continued_is_refused_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, said = BROKEN[name]
    monkeypatch.setattr(tokenizer("bare"), "chat_template", source)
    with pytest.raises(ConfigError, match=said):
        template("bare")


def test_the_end_of_a_turn_must_be_a_control_token() -> None:
    with pytest.raises(ConfigError, match="end_of_turn='STOP' is not one of the tokenizer's control tokens"):
        template("chatml", end_of_turn="STOP")
