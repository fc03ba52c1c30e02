"""Text calling on any model: tools go into the prompt, calls and results travel as text in one format.

Knows a model by its protocol and a format by its functions; parses nothing: the calls stay inside the `Text` events,
for the processor to read.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from agentkit import formats
from agentkit.checks.missing_await import Closing
from agentkit.errors import ConfigError, FormatError
from agentkit.events import Finish, InventedResult, SourceEvent
from agentkit.foreign.absent import suggest_attributes
from agentkit.formats.control import in_strings
from agentkit.formats.format import Format
from agentkit.formats.teach import how_to_write
from agentkit.messages import (
    AssistantMessage,
    AssistantPart,
    ImagePart,
    MarkupPart,
    MaterialPart,
    Message,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.models import valid_history
from agentkit.models.base import Model, ModelRequest, close, continues
from agentkit.models.render_cache import RenderCache, Taken
from agentkit.models.servers import MARK_TOKENS, SERVERS, Constrained, CutOut
from agentkit.toolspec import ToolSpec

if TYPE_CHECKING:
    from agentkit.models.constraint import Constraint

_IDS = valid_history.IdRule(limit=10_000)  # only the model reads them
_AS_WRITTEN = ("invalid_json", "invalid_arguments", "truncated_call")
"""The errors of a call that could not be executed as it was written."""


@suggest_attributes
class TextCalling(Closing):
    """A model that writes its calls as text.

    Args:
        model: the underlying model; its requests have no native tools.
        format: how calls look, by name or declaration.
        constrained: constrain the calls by a grammar, in the form that the model's server expects; see `model`.

    Raises:
        FormatError: no format has that name.
        ConfigError: `auto`, which is only for reading; or the server is not known to accept a grammar.
    """

    def __init__(self, model: Model, format: str | Format | None, *, constrained: Constrained = False) -> None:
        self.inner = model
        if format == "auto":
            raise ConfigError(
                "format='auto' is for reading: a model must be taught one format; name it, and read what it writes in "
                "any other with ProcessorConfig(formats='auto')"
            )
        self.constraint: Constraint | None = None
        """The constraint on the calls; see `agentkit.models.check_constraint`."""
        if constrained:
            from agentkit.models.constraint import Constraint  # loads the grammars

            self.constraint = Constraint.of(model, format, constrained)
        if format is None:
            raise ConfigError(f"{model.name}: calls as text need a format, such as format='hermes'")
        self._format = formats.get(format)

    def __repr__(self) -> str:
        return f"TextCalling({self.inner!r}, {self._format.name!r})"

    @property
    def name(self) -> str:
        """The model string of the underlying model."""
        return self.inner.name

    @property
    def format(self) -> str | Format:
        """The format: its name if it is in the catalogue, otherwise its declaration."""
        return self._format.name if self._format in formats.CATALOG else self._format

    @property
    def continues(self) -> bool:
        """Return whether the underlying model continues its own last message."""
        return continues(self.inner)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[SourceEvent, None]:
        """Answer a request; the calls are still inside the `Text` events."""
        valid_history.named_tool(request)
        choice, parallel = request.tool_choice, request.parallel_tool_calls
        section = formats.render_prompt(self._format, request.tools, tool_choice=choice, parallel=parallel)
        messages = text_messages(request.messages, self._format, request.tools, request.rendered)
        stops = self._stops(request)
        constrained = self.constraint.constrain(request) if self.constraint is not None else None
        asked = replace(
            request,
            messages=valid_history.add_instructions(messages, section, valid_history.output_section(request)),
            tools=(),
            tool_choice="auto",
            parallel_tool_calls=None,
            output_schema=None,  # a provider that enforced it on the text would allow no call
            stop=(*request.stop, *stops),
            extra={**self._asks(), **(constrained.fields if constrained is not None else {}), **request.extra},
        )
        source = self.inner.stream(asked)
        events = source if constrained is None else constrained.watch(source)
        cut_out = CutOut()
        try:
            async for event in events:
                cut_out.sees(event)
                if isinstance(event, Finish):
                    error = cut_out.error(event, getattr(self.inner, "provider", self.name), self._server())
                    if error is not None and (not stops or cut_out.spent > MARK_TOKENS):
                        raise error
                    if error is not None:  # it ends where a result began
                        yield InventedResult(stops[0])
                yield event
        finally:
            await close(events)
            await close(source)

    def _server(self) -> str | None:
        """The kind of server, if it was named; the fields for it are those of chat completions."""
        return getattr(self.inner, "server", None) if self.name.startswith("openai:") else None

    def _asks(self) -> Mapping[str, Any]:
        """The fields that make the server leave calls in the text; the model's own settings take precedence."""
        server = self._server()
        own = getattr(getattr(self.inner, "settings", None), "extra", None) or {}
        return {k: v for k, v in SERVERS[server].text.items() if k not in own} if server is not None else {}

    def _stops(self, request: ModelRequest) -> Sequence[str]:
        """Where a named server ends a reply: at a result, which only a tool returns.

        In an argument that is data; so a reply that was cut inside a call is asked for again without it.
        """
        cut = any(isinstance(m, ToolMessage) and m.error == "truncated_call" for m in request.messages[-1:])
        mark = self._format.result.mark
        return (mark,) if self._server() is not None and mark and request.tools and not cut else ()

    async def aclose(self) -> None:
        """Close the connections of the underlying model, if it has any."""
        await close(self.inner)


