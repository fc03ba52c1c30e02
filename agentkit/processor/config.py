"""The processor's one policy value. Knows formats by name; runs nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from agentkit import formats as text_formats
from agentkit.checks.bounds import SECONDS, YES_OR_NO, Bound, Bounds, each, one_of, or_none, refuse, whole
from agentkit.checks.spelling import takes
from agentkit.errors import ConfigError
from agentkit.foreign.elsewhere import at
from agentkit.tool.policy import MIN_OUTPUT, Keep, Predicate
from agentkit.toolspec import InCode

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from agentkit.formats.format import Format

Execute = Literal["stream", "end"]
Strategy = Literal["parallel", "sequential"]
ResultRole = Literal["user", "tool"]


def _names_a_format(value: object) -> TypeIs[str | Format]:
    return isinstance(value, str) or _is_format(value)


def _is_format(value: object) -> bool:
    """Return whether it is a declaration; if it is, its class is loaded."""
    declared = getattr(sys.modules.get("agentkit.formats.format"), "Format", None)  # another thread may be loading it
    return declared is not None and isinstance(value, declared)


_NAMED: Final = Bound(_names_a_format, "a format or its name")
_FORMATS: Final = each(_NAMED, "a list of them")
_BOUNDS: Final[Bounds] = {
    **dict.fromkeys(("native", "recover", "starts_thinking", "lenient_native", "attended"), YES_OR_NO),
    "execute": one_of(get_args(Execute)),
    "strategy": one_of(get_args(Strategy)),
    "in_code": one_of(get_args(InCode)),
    "result_role": one_of(get_args(ResultRole)),
    "keep": one_of(get_args(Keep)),
    "max_calls": or_none(whole(1), "for no limit"),
    "timeout": or_none(SECONDS, "for no limit"),
    "max_output": whole(MIN_OUTPUT, "characters"),
    "requires_approval": Bound(
        lambda v: v is None or isinstance(v, bool) or callable(v), "True, False, None, or a function"
    ),
    "formats": or_none(Bound(lambda v: _NAMED.holds(v) or _FORMATS.holds(v), "a format, its name, or a list of them")),
}


@takes(others=at("ProcessorConfig"))
@dataclass(frozen=True, slots=True)
class ProcessorConfig:
    """Which of a response's calls run, and how.

    Args:
        native: whether a provider's native calls run; otherwise each is answered with `denied`.
        formats: the text formats whose calls run: a name, a `Format`, or a list of them. None: an `Agent` uses the
            model's own format, a bare processor uses none. `auto` is every format that can be recognized by its text.
            Calls in any other format stay text.
        recover: whether calls that a model wrote as text, although it should call natively, run when the response is
            over and had no native one. Only if no text format is read.
        execute: `end` starts the tools when the whole response has arrived, `stream` each as soon as its call is
            complete, although the response may still retract its calls.
        strategy: `parallel` starts each tool without waiting for those before it, `sequential` runs them one after
            another.
        max_calls: how many calls of one response are read. After the last of them the response is cut, its source is
            closed, and its finish is `tool_limit_reached`. None reads all.
        timeout: seconds, wall clock, that one tool may take, unless the tool sets its own; None waits forever.
        result_role: the role of the answer to a text call in `Turn.replies`: `user`, or `tool` for servers whose chat
            template has that role.
        starts_thinking: whether the text begins inside thinking, because the model's chat template opened it (with
            `<think>` at the end of the prompt) and the server does not separate the thinking.
        in_code: what happens to text calls in code fences and inline code: `ignore` leaves them as text (with `recover`
            not in a reply that is only a fence), `execute` runs them, `reply` runs those that follow only calls.
        lenient_native: whether JSON arguments are coerced like text (`"5"` for an integer) instead of refused.
        max_output: how many characters of one result the model reads, unless the tool sets its own limit; a longer
            result is cut, with a mark.
        keep: which end of a longer result is kept, unless the tool sets its own: `head`, `tail`, or `both`, without
            the middle.
        requires_approval: True or False for every tool, or a function `(call, context) -> bool`, plain or async, that
            decides for each call; None leaves it to each tool's own `ToolPolicy`.
        attended: whether a person can approve calls. If not, a call that needs approval is answered `denied`, and the
            run continues; in the sub-agents as well.

    Raises:
        ConfigError: a value is out of its range.
        FormatError: a format is unknown.
    """

    native: bool = True
    formats: str | Format | Sequence[str | Format] | None = None
    execute: Execute = "end"
    strategy: Strategy = "parallel"
    max_calls: int | None = 64
    timeout: float | None = 600.0
    result_role: ResultRole = "user"
    starts_thinking: bool = False
    in_code: InCode = "ignore"
    recover: bool = True
    lenient_native: bool = False
    max_output: int = 100_000
    keep: Keep = "both"
    requires_approval: bool | Predicate | None = None
    attended: bool = True

    def __post_init__(self) -> None:
        refuse("ProcessorConfig", {name: getattr(self, name) for name in _BOUNDS}, _BOUNDS)
        if self.formats is None:
            return
        given = (self.formats,) if _names_a_format(self.formats) else tuple(self.formats)
        object.__setattr__(self, "formats", tuple(dict.fromkeys(d for f in given for d in _declared(f))))
        if not given and not self.native:
            raise ConfigError(
                "ProcessorConfig(native=False, formats=()): no call could be read; allow native calls or name a format"
            )

    @property
    def text_formats(self) -> tuple[Format, ...]:
        """The formats that are read; none if `formats` is None."""
        return self.formats or ()  # type: ignore[return-value]  # __post_init__ made it a tuple of formats

    @property
    def recovers(self) -> bool:
        """Return whether to look for calls in a native model's text."""
        return self.recover and self.native and not self.text_formats

    def is_tagged(self, format: str | None) -> bool:
        """Return whether each tool has its own tag in this format; native calls have none."""
        known = (*self.text_formats, *text_formats.CATALOG)
        return next((f.tagged for f in known if f.name == format), False)

    def is_textual(self, format: str) -> bool:
        """Return whether this format writes values as text, so that the schema determines their types."""
        known = self.text_formats or text_formats.auto()
        return next((f.textual for f in known if f.name == format), True)


def _declared(format: str | Format) -> tuple[Format, ...]:
    return text_formats.auto() if format == "auto" else (text_formats.get(format),)
