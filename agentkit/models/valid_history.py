"""A conversation made fit for any provider: every call has one result, directly after it, under an id that fits.

Pure. Faults of providers and stores (a result without its call, a call without its result, an id used
twice) are repaired here, for all providers alike.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agentkit.checks.unicode import clean
from agentkit.errors import ConfigError
from agentkit.formats.teach import render_output_prompt
from agentkit.messages import (
    AssistantMessage,
    AssistantPart,
    FilePart,
    ImagePart,
    MarkupPart,
    Message,
    ProviderPart,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    UserPart,
)
from agentkit.models.base import ModelRequest
from agentkit.models.native_arguments import readable
from agentkit.models.render_cache import Taken

_LOG: Final = logging.getLogger("agentkit.models")

UNNAMED: Final = "unnamed"
"""The name of a call whose own was too damaged to read, in the conversation that is sent back to a model."""

_MAX_NAME = 64  # OpenAI's limit on a function's name; Anthropic allows 128
_JSON = json.JSONEncoder(ensure_ascii=False, default=str).encode
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]+")
_GO_ON = "If the request is done, answer it in words now. If another call is needed, make it."
_LOST = "No result: the run was interrupted before this call was answered."


@dataclass(frozen=True, slots=True)
class IdRule:
    """The rule of a provider for the ids of calls.

    Args:
        limit: the maximum number of characters.
        allowed: whether an id is acceptable, apart from its length.
    """

    limit: int
    allowed: Callable[[str], bool] = lambda id: id.isascii() and id.isprintable()


def conversation(
    messages: Sequence[Message], ids: IdRule, taken: Taken | None = None, written: Collection[str] = ()
) -> list[Message]:
    """The messages in the order and shape that every provider accepts.

    Each call is followed by its result, results in the order of their calls. A call without a result gets one with the
    code `interrupted`; a result without its call is omitted, as is an empty user message, which
    no provider accepts. Neighbours of one role are joined. Ids are unique and obey `ids`; a call and its result have
    the same one. `taken` are the ids used before, if these messages are a part of a conversation; `written` are those
    of calls that stay text, with their results as a user's message.
    """
    taken = {} if taken is None else taken
    return join_neighbours(message for message in _answered(messages, ids, taken, written) if not _is_empty(message))


def _is_empty(message: Message) -> bool:
    """Return whether a user says nothing, or the model only writes markup, as that of a call that was not read."""
    if isinstance(message, AssistantMessage):
        said = any(isinstance(part, TextPart | ToolCall) for part in message.content)
        return not said and any(isinstance(part, MarkupPart) for part in message.content)
    return isinstance(message, UserMessage) and not any(
        not isinstance(part, TextPart) or part.text.strip() for part in message.content
    )


def _answered(messages: Sequence[Message], ids: IdRule, taken: Taken, written: Collection[str]) -> Iterator[Message]:
    """Every assistant message with its results directly after it."""
    results = _results(messages)
    if lost := sum(isinstance(message, ToolMessage) for message in messages) - len(results):
        _LOG.warning("%d tool results are omitted from the request: no call of the conversation has their ids", lost)
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AssistantMessage):
            yield message
            continue
        fitted = fit_ids(message, ids, taken)
        answers = [_answer(results.get((at, place)), call) for place, call in enumerate(fitted.calls)]
        if answers and all(call.id in written and call.raw for call in message.calls):
            yield AssistantMessage(as_written(fitted.content))
            yield UserMessage(tuple(_in_words(answers)))
        else:
            yield fitted
            yield from answers


def as_written(content: Iterable[AssistantPart]) -> tuple[AssistantPart, ...]:
    """A turn as the model wrote it, its calls and their markup included."""
    pieces: list[str | AssistantPart] = []
    last = None
    for part in content:
        match part:
            case TextPart() | MarkupPart():
                pieces.append(part.text)
            case ThinkingPart(thought, None) if isinstance(last, MarkupPart):
                pieces.append(thought)  # it was read from the text, between its tags
            case ToolCall():
                pieces.append(part.raw)
            case _:
                pieces.append(part)
        last = part
    return merge_text(pieces)


def merge_text(pieces: Iterable[str | AssistantPart]) -> tuple[AssistantPart, ...]:
    """The parts of a turn; neighbouring texts become one part."""
    parts: list[AssistantPart] = []
    for piece in pieces:
        if not isinstance(piece, str):
            parts.append(piece)
        elif parts and isinstance(parts[-1], TextPart):
            parts[-1] = TextPart(parts[-1].text + piece)
        elif piece:
            parts.append(TextPart(piece))
    return tuple(parts)


def _in_words(answers: Iterable[ToolMessage]) -> Iterator[TextPart | ImagePart]:
    """Results in the words of a user. Without the last sentence, models repeat the call: see docs/prompts.md."""
    for answer in answers:
        what = "Result" if answer.error is None else "Error"
        yield TextPart(f"{what} of {fit_name(answer.name)}:\n{answer.text or '(no output)'}")
        yield from (part for part in answer.content if isinstance(part, ImagePart))
    yield TextPart(_GO_ON)


def _answer(result: ToolMessage | None, call: ToolCall) -> ToolMessage:
    if result is None:
        return ToolMessage(call.id, call.name, (TextPart(_LOST),), "interrupted")
    return replace(result, call_id=call.id)


def _results(messages: Sequence[Message]) -> dict[tuple[int, int], ToolMessage]:
    """The result of each call, by the call's message and its place there: the first result with its id after it."""
    found: dict[tuple[int, int], ToolMessage] = {}
    waiting: dict[str, list[tuple[int, int]]] = {}
    for at, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            fresh = {call.id: list[tuple[int, int]]() for call in message.calls}
            for place, call in enumerate(message.calls):
                fresh[call.id].append((at, place))
            waiting |= fresh  # an id that is used again belongs to the newer call
        elif isinstance(message, ToolMessage) and waiting.get(message.call_id):
            found[waiting[message.call_id].pop(0)] = message
    return found