def text_messages(
    messages: Sequence[Message], format: Format, tools: Sequence[ToolSpec], rendered: RenderCache | None = None
) -> list[Message]:
    """A conversation without native calls: calls as text of the assistant, results as user messages.

    A turn that was written in this format is reproduced character by character. Results of one turn come in one
    message; their images stay images. Of a turn whose calls all failed as they were written, only the rest is
    reproduced, with the reasons and an example of each tool. Other material (`MaterialPart`) is quarantined like a
    result.
    """
    make = partial(_messages, format=format, tools=tools)
    return valid_history.join_neighbours((rendered or RenderCache()).of("text", messages, make, (format, *tools)))


def _messages(messages: Sequence[Message], taken: Taken, format: Format, tools: Sequence[ToolSpec]) -> list[Message]:
    rendered: list[Message] = []
    fitted = valid_history.conversation(messages, _IDS, taken)
    refused: Mapping[str, str] = {}
    for at, message in enumerate(fitted):
        match message:
            case AssistantMessage():
                refused = _refused(fitted[at + 1 : at + 1 + len(message.calls)])
                content = _without_calls(message.content) if refused else _assistant(message, format, tools)
                if content:
                    rendered.append(AssistantMessage(content))
            case ToolMessage() if refused:  # its turn comes directly before it
                last = refused[message.name] == message.call_id
                rendered.append(UserMessage(_correction(message, format, tools if last else ())))
            case ToolMessage():
                rendered.append(UserMessage(_result(message, format, tools)))
            case UserMessage(content) if any(isinstance(part, MaterialPart) for part in content):
                safe = partial(formats.quarantine, format=format, tools=tools)  # the user's own words stay as they are
                parts = (TextPart(safe(p.text)) if isinstance(p, MaterialPart) else p for p in content)
                rendered.append(UserMessage(tuple(parts)))
            case _:
                rendered.append(message)
    return valid_history.join_neighbours(rendered)


def _refused(results: Sequence[Message]) -> Mapping[str, str]:
    """The last call's id of each tool, if none of a turn's calls could be executed as it was written.

    Such calls are not sent again, since models repeat what they see of them: see docs/prompts.md.
    """
    refused = [m for m in results if isinstance(m, ToolMessage) and m.error in _AS_WRITTEN]
    return {m.name: m.call_id for m in refused} if len(refused) == len(results) else {}


def _without_calls(content: Sequence[AssistantPart]) -> tuple[AssistantPart, ...]:
    """Return the words of a turn and the parts of its provider, without the calls and their markup."""
    kept = tuple(filter(_is_alone, content))
    return kept if any(not isinstance(part, ThinkingPart) for part in kept) else ()


def _is_alone(part: AssistantPart) -> bool:
    """Return whether a part is of use without a call, and was not read from the text."""
    match part:
        case TextPart(text):
            return bool(text.strip())
        case ThinkingPart(_, provider):
            return provider is not None
    return isinstance(part, ProviderPart) and part.call_id is None


def _correction(message: ToolMessage, format: Format, tools: Sequence[ToolSpec]) -> tuple[TextPart | ImagePart, ...]:
    """Why a call failed, and how it is written, if its tool is among these."""
    why = formats.quarantine(message.text, format, tools)
    how = [how_to_write(format, tool, tools) for tool in tools if tool.name == message.name]
    said = "\n\n".join([f"Your call of {message.name or 'a tool'} failed: {why}", *how])
    return (TextPart(said), *(p for p in message.content if isinstance(p, ImagePart)))


def _result(message: ToolMessage, format: Format, tools: Sequence[ToolSpec]) -> tuple[TextPart | ImagePart, ...]:
    images = tuple(p for p in message.content if isinstance(p, ImagePart))
    text = message.text or ("(see the image)" if images else "")
    said = formats.render_result(format, message.name, message.call_id, text, message.error, tools)
    return (TextPart(said), *images)


def _assistant(message: AssistantMessage, format: Format, tools: Sequence[ToolSpec]) -> tuple[AssistantPart, ...]:
    """A turn as text and the parts that only its provider reads: as it was written, if that was in this format."""

    def is_own(part: AssistantPart) -> bool:
        return not isinstance(part, ToolCall) or (part.format == format.name and bool(part.raw))

    if all(map(is_own, message.content)):
        return valid_history.as_written(message.content)
    pieces: list[str | AssistantPart] = []
    for own, run in groupby(message.content, is_own):
        if own:
            texts = (p.text if isinstance(p, TextPart) else p.raw if isinstance(p, ToolCall) else p for p in run)
            pieces += [piece for piece in texts if not isinstance(piece, MarkupPart)]
        else:
            pieces.append(_written([call for call in run if isinstance(call, ToolCall)], format, tools))
    return valid_history.merge_text(pieces)


def _written(calls: Sequence[ToolCall], format: Format, tools: Sequence[ToolSpec]) -> str:
    """Calls from elsewhere in this format, or as JSON if it cannot represent them, or they could not be read.

    Their arguments may pass on what tools returned, and are quarantined like it.
    """
    safe = partial(formats.quarantine, format=format, tools=tools)
    readable = [
        replace(c, name=valid_history.fit_name(c.name), arguments=in_strings(valid_history.arguments_of(c), safe))
        for c in calls
    ]
    try:
        return f"\n{formats.render_calls(format, readable, tools)}\n"
    except FormatError:
        said = [
            json.dumps({"name": c.name, "arguments": c.arguments}, ensure_ascii=False, default=str) for c in readable
        ]
        return "\n{}\n".format("\n".join(said))
