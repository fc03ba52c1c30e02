"""A tool's return value, its context and the optional base class: `ToolResult`, `ToolContext` and `Tool`.

Knows messages and errors; knows no registry, no model and no format. A tool need not inherit from anything here: any
class with a decorated method is one.
"""

from __future__ import annotations

import inspect
import io
from collections.abc import Awaitable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic, Self, Unpack

from agentkit.checks.keys import words
from agentkit.checks.spelling import ByAttribute, Nothing, refuse_unknown
from agentkit.checks.type_variables import TypeVar
from agentkit.checks.unicode import clean
from agentkit.errors import ConfigError, ErrorCode, show_value
from agentkit.foreign import argument_names
from agentkit.foreign.absent import suggest_attributes
from agentkit.messages import FilePart, ImagePart, ResultContent, TextPart, text_as_made
from agentkit.tool.declare import OpenAPISchema, XMLSchema, declarations_of
from agentkit.tool.output import is_pending, pending_parts, text_of

StateT = TypeVar("StateT", covariant=True, default=Any)
"""What the application passed to a run."""

SILENT_ERROR: Final = "the tool failed and did not say why"
"""What a model reads for `ToolResult(error="")`."""


_PLAIN: Final = frozenset((str, int, float, bool, dict, type(None)))
"""The types that most tools return; they need no further inspection."""


_PARTS: Final = (TextPart, ImagePart, FilePart)
_KEYWORDS: Final = ("output", "error", "code", "content", "metadata", "reward", "success")