def join_neighbours(messages: Iterable[Message]) -> list[Message]:
    """Neighbouring user messages as one, and neighbouring assistant messages."""
    out: list[Message] = []
    for message in messages:
        match out[-1] if out else None, message:
            case (UserMessage(a), UserMessage(b)):
                out[-1] = UserMessage(a + b)
            case (AssistantMessage(before), AssistantMessage(after)):
                out[-1] = AssistantMessage(before + after)
            case _:
                out.append(message)
    return out


def text_or_parts(
    parts: Sequence[UserPart], text_type: str, media: Callable[[ImagePart | FilePart], dict[str, Any]]
) -> str | list[dict[str, Any]]:
    """Text alone as one string, which every server understands; text with images or files as parts of these types."""
    texts = [clean(p.text) for p in parts if isinstance(p, TextPart)]
    if len(texts) == len(parts):
        return "\n\n".join(texts)
    return [{"type": text_type, "text": clean(p.text)} if isinstance(p, TextPart) else media(p) for p in parts]


def filled_parts(
    parts: Iterable[UserPart], media: Callable[[ImagePart | FilePart], dict[str, Any]], **kind: str
) -> Iterator[dict[str, Any]]:
    """The parts of which these are made; blank text is omitted, where an API refuses it."""
    for part in parts:
        if not isinstance(part, TextPart):
            yield media(part)
        elif part.text.strip():
            yield {**kind, "text": clean(part.text)}


def own_blocks(message: AssistantMessage, provider: str) -> dict[str, Mapping[str, Any]]:
    """The blocks that a provider keeps for its calls in a message, by their ids."""
    own = (part for part in message.content if isinstance(part, ProviderPart) and part.provider == provider)
    return {part.call_id: part.data for part in own if part.call_id}


def fit_id(id: str, rule: IdRule, taken: Taken) -> str:
    """An id like this one that obeys the rule and is not taken; added to `taken`, which counts the uses of each.

    The same conversation always gets the same ids, so that prompt caches stay valid.
    """
    fitted = id
    if not id or len(id) > rule.limit or not rule.allowed(id):
        fitted = f"call_{hashlib.sha256(clean(id).encode()).hexdigest()[:24]}"
    unique = fitted
    while unique in taken:
        taken[fitted] += 1
        number = f"_{taken[fitted]}"
        unique = fitted[: rule.limit - len(number)] + number
    taken[unique] = 1
    return unique


