"""What a tool gives back and what it may ask for: `ToolResult`, `ToolContext`, and the optional base class `Tool`.

Knows messages and errors; knows no registry, no model and no format. A tool need not inherit from anything here: any
class with a decorated method is one.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, Unpack

from agentkit.checks.spelling import ByAttribute, Nothing, refuse_unknown
from agentkit.errors import ConfigError, ErrorCode
from agentkit.foreign import renamed
from agentkit.foreign.absent import explained
from agentkit.messages import ImagePart, ResultContent, TextPart, shown
from agentkit.tool.declare import OpenAPISchema, XMLSchema, declared
from agentkit.tool.output import is_no_value, no_values, text_of
from agentkit.unicode import clean

if sys.version_info >= (3, 13):
    from typing import TypeVar
else:  # which has no defaults of type variables
    from typing_extensions import TypeVar

StateT = TypeVar("StateT", covariant=True, default=Any)
"""What the application passed to a run."""

SILENT_ERROR: Final = "the tool failed and did not say why"
"""What a model reads of `ToolResult(error="")`."""


_PLAIN: Final = frozenset((str, int, float, bool, dict, type(None)))
"""What most tools return; the types that need no closer look."""


_KEYWORDS: Final = ("output", "error", "code", "content", "metadata", "reward", "success")
_set = object.__setattr__


@explained
@dataclass(frozen=True, slots=True, init=False)
class ToolResult(ByAttribute):
    """A tool's answer to one call: an output, or an error.

    Args:
        output: the Python value, kept for the application; None when there is only `content` or an `error`.
        error: what went wrong, in words the model can act on, or the exception that says so; None for success.
        code: the error's stable code; `tool_error` unless given.
        content: further text and images that the model reads after the output.
        metadata: for the application; never shown to the model.
        reward: a score for training; never shown to the model.
        success: for results in AgentPress's words: `ToolResult(success=False, output="no such file")` is an error that
            says its output. None leaves it to `error`.

    Raises:
        ConfigError: an argument that there is not.
        ValueError: an `error` that is neither text nor an exception, a `code` without an `error`, or `success` that
            says the opposite of `error`.

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
        **unknown: Unpack[Nothing],  # `takes` would be half of what a result costs
    ) -> None:
        if len(unknown):  # not by its truth, which checkers know
            refuse_unknown("ToolResult", unknown, _KEYWORDS, renamed.TOOL_RESULT)
        if type(output) is bool and error is not None:  # AgentPress's order is success, output
            raise ConfigError(
                f"ToolResult({output}, {error!r:.60}): write ToolResult(success={output}, output=…), or "
                "ToolResult(output) and ToolResult(error=…)"
            )
        if error is not None and not isinstance(error, str):
            error = _said(error)
        if success is not None and type(success) is not bool:
            raise ConfigError(f"ToolResult(success={success!r:.60}): wanted True or False, or None")
        if success is False and error is None:
            output, error = None, "" if output is None else text_of(output)
        if success is True and error is not None:
            raise ValueError(f"ToolResult(success=True, error={error!r}) says both; leave one out")
        if error is None and code is not None:
            raise ValueError(f"ToolResult(code={code!r}) has no error; pass error='what went wrong' with it")
        _set(self, "output", output)
        _set(self, "error", error)
        _set(self, "code", "tool_error" if error is not None and code is None else code)
        _set(self, "content", content if type(content) is tuple else _parts(content))
        _set(self, "metadata", {} if metadata is None else metadata)
        _set(self, "reward", reward)

    def __await__(self) -> Generator[Any, None, ToolResult]:
        """Itself: code that awaits whatever a method returned need not know whether it is `async`."""
        yield from ()
        return self

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.error is None

    @property
    def success(self) -> bool:
        """The same as `ok`."""
        return self.ok

    @property
    def parts(self) -> ResultContent:
        """What the model reads: the error if any, the output as text (`agentkit.tool.output`), then `content`.

        A result with neither output nor content reads `ok`, since providers refuse an empty one.
        """
        content = self.content and tuple(
            TextPart(clean(p.text)) if isinstance(p, TextPart) else p for p in self.content
        )
        said = [] if self.error is None else [clean(self.error) or SILENT_ERROR]
        if self.output is not None or not (said or content):
            said.append(text_of(self.output))
        return (TextPart("\n".join(said)), *content) if said else content

    @property
    def text(self) -> str:
        """The text parts of `parts`, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @classmethod
    def of(cls, value: Any) -> ToolResult:
        """Whatever a tool returned, as a result.

        A `ToolResult` stays itself; a `TextPart` or `ImagePart`, or a list of them (strings may stand between), becomes
        `content`; anything else is the `output`. An iterator or a coroutine is an error: the model could read nothing.

        >>> ToolResult.of([1, 2]).text
        '[1, 2]'
        """
        if type(value) in _PLAIN:
            return cls(value)
        match value:
            case ToolResult():
                return value
            case TextPart() | ImagePart():
                return cls(content=(value,))
            case list() | tuple() if any(isinstance(item, (TextPart, ImagePart)) for item in value):
                return cls(content=_parts(value))
            case _ if is_no_value(value):
                return cls(error=f"the tool returned {unreadable(value)}")
            case _:
                return cls(value)


def unreadable(value: Any) -> str | None:
    """What in a tool's value is still to be awaited or iterated, in words; None where all of it can be read.

    Coroutines are closed: the words say already that nobody awaited them.
    """
    found = list(no_values(value))
    for _, one in found:
        if inspect.iscoroutine(one):
            one.close()
    if not found:
        return None
    at, first = found[0]
    where = f" at {at}" if at else ""
    if isinstance(first, ToolResult):
        return f"a ToolResult inside another value{where}: return it alone, or what it holds, its `.output`"
    kind = type(first).__name__
    if isinstance(first, Awaitable):
        name = getattr(first, "__qualname__", "")
        return f"a {kind}{where}, which nobody awaited: write `await {name or '…'}(…)`" + (
            ", for several `await asyncio.gather(…)`" if at else ""
        )
    return f"a {kind}{where}, not a value; it must return its result"


def _said(error: Any) -> str:
    """What an exception says, under its name."""
    if not isinstance(error, BaseException):
        raise ValueError(f"ToolResult(error=…) takes what went wrong in words, or an exception, found {shown(error)}")
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _parts(values: Any) -> ResultContent:
    """Content parts and whatever stands between them, which becomes text."""
    if isinstance(values, (str, TextPart, ImagePart)):
        values = (values,)
    return tuple(v if isinstance(v, (TextPart, ImagePart)) else TextPart(text_of(v)) for v in values)


class NoContext(Mapping[str, Any]):
    """What tools find in place of a `context` that the run was not given: nothing, and words on how to give one."""

    def __getitem__(self, key: str) -> Any:
        raise KeyError(self._missing(f"[{key!r}]"))

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "<no context was given to this run>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise AttributeError(self._missing(f".{name}"))

    def _missing(self, what: str) -> str:
        return (
            f"no context was given to this run, and {what} of it is wanted here: give it with the run, as in "
            "agent.run('…', context=…) or threads.run_thread(…, context=…)"
        )


NO_CONTEXT: Final = NoContext()


def _no_state() -> Any:
    return NO_CONTEXT


@explained
@dataclass(frozen=True)  # no slots: with them, `ToolContext[Shop](…)` fails up to Python 3.12.1
class ToolContext(ByAttribute, Generic[StateT]):
    """What a method learns about its call when it asks by annotation.

    `def read(self, path: str, context: ToolContext)`: the parameter is filled in at the call and is not in the schema,
    so the model never sees it. `context: ToolContext[Shop]` tells the type checker what `context.state` is.

    Args:
        call_id: the id of the call that is being answered.
        name: the function name under which the tool was called.
        state: what the application passed to the run as `context=`, the object itself; an empty mapping unless given.
        idempotency_key: the same whenever this very call is run again, for services that do a thing once per key; the
            call's id unless given.
        attempt: which run of this call it is; 1 unless a crash interrupted an earlier one.
        run: the run that the call belongs to, for tools that begin runs of their own; None outside of one.
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


@explained
class Tool:
    """An optional base class with three conveniences; a class with decorated methods is a tool without it."""

    def success_response(self, data: Any = None) -> ToolResult:
        """A result that says `data`: text, or any value that `agentkit.tool.output` renders as JSON."""
        return ToolResult.of(data)

    def fail_response(self, msg: str) -> ToolResult:
        """A failed result; `msg` tells the model what went wrong and what to do instead."""
        return ToolResult(error=msg)

    @cached_property
    def _schemas(self) -> dict[str, Any]:
        """`get_schemas`, as classes written for AgentPress read and fill it."""
        return dict(self.get_schemas())

    def get_schemas(self) -> dict[str, tuple[OpenAPISchema | XMLSchema, ...]]:
        """What the decorators declare, by method name."""
        return declared(type(self))