@suggest_attributes
@dataclass(frozen=True, slots=True, init=False)
class ToolResult(ByAttribute):
    """A tool's answer to one call: an output, or an error.

    Args:
        output: the Python value, kept for the application; None if there is only `content` or an `error`. A `TextPart`,
            an `ImagePart` or an image of PIL, or a list of them (possibly with strings), becomes the beginning of
            `content`.
        error: what went wrong, in words the model can act on, or as an exception; None for success.
        code: the error's stable code; `tool_error` by default.
        content: further text and images that the model reads after the output.
        metadata: for the application; never shown to the model.
        reward: a score for training; never shown to the model.
        success: for results in AgentPress's form: `ToolResult(success=False, output="no such file")` is an error with
            its output as the message. None means that only `error` decides.

    Raises:
        ConfigError: an unknown argument.
        ValueError: an `error` that is neither a string nor an exception, a `code` without an `error`, or `success` that
            contradicts `error`.

    >>> ToolResult({"rows": 3}).text
    '{"rows": 3}'
    >>> ToolResult(error="no such file: 'a.txt'").code
    'tool_error'
    """

    output: Any
    error: str | None
    code: ErrorCode | None
    content: ResultContent
    metadata: Mapping[str, Any]
    reward: float | None

    def __init__(
        self,
        output: Any = None,
        error: str | BaseException | None = None,
        *,
        code: ErrorCode | None = None,
        content: Any = (),
        metadata: Mapping[str, Any] | None = None,
        reward: float | None = None,
        success: bool | None = None,
        **unknown: Unpack[Nothing],  # `takes` would double the cost of constructing a result
    ) -> None:
        if len(unknown):  # not by truthiness, which type checkers would narrow
            refuse_unknown("ToolResult", unknown, _KEYWORDS, argument_names.TOOL_RESULT)
        if error is not None:
            if type(output) is bool:  # AgentPress's order is success, output
                raise ConfigError(
                    f"ToolResult({output}, {error!r:.60}): write ToolResult(success={output}, output=…), or "
                    "ToolResult(output) and ToolResult(error=…)"
                )
            error = error if isinstance(error, str) else _message(error)
        if success is not None and type(success) is not bool:
            raise ConfigError(f"ToolResult(success={success!r:.60}): expected True or False, or None")
        if success is False and error is None:
            output, error = None, "" if output is None else text_of(output)
        if success is True and error is not None:
            raise ValueError(f"ToolResult(success=True, error={error!r}) is contradictory; remove one of them")
        if error is None and code is not None:
            raise ValueError(f"ToolResult(code={code!r}) has no error; pass error='what went wrong' with it")
        if type(output) not in _PLAIN and (read := _as_content(output)) is not None:
            output, content = None, (*read, *_parts(content))
        _put_output(self, output)
        _put_failure(self, error)
        _put_code(self, "tool_error" if error is not None and code is None else code)
        _put_content(self, content if content == () else _parts(content))
        _put_metadata(self, {} if metadata is None else metadata)
        _put_reward(self, reward)

    def __await__(self) -> Generator[Any, None, ToolResult]:
        """Return the result, so that code can await a method's result without knowing whether the method is `async`."""
        yield from ()
        return self

    @property
    def ok(self) -> bool:
        """True if the call succeeded."""
        return self.error is None

    @property
    def success(self) -> bool:
        """True if the call succeeded, as `ok`."""
        return self.ok

    @property
    def parts(self) -> ResultContent:
        """The content for the model: the error, if any, the output as text (`agentkit.tool.output`), then `content`.

        A result with neither output nor content reads `ok`, since providers refuse an empty one.
        """
        if self.error is None and not self.content:
            return (text_as_made(text_of(self.output)),)
        content = self.content and tuple(
            TextPart(clean(p.text)) if isinstance(p, TextPart) else p for p in self.content
        )
        texts = [] if self.error is None else [clean(self.error) or SILENT_ERROR]
        if self.output is not None or not (texts or content):
            texts.append(text_of(self.output))
        return (TextPart("\n".join(texts)), *content) if texts else content

    @property
    def text(self) -> str:
        """The text parts of `parts`, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @classmethod
    def of(cls, value: Any) -> ToolResult:
        """Any return value of a tool as a result.

        A `ToolResult` is returned unchanged, anything else becomes the `output`. An iterator or a coroutine is an
        error: the model could not read it.

        >>> ToolResult.of([1, 2]).text
        '[1, 2]'
        """
        if type(value) in _PLAIN:
            return cls(value)
        match value:
            case ToolResult():
                return value
            case _ if is_pending(value):
                return cls(error=f"the tool returned {unreadable(value)}")
            case _:
                return cls(value)


_put_output, _put_failure, _put_code, _put_content, _put_metadata, _put_reward = (
    ToolResult.__dict__[name].__set__ for name in ("output", "error", "code", "content", "metadata", "reward")
)


def result_as_returned(output: Any) -> ToolResult:
    """Make `ToolResult(output)` in half of the time, for a value that a tool has just returned."""
    result = object.__new__(ToolResult)
    _put_output(result, output)
    _put_failure(result, None)
    _put_code(result, None)
    _put_content(result, ())
    _put_metadata(result, {})
    _put_reward(result, None)
    return result


def unreadable(value: Any) -> str | None:
    """Describes a part of a return value that was not awaited or iterated; None if all of it can be read.

    Coroutines are closed to avoid a second warning: the description already says that they were not awaited.
    """
    found = list(pending_parts(value))
    for _, one in found:
        if inspect.iscoroutine(one):
            one.close()
    if not found:
        return None
    at, first = found[0]
    where = f" at {at}" if at else ""
    if isinstance(first, ToolResult):
        return f"a ToolResult inside another value{where}: return it alone, or return its `.output`"
    kind = type(first).__name__
    if isinstance(first, Awaitable):
        name = getattr(first, "__qualname__", "")
        return f"a {kind}{where}, which was not awaited: write `await {name or '…'}(…)`" + (
            ", or for several `await asyncio.gather(…)`" if at else ""
        )
    return f"a {kind}{where}, not a value; return its result instead"


def _message(error: Any) -> str:
    """An exception's message, preceded by its type."""
    if not isinstance(error, BaseException):
        raise ValueError(f"ToolResult(error=…) expects a message or an exception, found {show_value(error)}")
    return words(error)


def _as_content(output: Any) -> ResultContent | None:
    """A part, or a list with one, as content; None for anything else. An image of PIL is a part."""
    if isinstance(output, _PARTS) or _is_picture(output):
        return _parts((output,))
    if isinstance(output, (list, tuple)) and any(isinstance(item, _PARTS) or _is_picture(item) for item in output):
        return _parts(output)
    return None


def _parts(values: Any) -> ResultContent:
    """Content parts; any other value becomes a text part."""
    if isinstance(values, (str, *_PARTS)) or _is_picture(values):
        values = (values,)
    return tuple(map(_part, values))


def _part(value: Any) -> TextPart | ImagePart:
    if isinstance(value, (TextPart, ImagePart)):
        return value
    if isinstance(value, FilePart):
        raise ConfigError("a result cannot contain a FilePart, only a user's message can: return its text, or images")
    return ImagePart(png(value)) if _is_picture(value) else TextPart(text_of(value))


