"""A function's signature as a tool's parameters: names, hints, defaults, descriptions; invalid forms are refused.

Knows `typing` and docstrings; knows no JSON Schema and no registry.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import FrameType, NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from agentkit.errors import SchemaError
from agentkit.foreign import argument_names
from agentkit.tool.docstrings import Docstring, read_docstring
from agentkit.tool.result import Hidden, ToolContext

NOTHING: Final = inspect.Parameter.empty
"""Marks a missing hint or default."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that the model fills in.

    Args:
        name: as in the signature.
        hint: its resolved type; `NOTHING` if it has none. A default of None extends it to allow None.
        default: `NOTHING` for a required parameter.
        description: from `Annotated` or the docstring; empty if neither describes it.
    """

    name: str
    hint: Any
    default: Any
    description: str

    @property
    def required(self) -> bool:
        """True if a call must pass it."""
        return self.default is NOTHING


@dataclass(frozen=True, slots=True)
class NameScope:
    """The names used to resolve hints that are strings.

    Args:
        module: the globals of the function's module.
        around: closer scopes: the function's class, and the local variables around its definition.
    """

    module: Mapping[str, Any]
    around: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Signature:
    """A function as a tool.

    Args:
        where: the class and method, for messages.
        parameters: the parameters that the model fills in.
        context: the names of parameters that receive the `ToolContext`.
        hidden: the names of those that only the application fills in.
        docstring: the parsed docstring.
        scope: the names that its hints can use.
    """

    where: str
    parameters: tuple[Parameter, ...]
    context: tuple[str, ...]
    hidden: tuple[str, ...]
    docstring: Docstring
    scope: NameScope

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names."""
        return tuple(parameter.name for parameter in self.parameters)


def read_signature(
    function: Callable[..., Any], where: str = "", owner: type | None = None, *, bound: bool = False
) -> Signature:
    """Read a function as a tool.

    Args:
        function: a function, or the function inside a static or class method.
        where: its class and method, for messages; by default the function's name.
        owner: the class it was found on.
        bound: whether its first parameter receives the instance or class.

    Raises:
        SchemaError: a variadic or positional-only parameter, a hint that cannot be resolved, a default that is a
            pydantic `Field`, a hidden parameter without a default, or a docstring that documents a parameter that does
            not exist.
    """
    where = where or name_of(function)
    _refuse_generator(function, where)
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as e:
        raise SchemaError(f"{where} has no signature that Python can read; wrap it in a def with type hints") from e
    found = found[1:] if bound else found
    for parameter in found:
        _refuse_kind(parameter, where)
    docstring = _docstring(function, owner, [p.name for p in found], where)
    scope = _scope(function, owner)
    hints = {p.name: _hint(p, where, scope) for p in found}
    context = tuple(name for name, hint in hints.items() if _is_context(hint))
    hidden = tuple(p.name for p in found if _is_hidden(p, hints[p.name], where))
    unseen = (*context, *hidden)
    shown = tuple(_parameter(p, hints[p.name], docstring, where) for p in found if p.name not in unseen)
    return Signature(where, shown, context, hidden, docstring, scope)


def name_of(definition: Any) -> str:
    """The name of a function or class for messages: `Files`, `search`; without the enclosing function."""
    name = getattr(definition, "__qualname__", type(definition).__qualname__)
    return str(name).rpartition("<locals>.")[2]


def _refuse_generator(function: Callable[..., Any], where: str) -> None:
    """Refuse a generator: it has no result to send back."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise SchemaError(f"{where} is a generator; a tool returns its result: collect what it yields and return that")
    if getattr(function, "__globals__", {}).get("__name__") == "contextlib":  # as its decorators make it
        raise SchemaError(
            f"{where} is a context manager, whose body would never run; a tool returns its result: enter it in the tool"
        )


def _docstring(function: Callable[..., Any], owner: type | None, names: list[str], where: str) -> Docstring:
    """The function's docstring, or that of the method it overrides, which may have other parameters."""
    inner = _unwrap(function)
    if inner is not function:  # a partial: its own docstring is that of `partial`, and it may have bound parameters
        names = [*names, *inspect.signature(inner).parameters]
    own = getattr(inner, "__doc__", None)
    if isinstance(own, str) and own:
        docstring = read_docstring(own)
        _refuse_undocumented(docstring, names, where)
        return docstring
    name = getattr(function, "__name__", "")
    overridden = (getattr(cls, name, None) for cls in (owner.__mro__[1:] if owner is not None else ()))
    inherited = (method.__doc__ for method in overridden if inspect.isroutine(method))
    return read_docstring(next((text for text in inherited if text), None))


def _refuse_undocumented(docstring: Docstring, names: list[str], where: str) -> None:
    for name in docstring.parameters:
        if name not in (*names, "self", "cls"):
            known = ", ".join(map(repr, names)) or "none"
            raise SchemaError(
                f"{where}: the docstring documents parameter {name!r}, which does not exist (parameters: {known}); "
                "rename or remove it in the docstring"
            )


def _refuse_kind(parameter: inspect.Parameter, where: str) -> None:
    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL:
            stars, instead = "*", f"one list parameter, such as {parameter.name}: list[str]"
        case inspect.Parameter.VAR_KEYWORD:
            stars, instead = "**", f"named parameters, or one {parameter.name}: dict[str, str]"
        case inspect.Parameter.POSITIONAL_ONLY:
            raise SchemaError(
                f"{where}: parameter {parameter.name!r} is positional-only, but tools are called by name; "
                "remove the '/' from the signature"
            )
        case _:
            return
    raise SchemaError(
        f"{where}: parameter '{stars}{parameter.name}' is variadic, which no schema can describe; declare {instead}"
    )


