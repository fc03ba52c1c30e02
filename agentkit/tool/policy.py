"""The author's rules for running a tool: limits, approval, behaviour after a crash.

A frozen value, checked on construction. It only declares: the processor and the journal act on it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, get_args

from agentkit.checks.bounds import CALLABLE, SECONDS, YES_OR_NO, Bounds, either, one_of, or_none, whole
from agentkit.checks.spelling import did_you_mean
from agentkit.errors import SchemaError

if TYPE_CHECKING:
    from agentkit.messages import ToolCall
    from agentkit.tool.result import ToolContext

Keep = Literal["head", "tail", "both"]
"""Which part of an over-long output is kept."""

Predicate = Callable[["ToolCall", "ToolContext"], bool | Awaitable[bool]]
"""Decides whether a person must approve a call."""


def needs_no_decision(call: ToolCall, context: ToolContext) -> bool:
    """Return False: as `requires_approval` of a run's own tools, about which no setting, guard or person decides."""
    return False


MIN_OUTPUT: Final = 200  # characters: room for the note about the cut and some text on both sides


class PolicyKeywords(TypedDict, total=False):
    """`ToolPolicy` as keywords of `@openapi_schema` and `register_function`; methods of the tool are given by name."""

    timeout: float | None
    terminates: bool
    requires_approval: bool | Predicate | str
    idempotent: bool
    reconcile: str | None
    max_output: int | None
    keep: Keep | None
    exclusive: bool
    one_thread: bool


_BOUNDS: Final[Bounds] = {
    **dict.fromkeys(("terminates", "idempotent", "exclusive", "one_thread"), YES_OR_NO),
    "timeout": or_none(SECONDS),
    "max_output": or_none(whole(MIN_OUTPUT, "characters")),
    "keep": or_none(one_of(get_args(Keep))),
    "requires_approval": either(YES_OR_NO, CALLABLE, words="True, False or a function of call and context"),
}


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """The rules for running one tool.

    Args:
        timeout: seconds (wall clock) that it may take; None uses the processor's setting.
        terminates: a successful call ends the run (`ask`, `complete`); later calls of the same response are skipped.
        requires_approval: whether a person must approve a call before it runs; or a function, sync or async, that
            decides for each call: `(call, context) -> bool`.
        idempotent: whether an interrupted call may be run again, with the same `ToolContext.idempotency_key`. Otherwise
            it runs at most once.
        reconcile: the name of the tool's method, sync or async, that finds the outcome of an interrupted call:
            `(arguments, context) -> ToolResult`, a plain value, or None if it does not know either.
        max_output: characters of one result that the model reads; None uses the processor's setting.
        keep: which part of a longer result is kept: `head`, `tail` or `both`; None uses the processor's setting.
        exclusive: whether calls of this method run one after another, and never at the same time as another exclusive
            method of the same instance: in all runs of the process, whatever their strategy. Methods that are not
            exclusive may run at the same time.
        one_thread: whether plain calls of this method run in one thread of the instance, always the same, for a
            connection that only the thread that opened it may use, such as one of `sqlite3`. It implies `exclusive`. If
            the tool is passed as a class, its constructor also runs in that thread.

    Raises:
        SchemaError: a value out of range, or both `idempotent` and `reconcile`.
    """

    timeout: float | None = None
    terminates: bool = False
    requires_approval: bool | Predicate = False
    idempotent: bool = False
    reconcile: str | None = None
    max_output: int | None = None
    keep: Keep | None = None
    exclusive: bool = False
    one_thread: bool = False

    def __post_init__(self) -> None:
        for name, bound in _BOUNDS.items():
            if not bound.holds(value := getattr(self, name)):
                raise SchemaError(f"{name}={value!r}: expected {bound.words}")
        if self.one_thread:
            object.__setattr__(self, "exclusive", True)
        if self.idempotent and self.reconcile is not None:
            raise SchemaError(
                f"idempotent=True and reconcile={self.reconcile!r} exclude each other: an interrupted call is either "
                "run again or reconciled; keep one"
            )


KEYWORDS: Final = frozenset(PolicyKeywords.__annotations__)


def policy_of(keywords: Mapping[str, Any], instance: Any, where: str) -> ToolPolicy:
    """A policy from the author's keywords, checked against the tool.

    Args:
        keywords: as in `PolicyKeywords`.
        instance: the tool instance; None for a function.
        where: class and method, for messages.

    Raises:
        SchemaError: a wrong value, a name that is not a method of the tool, or a function with the wrong parameters.
    """
    given = dict(keywords)
    asked = given.get("requires_approval")
    if isinstance(asked, str):
        given["requires_approval"] = _method(instance, "requires_approval", asked, "(self, call, context)", where)
    elif callable(asked):
        _refuse_arity(asked, f"requires_approval={_method_name(asked)}", "(call, context)", where)
    if (reconcile := given.get("reconcile")) is not None:
        _method(instance, "reconcile", reconcile, "(self, arguments, context)", where)
    try:
        return ToolPolicy(**given)
    except SchemaError as e:
        raise SchemaError(f"{where}: {e}") from None


def _method_name(function: Any) -> str:
    return getattr(function, "__qualname__", None) or repr(function)


def _method(instance: Any, keyword: str, name: Any, wanted: str, where: str) -> Callable[..., Any]:
    given = f"{keyword}={name!r}"
    if not isinstance(name, str):
        raise SchemaError(f"{where}: {given} must be the name of a method of the tool, as a string")
    if instance is None:
        instead = "; pass the function itself" if keyword == "requires_approval" else ""
        raise SchemaError(f"{where}: {given} names a method, but a plain function has no methods{instead}")
    owner = instance.__name__ if isinstance(instance, type) else type(instance).__name__
    method = getattr(instance, name, None)
    if not callable(method):
        methods = [n for n in dir(instance) if not n.startswith("__") and inspect.isroutine(getattr(instance, n, None))]
        hint = did_you_mean(name, methods) or f"; write `def {name}{wanted}` there"
        raise SchemaError(f"{where}: {given} is not a method of {owner}{hint}")
    _refuse_arity(method, given, wanted, where)
    return method  # type: ignore[no-any-return]


def _refuse_arity(function: Callable[..., Any], given: str, wanted: str, where: str) -> None:
    try:
        signature = inspect.signature(function)
    except ValueError:
        return  # a C callable without a signature
    try:
        signature.bind(None, None)
    except TypeError as e:
        raise SchemaError(f"{where}: {given} is called with two values ({e}); write it as {wanted}") from None