def _is_picture(value: Any) -> bool:
    """Return True for an image of PIL, without importing PIL."""
    kind: Any = type(value)
    return _of_pil(kind)


@lru_cache(maxsize=512)
def _of_pil(kind: Any) -> bool:
    return any(one.__module__ == "PIL.Image" and one.__name__ == "Image" for one in kind.__mro__)


def png(image: Any) -> bytes:
    """An image of PIL as a file without loss.

    Raises:
        ValueError: PIL cannot write it.
    """
    buffer = io.BytesIO()
    try:
        whole = image if image.mode in _PNG_MODES else image.convert("RGBA" if "A" in image.mode else "RGB")
        whole.save(buffer, format="PNG")
    except (OSError, TypeError) as e:
        raise ValueError(f"the image cannot be written as PNG: {e}") from e
    return buffer.getvalue()


_PNG_MODES: Final = ("1", "L", "LA", "I", "I;16", "P", "RGB", "RGBA")


class NoContext(Mapping[str, Any]):
    """Stands in for the `context` of a run that has none: empty, with errors that say how to pass one."""

    def __getitem__(self, key: str) -> Any:
        raise KeyError(self._missing(f"[{key!r}]"))

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "<this run has no context>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise AttributeError(self._missing(f".{name}"))

    def _missing(self, what: str) -> str:
        return (
            f"this run has no context, but {what} is read from it: pass one to the run, as in "
            "agent.run('…', context=…) or threads.run_thread(…, context=…)"
        )


NO_CONTEXT: Final = NoContext()


def _no_state() -> Any:
    return NO_CONTEXT


@suggest_attributes
@dataclass(frozen=True)  # no slots: with them, `ToolContext[Shop](…)` fails up to Python 3.12.1
class ToolContext(ByAttribute, Generic[StateT]):
    """The context of a call, for a method that annotates a parameter with it.

    `def read(self, path: str, context: ToolContext)`: the parameter is filled in for each call and is not in the
    schema, so the model never sees it. `context: ToolContext[Shop]` tells the type checker the type of `context.state`.

    Args:
        call_id: the id of the call that is being answered.
        name: the function name under which the tool was called.
        state: the object that the application passed to the run as `context=`; by default an empty mapping.
        idempotency_key: stays the same when this call is run again, for services that act once per key; by default the
            call's id.
        attempt: the number of this attempt; more than 1 if a crash interrupted an earlier one.
        run: the run that the call belongs to, for tools that start runs; None outside a run.
    """

    call_id: str
    name: str
    state: StateT = field(default_factory=_no_state)
    idempotency_key: str = ""
    attempt: int = 1
    run: Any = None

    def __post_init__(self) -> None:
        if not self.idempotency_key:
            object.__setattr__(self, "idempotency_key", self.call_id)


class Hidden:
    """Marks a parameter that the model neither sees nor writes: `timeout: Annotated[int, Hidden] = 30`.

    Its default counts, unless a rollout's sample has another value for all calls of the tool (`execute_kwargs`).
    """


@suggest_attributes
class Tool:
    """An optional base class with three convenience methods; any class with decorated methods is a tool without it."""

    def __new__(cls, *given: object, **named: object) -> Self:
        """Refuse arguments that no `__init__` takes: other toolkits make a tool by `Tool(function)`."""
        if (given or named) and cls.__init__ is object.__init__:
            raise ConfigError(
                f"{cls.__name__}() takes no arguments: pass a function itself, Agent(model, [function]); "
                "its options are those of @openapi_schema"
            )
        return super().__new__(cls)

    def success_response(self, data: Any = None) -> ToolResult:
        """A successful result: a string, or any value that `agentkit.tool.output` renders as JSON."""
        return ToolResult.of(data)

    def fail_response(self, msg: str) -> ToolResult:
        """Return a failed result; `msg` tells the model what went wrong and what to do instead."""
        return ToolResult(error=msg)

    @cached_property
    def _schemas(self) -> dict[str, Any]:
        """The attribute that `get_schemas` returns, which classes written for AgentPress read and set."""
        return dict(self.get_schemas())

    def get_schemas(self) -> dict[str, tuple[OpenAPISchema | XMLSchema, ...]]:
        """The decorators' declarations, by method name."""
        return declarations_of(type(self))
