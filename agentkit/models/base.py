"""The interface of a model to the rest of agentkit: a request in, source events out. Never executes a tool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from agentkit.events import SourceEvent
from agentkit.messages import MarkupPart, Message, TextPart, ThinkingPart, ToolCall
from agentkit.models.render_cache import RenderCache
from agentkit.toolspec import OutputSchema, ToolSpec

if TYPE_CHECKING:
    from agentkit.formats.format import Format


ABOUT_REPLY: Final = (
    *("groundingMetadata", "urlContextMetadata", "citationMetadata", "safetyRatings"),
    *("logprobsResult", "groundingAttributions"),
)
"""The fields of a reply of Gemini that say something about its parts. They are kept, and not sent back."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model.

    Args:
        messages: the conversation, oldest first. Read, never changed; a list is used directly, not copied.
        tools: the tools to offer.
        tool_choice: `auto`, `required` (some call), `none`, or the name of the one tool to call.
        parallel_tool_calls: False requests at most one call; None leaves the provider's default.
        stream: whether to request a stream from the provider. The events are the same either way.
        max_tokens: limit on generated tokens; None leaves the model's default.
        temperature: None leaves the provider's default.
        stop: strings at which the provider ends the text.
        extra: further fields of the provider's request body, passed on unchanged.
        output_schema: the schema of the reply once it makes no more calls; None for text. A model that has no native
            means to enforce it puts `formats.render_output_prompt` into the instructions.
        written: ids of the calls that the model wrote as text, although it calls natively: they go back as they were
            written, with their results in words (docs/prompts.md).
        rendered: what was made of this conversation for earlier requests, for a model that uses it.
    """

    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    tool_choice: str = "auto"
    parallel_tool_calls: bool | None = None
    stream: bool = True
    max_tokens: int | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    output_schema: OutputSchema | None = None
    written: Set[str] = frozenset()
    rendered: RenderCache = field(default_factory=RenderCache, repr=False, compare=False)

    def map_texts(self, change: Callable[[str], str]) -> Self:
        """Return the request with all texts of its messages changed, those in arguments, results and thinking too.

        A number in arguments becomes text if its text changes. Images, files, and blocks that only a provider reads
        stay as they are.
        """
        return replace(self, messages=[_map_texts(message, change) for message in self.messages])


def _map_texts(message: Message, change: Callable[[str], str]) -> Message:
    def changed(value: Any) -> Any:
        match value:
            case str():
                return change(value)
            case bool():
                return value
            case int() | float() if change(str(value)) != str(value):
                return change(str(value))
            case dict():
                return {change(key): changed(inner) for key, inner in value.items()}
            case list() | tuple():
                return type(value)(map(changed, value))
            case ToolCall():
                return replace(value, arguments=changed(value.arguments), raw=change(value.raw))
            case TextPart() | ThinkingPart() | MarkupPart():
                return replace(value, text=change(value.text))
        return value

    return replace(message, content=changed(message.content))


class Model(Protocol):
    """Anything that answers a `ModelRequest` with events; write one to plug in your own model.

    A model may also have an attribute `continues`: True if it continues its own last message, exactly where that ends,
    when the conversation sent ends with one (a prefilled reply). Only such a model is asked to continue a reply that
    its token limit cut inside a text call; without the attribute a model does not continue.
    """

    @property
    def name(self) -> str:
        """The model string, such as `openai:gpt-5`."""
        ...

    @property
    def format(self) -> str | Format | None:
        """The text format in which this model writes calls, by name or declaration; None if it calls natively."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        """Answer a request. Ends with exactly one `Finish`, or raises `ProviderError`.

        For a model with a `format` the calls are still inside the `Text` events: the processor reads them.
        """
        ...


class ClosableModel(Model, Protocol):
    """A model that holds connections, as returned by `model("openai:…")`. `async with` closes them at its end."""

    async def aclose(self) -> None:
        """Close the connections made in the running event loop; the model can be used again afterwards."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *raised: object) -> None: ...


def names(model: Model) -> tuple[str, ...]:
    """Return the model strings of those that may answer for a model: several if it is a chain."""
    return getattr(model, "names", None) or (model.name,)


async def close(closable: object) -> None:
    """Close what can be closed: a generator, a model with connections."""
    aclose = getattr(closable, "aclose", None)
    if aclose is not None:
        await aclose()


def continues(model: Model) -> bool:
    """Return whether a model continues its own last message, see `Model`."""
    return bool(getattr(model, "continues", False))