def _parameter(found: inspect.Parameter, hint: Any, docstring: Docstring, where: str) -> Parameter:
    described = _annotated_text(hint) or docstring.parameters.get(found.name, "")
    default = found.default
    if type(default).__name__ == "FieldInfo":
        raise SchemaError(
            f"{where}: parameter {found.name!r} has a pydantic Field as its default, which the method would receive; "
            f"write {found.name}: Annotated[<type>, Field(...)] = <default>"
        )
    if default is None and hint is not NOTHING and not _allows_none(hint):
        hint = _or_none(hint)
    return Parameter(found.name, hint, default, described)


def _allows_none(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _allows_none(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return any(_allows_none(member) for member in get_args(hint))
    return hint in (None, NoneType, Any, object) or (get_origin(hint) is typing.Literal and None in get_args(hint))


def _or_none(hint: Any) -> Any:
    """Allow None for `x: int = None`. Metadata stay outermost, where the description is looked for."""
    if get_origin(hint) is Annotated:
        return Annotated[(Union[get_args(hint)[0], None], *hint.__metadata__)]  # noqa: UP007
    return Union[hint, None]  # noqa: UP007 (a `|` fails for forward references and special forms)


def _annotated_text(hint: Any) -> str:
    """The description from `Annotated[str, "…"]`, `Field(description=…)` or `Doc("…")`."""
    for extra in hint.__metadata__ if get_origin(hint) is Annotated else ():
        text = extra if isinstance(extra, str) else getattr(extra, "description", None)
        text = text or getattr(extra, "documentation", None)
        if isinstance(text, str):
            return text
    return ""


def _is_context(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _is_context(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return any(_is_context(member) for member in get_args(hint))
    return ToolContext in (hint, get_origin(hint))


def _is_hidden(parameter: inspect.Parameter, hint: Any, where: str) -> bool:
    marks = hint.__metadata__ if get_origin(hint) is Annotated else ()
    if not any(mark is Hidden or isinstance(mark, Hidden) for mark in marks):
        return False
    if parameter.default is NOTHING:
        raise SchemaError(
            f"{where}: parameter {parameter.name!r} is Hidden, so that no call of a model has it; give it a default"
        )
    return True


def _hint(parameter: inspect.Parameter, where: str, scope: NameScope) -> Any:
    """A parameter's type; `NOTHING` if it has none."""
    if parameter.annotation is NOTHING:
        return NOTHING
    holder = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        hints = typing.get_type_hints(holder, dict(scope.module), dict(scope.around), include_extras=True)
    except NameError as e:
        if e.name in argument_names.CONTEXT_TYPES:
            raise other_context(where, parameter.name, e.name) from e
        raise SchemaError(
            f"{where}: the hint of parameter {parameter.name!r} uses {e.name!r}, which cannot be found; define "
            f"{e.name} at module level (not under `if TYPE_CHECKING:`), or register the tool while it is visible"
        ) from e
    except Exception as e:  # evaluating a hint runs the author's code
        raise SchemaError(
            f"{where}: the hint of parameter {parameter.name!r} cannot be evaluated ({type(e).__name__}: {e}); fix it"
        ) from e
    return hints[parameter.name]


def other_context(where: str, parameter: str, hint: str) -> SchemaError:
    """The error for a parameter whose hint is another toolkit's for the context of a run."""
    return SchemaError(
        f"{where}: the hint of parameter {parameter!r} uses {hint!r}, which belongs to another toolkit; "
        f"write {parameter}: ToolContext, and read {parameter}.state"
    )


def _unwrap(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function inside `functools.partial`."""
    return _unwrap(function.func) if isinstance(function, partial) else function


def _scope(function: Callable[..., Any], owner: type | None) -> NameScope:
    """The names available to a hint in a string: of its module, of enclosing functions still running, of its class."""
    function = inspect.unwrap(_unwrap(function))
    names: dict[str, Any] = {}
    for frame in _enclosing(function):
        names.update(frame.f_locals)
    with suppress(TypeError, ValueError):  # a callable object has no closure, and a cell can still be empty
        names.update(inspect.getclosurevars(function).nonlocals)
    for cls in reversed(owner.__mro__ if owner is not None else ()):
        names.update({name: value for name, value in vars(cls).items() if isinstance(value, type)})
    names.update({owner.__name__: owner} if owner is not None else {})
    code = function if inspect.isfunction(function) else vars(type(function)).get("__call__")  # for a callable object
    return NameScope(getattr(code, "__globals__", {}), names)


def _enclosing(function: Callable[..., Any]) -> Iterator[FrameType]:
    """The running frames of the functions that enclose this one's definition, outermost first."""
    around = getattr(function, "__qualname__", "").split(".<locals>.")[:-1]
    qualnames = {".<locals>.".join(around[: i + 1]) for i in range(len(around))}
    globals_of = getattr(function, "__globals__", None)
    frame: FrameType | None = sys._getframe() if qualnames else None
    found = []
    while frame is not None:
        if frame.f_code.co_qualname in qualnames and frame.f_globals is globals_of:
            found.append(frame)
        frame = frame.f_back
    return reversed(found)
