"""The text after a turn is the template's own, however the turn ended, and with any white space.

The expected ids are those of one text, encoded at once: the template's rendering, with the model's turn as it wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from published_templates import NATIVE, TAUGHT, published
from small_tokenizers import FORMATS, TEMPLATES, tokenizer

from agentkit import formats
from agentkit.messages import ToolMessage, UserMessage
from agentkit.rollout import Generation
from agentkit.rollout.tokens.chat_template import ChatTemplate
from agentkit.rollout.tokens.token_history import TokenHistory
from agentkit.schemas import flavours
from agentkit.toolspec import ToolSpec

ADD = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
WHITE = ("", "\n", "\n\n", " ", "\t", " \n", "\n ", "\r\n", "\u00a0", "\u2028", "\n\n\n  ")
ENDINGS = ("told", "told, with what follows", "trimmed", "stop string", "length", "text only", "another end")
ASKED = {"role": "user", "content": "Hello."}
ANSWER = ToolMessage("call_0001", "add", "4")


@dataclass(frozen=True)
class Boundary:
    """A template's text: `before` a turn, the turn's own call or text, and what comes `after` it, its end first."""

    before: str
    turn: str
    after: str
    answer: ToolMessage | UserMessage


def rendered(made: ChatTemplate, chat: list[dict[str, Any]], prompt: bool = True) -> str:
    shown = [flavours.openai_chat(ADD)] if made.native else []
    text: str = made.encoder.tokenizer.apply_chat_template(
        chat, tools=shown or None, add_generation_prompt=prompt, tokenize=False
    )
    return text


def said(made: ChatTemplate, format: str) -> Iterator[Boundary]:
    """A turn of text, and what a user says next; a call in a format that the template does not know, and its result."""
    chat = [ASKED, {"role": "assistant", "content": "zqmark"}]
    texts = [("It is three.", "Go on.", UserMessage("Go on."))]
    if not made.native:
        call = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
        texts.append((call, formats.render_result(format, "add", "call_0001", "4", None, [ADD]), ANSWER))
    for turn, content, answer in texts:
        whole = rendered(made, [*chat, {"role": "user", "content": content}])
        _, mark, after = whole.partition("zqmark")
        assert mark
        yield Boundary(rendered(made, [ASKED]), turn, after, answer)


def called(made: ChatTemplate) -> Iterator[Boundary]:
    """A call as the template writes it, and its result."""
    ends = [text for text in made._ends if text in rendered_call(made, ASKED)]
    before, whole = rendered(made, [ASKED]), rendered_call(made, ASKED)
    if not whole.startswith(before):
        return  # it writes an empty thought before the call: that turn is another one
    rest = whole[len(before) :]
    end = min(ends, key=lambda text: (rest.find(text) if text in rest else len(rest), -len(text)))
    turn, _, _ = rest.partition(end)
    yield Boundary(before, turn, rest[len(turn) :], ANSWER)


def rendered_call(made: ChatTemplate, *asked: dict[str, Any]) -> str:
    for arguments in ({"a": 1}, json.dumps({"a": 1})):
        call = {"id": ANSWER.call_id, "type": "function", "function": {"name": "add", "arguments": arguments}}
        answer = {"role": "tool", "tool_call_id": ANSWER.call_id, "name": "add", "content": "4"}
        try:
            return rendered(made, [*asked, {"role": "assistant", "content": "", "tool_calls": [call]}, answer])
        except TypeError:
            continue
    raise AssertionError("the template takes no calls")


def differences(made: ChatTemplate, edge: Boundary) -> Iterator[tuple[str, str]]:
    """Each ending with each white space whose ids or mask are not those of the rendering; none if all is well."""
    encoder, spelt = made.encoder, made.encoder.control
    end = next(id for id in encoder.plain(edge.after) if id in spelt)
    for white in WHITE:
        for ending in ENDINGS:
            prompt, own = encoder.plain(edge.before), encoder.plain(edge.before + edge.turn + white)
            if own[: len(prompt)] != prompt:
                continue  # the tokenizer joins the turn with the prompt: no model can write it so
            own, after = own[len(prompt) :], encoder.plain(edge.after)
            wrote = list(own)
            match ending:
                case "told":
                    wrote, rest = [*own, end], after[1:]
                case "told, with what follows":
                    first = 1 + next((at for at, id in enumerate(after[1:]) if id in spelt), 0)
                    wrote, rest = [*own, *after[:first]], after[first:]
                case "another end":
                    other = next((id for id in made.end_ids if id != end), end)
                    if spelt[end] in ("<|observation|>", "<|user|>") or other == end:
                        continue
                    wrote, rest = [*own, other], after[1:]
                case _:
                    rest = after
            history = TokenHistory(made, [UserMessage("Hello.")], [ADD])
            history._ids, history._prompt = list(prompt), len(prompt)  # the template may show tools in the first one
            finish: Any = "length" if ending == "length" else "stop"
            if ending == "text only":
                history.wrote(Generation(edge.turn + white))
            else:
                history.wrote(Generation(token_ids=wrote, finish=finish))
            assert history.answered([edge.answer])
            record = history.record()
            if record.response_ids != (*wrote, *rest) or record.response_mask != (*[1] * len(wrote), *[0] * len(rest)):
                yield ending, white


def all_differences(made: ChatTemplate, format: str) -> list[tuple[str, str, str]]:
    edges = [*said(made, format), *(called(made) if made.native else ())]
    return [(edge.turn, *found) for edge in edges for found in differences(made, edge)]


@pytest.mark.parametrize("family", sorted(TEMPLATES))
def test_of_the_families_shapes(family: str) -> None:
    format = FORMATS.get(family, "hermes")
    assert all_differences(ChatTemplate(tokenizer(family), format=format, tools=[ADD]), format) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", [*NATIVE, *TAUGHT])
def test_of_the_vendors_templates(name: str) -> None:
    tok = published(name)
    for format in {NATIVE.get(name, "hermes"), "hermes"}:
        assert all_differences(ChatTemplate(tok, format=format, tools=[ADD]), format) == []