def fit_ids(message: AssistantMessage, rule: IdRule, taken: Taken) -> AssistantMessage:
    """A turn whose calls, with what a provider keeps for them, have ids of `fit_id`."""
    fits: dict[str | None, str] = {}
    content: list[AssistantPart] = []
    for part in message.content:
        if isinstance(part, ToolCall):
            fits[part.id] = fit_id(part.id, rule, taken)
            part = replace(part, id=fits[part.id])
        elif isinstance(part, ProviderPart) and part.call_id in fits:
            part = replace(part, call_id=fits[part.call_id])
        content.append(part)
    return AssistantMessage(tuple(content))


def fit_name(name: str) -> str:
    """A function name that providers accept: an unreadable one is replaced, characters they refuse become `_`."""
    return _NO_NAME.sub("_", name)[:_MAX_NAME] or UNNAMED


def system_text(messages: Sequence[Message]) -> str:
    """All system messages as one text."""
    return "\n\n".join(clean(m.content) for m in messages if isinstance(m, SystemMessage) and m.content)


def add_instructions(messages: Sequence[Message], *sections: str) -> list[Message]:
    """The conversation with these sections, if not empty, after the application's own instructions."""
    section = "\n\n".join(filter(None, sections))
    if not section:
        return list(messages)
    if messages and isinstance(messages[0], SystemMessage):
        return [SystemMessage(f"{messages[0].content}\n\n{section}"), *messages[1:]]
    return [SystemMessage(section), *messages]


def output_section(request: ModelRequest) -> str:
    """The instructions for a reply that must fit a schema; empty if it need not."""
    if request.output_schema is None:
        return ""
    return render_output_prompt(request.output_schema, tools=may_call(request))


def may_call(request: ModelRequest) -> bool:
    """Return whether the reply may call a tool."""
    return bool(request.tools) and request.tool_choice != "none"


def output_in_prompt(request: ModelRequest, *, constrained: bool) -> ModelRequest:
    """The request with its output's schema among the instructions.

    Args:
        request: as the agent created it.
        constrained: whether the provider also enforces the schema.
    """
    if request.output_schema is None:
        return request
    messages = add_instructions(request.messages, output_section(request))
    return replace(request, messages=messages, output_schema=request.output_schema if constrained else None)


def describe_output(request: ModelRequest) -> ModelRequest:
    """The request to a compatible server, if the reply must fit a schema.

    Such servers enforce a schema without showing it to the model; and with tools they would also apply it to calls.
    Source: vLLM issue 39929.
    """
    return output_in_prompt(request, constrained=not may_call(request))


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """A call's arguments as an object, to be sent back; for a call that could not be read, what the model wrote.

    Source: the key `INVALID_JSON` is what Anthropic's guide to fine-grained tool streaming recommends.
    """
    if call.arguments or call.format is not None or not call.raw.strip():
        return dict(call.arguments)
    arguments = readable(call.raw)
    return {"INVALID_JSON": clean(call.raw)} if arguments is None else arguments


def arguments_text(call: ToolCall) -> str:
    """A call's arguments as JSON text: as the model wrote it if that is one plain object."""
    arguments = arguments_of(call)
    if call.format is None and call.raw.startswith("{"):
        try:
            if json.loads(call.raw) == arguments:
                return clean(call.raw)
        except (ValueError, RecursionError):
            pass
    return json_text(arguments)


def json_text(value: Mapping[str, Any]) -> str:
    """JSON text in readable Unicode; values that JSON cannot represent are written as strings."""
    return clean(_JSON(value))


def named_tool(request: ModelRequest) -> str | None:
    """The one tool that must be called, if the request names one.

    Raises:
        ConfigError: no offered tool has that name.
    """
    if request.tool_choice in ("auto", "required", "none"):
        return None
    names = [spec.name for spec in request.tools]
    if request.tool_choice not in names:
        offered = ", ".join(names) or "none at all"
        raise ConfigError(
            f"tool_choice must be auto, required, none or the name of an offered tool; found {request.tool_choice!r}. "
            f"Offered are: {offered}"
        )
    return request.tool_choice
