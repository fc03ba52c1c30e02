"""What a tool's author says about running it, beside its arguments: limits, approval, what may happen after a crash.

A frozen value, checked when it is made. It decides nothing and runs nothing: the processor and the journal read it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, get_args

from agentkit.checks.spelling import did_you_mean
from agentkit.errors import SchemaError

if TYPE_CHECKING:
    from agentkit.messages import ToolCall
    from agentkit.tool.result import ToolContext

Keep = Literal["head", "tail", "both"]
"""Which end of a too long output is kept."""

Predicate = Callable[["ToolCall", "ToolContext"], bool | Awaitable[bool]]
"""Says of one call whether a person must approve it."""

MIN_OUTPUT: Final = 200  # characters: room for the mark of a cut and something on both sides of it


class PolicyKeywords(TypedDict, total=False):
    """`ToolPolicy` as keywords of `@openapi_schema` and `register_function`; names stand for methods of the tool."""

    timeout: float | None
    terminates: bool
    requires_approval: bool | Predicate | str
    idempotent: bool
    reconcile: str | None
    max_output: int | None
    keep: Keep | None
    exclusive: bool


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """How one tool may be run.

    Args:
        timeout: seconds, wall clock, that it may take; None leaves that to the processor.
        terminates: a successful call ends the run (`ask`, `complete`); later calls of the same response are skipped.
        requires_approval: whether a person must approve a call before it runs; or a function, plain or async, that says
            so of one call: `(call, context) -> bool`.
        idempotent: whether an interrupted call may be run again, with the same `ToolContext.idempotency_key`. Otherwise
            it runs at most once.
        reconcile: the name of the tool's method, plain or async, that knows what became of an interrupted call:
            `(arguments, context) -> ToolResult`, a value, or None when it does not know either.
        max_output: characters of one result that the model reads; None leaves that to the processor.
        keep: which end of a longer result is kept: `head`, `tail` or `both`; None leaves that to the processor.
        exclusive: whether calls of this method run one after the other, and never beside another exclusive method of
            the same instance: in all runs of the process, whatever their strategy. Methods that are not exclusive may
            run beside them.

    Raises:
        SchemaError: a value out of its range, or both `idempotent` and `reconcile`.
    """

    timeout: float | None = None
    terminates: bool = False
    requires_approval: bool | Predicate = False
    idempotent: bool = False
    reconcile: str | None = None
    max_output: int | None = None
    keep: Keep | None = None
    exclusive: bool = False

    def __post_init__(self) -> None:
        for name in ("terminates", "idempotent", "exclusive"):
            if not isinstance(value := getattr(self, name), bool):
                raise SchemaError(f"{name}={value!r}: wanted True or False")
        if self.timeout is not None and not (_number(self.timeout) and self.timeout > 0):
            raise SchemaError(f"timeout {self.timeout!r} is no limit; give seconds above 0, or leave it out")
        if self.max_output is not None and not (_whole(self.max_output) and self.max_output >= MIN_OUTPUT):
            raise SchemaError(f"max_output={self.max_output!r}: wanted {MIN_OUTPUT} characters or more, or None")
        if self.keep is not None and self.keep not in get_args(Keep):
            raise SchemaError(f"keep={self.keep!r}: wanted one of {', '.join(get_args(Keep))}")
        if not isinstance(self.requires_approval, bool) and not callable(self.requires_approval):
            raise SchemaError(
                f"requires_approval={self.requires_approval!r}: wanted True, False or a function of call and context"
            )
        if self.idempotent and self.reconcile is not None:
            raise SchemaError(
                f"idempotent=True and reconcile={self.reconcile!r} exclude each other: an interrupted call is either "
                "run again or asked about; keep one"
            )


KEYWORDS: Final = frozenset(PolicyKeywords.__annotations__)


def policy_of(keywords: Mapping[str, Any], instance: Any, where: str) -> ToolPolicy:
    """A policy from the author's keywords, held against the tool.

    Args:
        keywords: as in `PolicyKeywords`.
        instance: the tool's; None for a function.
        where: class and method, for messages.

    Raises:
        SchemaError: a wrong value, a name that is no method of the tool, or a function that does not take what it gets.
    """
    given = dict(keywords)
    asked = given.get("requires_approval")
    if isinstance(asked, str):
        given["requires_approval"] = _method(instance, "requires_approval", asked, "(self, call, context)", where)
    elif callable(asked):
        _refuse_arity(asked, f"requires_approval={_named(asked)}", "(call, context)", where)
    if (reconcile := given.get("reconcile")) is not None:
        _method(instance, "reconcile", reconcile, "(self, arguments, context)", where)
    try:
        return ToolPolicy(**given)
    except SchemaError as e:
        raise SchemaError(f"{where}: {e}") from None


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _whole(value: Any) -> bool:
    return _number(value) and isinstance(value, int)


def _named(function: Any) -> str:
    return getattr(function, "__qualname__", None) or repr(function)


def _method(instance: Any, keyword: str, name: Any, wanted: str, where: str) -> Callable[..., Any]:
    """The method of the tool that a keyword names."""
    given = f"{keyword}={name!r}"
    if not isinstance(name, str):
        raise SchemaError(f"{where}: {given} must be the name of a method of the tool, as a string")
    if instance is None:
        instead = "; give the function itself" if keyword == "requires_approval" else ""
        raise SchemaError(f"{where}: {given} names a method, but a function belongs to no tool{instead}")
    owner = instance.__name__ if isinstance(instance, type) else type(instance).__name__
    method = getattr(instance, name, None)
    if not callable(method):
        methods = [n for n in dir(instance) if not n.startswith("__") and inspect.isroutine(getattr(instance, n, None))]
        hint = did_you_mean(name, methods) or f"; write `def {name}{wanted}` there"
        raise SchemaError(f"{where}: {given} is no method of {owner}{hint}")
    _refuse_arity(method, given, wanted, where)
    return method  # type: ignore[no-any-return]


def _refuse_arity(function: Callable[..., Any], given: str, wanted: str, where: str) -> None:
    try:
        signature = inspect.signature(function)
    except ValueError:
        return  # a callable in C without a signature
    try:
        signature.bind(None, None)
    except TypeError as e:
        raise SchemaError(f"{where}: {given} is called with two values ({e}); write it as {wanted}") from None
