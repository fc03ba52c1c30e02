"""A tool's arguments: the JSON Schema that a model sees, and the validation and coercion of its arguments.

Pydantic does both for parameters with hints; a hand-written schema is also checked with jsonschema. Both libraries are
loaded on first use. Knows no registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentkit.checks.spelling import did_you_mean, then
from agentkit.checks.unicode import without_surrogates
from agentkit.errors import SchemaError
from agentkit.foreign import argument_names
from agentkit.schemas.validators import checker_of
from agentkit.schemas.walk import type_of, types_of
from agentkit.schemas.words import TOO_DEEP, InvalidArguments, Problem, of_pydantic, of_written, summarize
from agentkit.tool.coercion import has_choice, without_omitted
from agentkit.tool.declare import OpenAPISchema
from agentkit.tool.handwritten import compare, json_default, read_written, refuse_invalid
from agentkit.tool.hints import argument_type
from agentkit.tool.policy import KEYWORDS, PolicyKeywords
from agentkit.tool.signature import NOTHING, Parameter, Signature

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments that a tool accepts.

    Args:
        schema: JSON Schema 2020-12 of the arguments object, as the model sees it.
        accept: converts JSON text of the arguments to keyword arguments; pydantic's compiled validator.
        checker: the compiled validator of a hand-written schema; None if there is none.
        dump: converts a Python value to JSON text.
        leniently: `accept` for lenient mode; None if that makes no difference.
        precise: the schema of the signature if it has a `Decimal`, which gets all digits that were written.

    Attributes:
        choice: whether a null in the arguments may be omitted in one member of a union, and be a value in another.
    """

    schema: Mapping[str, Any]
    accept: Callable[..., dict[str, Any]]
    checker: Validator | None
    dump: Callable[..., bytes]
    leniently: Callable[[bytes], dict[str, Any]] | None = None
    precise: Mapping[str, Any] | None = None
    choice: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "choice", has_choice(self.schema, self.schema))

    def validate(self, tool: str, arguments: Mapping[str, Any], *, lenient: bool) -> dict[str, Any]:
        """Turn a model's arguments into the keyword arguments of the call.

        Args:
            tool: the tool's name, for the message.
            arguments: values of JSON types.
            lenient: read text as the declared type (`"5"` as 5, `"a, b"` as a list); a declared string is never
                changed.

        Raises:
            InvalidArguments: they do not match the schema.
            RuntimeError: a validator of the tool's author raised an exception that ends programs, such as `SystemExit`.
                What else it raises, except a `ValueError` or an `AssertionError`, is raised unchanged.
        """
        try:
            return self._validate(tool, arguments, lenient)
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as e:
            raise RuntimeError(f"a validator raised {type(e).__name__}: {e}") from e

    def _validate(self, tool: str, arguments: Mapping[str, Any], lenient: bool) -> dict[str, Any]:
        if self.precise is not None:
            arguments = _with_all_digits(arguments, self.precise)
        try:  # formats have already converted text to the declared types, so this is the common case in both modes
            text = self.dump(arguments, inf_nan_mode="constants")
            unsure = self.choice and b"null" in text  # another member may match without the nulls, and lose nothing
            if not unsure and (self.checker is None or self.checker.is_valid(arguments)):
                return self.accept(text, strict=True)
        except (ValueError, RecursionError):  # pydantic's errors are ValueErrors; the second attempt distinguishes them
            pass
        try:
            return self._second_look(tool, arguments, lenient)
        except RecursionError:
            raise InvalidArguments(tool, [TOO_DEEP]) from None

    def _second_look(self, tool: str, arguments: Mapping[str, Any], lenient: bool) -> dict[str, Any]:
        """Normalize values that JSON Schema treats as equal, convert text if allowed, and validate again."""
        from pydantic_core import PydanticSerializationError, ValidationError

        if not isinstance(arguments, Mapping):
            raise InvalidArguments(tool, [Problem("", "object", summarize(arguments))])
        given = self._normalize(arguments, lenient)
        problems: dict[str, Problem] = {}
        if self.checker is not None:
            found = of_written(self.checker.iter_errors(given), given, self.schema)
            problems = {problem.path: problem for problem in found}
        accepted: dict[str, Any] = {}
        try:
            text = self.dump(given, inf_nan_mode="constants")
            leniently = self.leniently if lenient else None
            accepted = leniently(text) if leniently is not None else self.accept(text, strict=True)
        except ValidationError as e:
            for problem in of_pydantic(e.errors(include_url=False), given, self.schema):
                problems.setdefault(problem.path, problem)
        except PydanticSerializationError as e:
            raise InvalidArguments(tool, [Problem("", "JSON values", "a value that JSON cannot represent")]) from e
        if problems:
            raise InvalidArguments(tool, tuple(problems.values()))
        return accepted

    def _normalize(self, arguments: Mapping[str, Any], lenient: bool) -> dict[str, Any]:
        properties: Mapping[str, Any] = self.schema.get("properties", {})
        given = _with_all_digits(dict(without_surrogates(dict(arguments))), self.schema)
        if lenient:
            given = {name: self._read(value, properties.get(name)) for name, value in given.items()}
        normalized: dict[str, Any] = without_omitted(given, self.schema)
        return normalized

    def _read(self, value: Any, schema: Any) -> Any:
        """Convert text to the declared type, unless a string is one of the declared types."""
        if not isinstance(value, str) or not isinstance(schema, Mapping):
            return value
        allowed = types_of(schema, self.schema)
        if not allowed or "string" in allowed:
            return value
        from agentkit.schemas.typed.values import read

        return read(value, schema, self.schema)


def _with_all_digits(arguments: Any, schema: Mapping[str, Any]) -> Any:
    """The arguments, with the digits that a model wrote for numbers where a float has others."""
    from agentkit.schemas.typed.exact import exactly

    return exactly(arguments, schema, schema)


@dataclass(frozen=True, slots=True)
class Offer:
    """A signature combined with the hand-written schema and the decorator's keywords.

    Args:
        name: the tool's own name; None keeps the function's.
        description: for the model; can be empty.
        policy: the decorator's `ToolPolicy` keywords, as written.
        arguments: the accepted arguments.
    """

    name: str | None
    description: str
    policy: Mapping[str, Any]
    arguments: Arguments


def offer(signature: Signature, declared: OpenAPISchema) -> Offer:
    """Build a tool's arguments from its signature and its declaration.

    Raises:
        SchemaError: a parameter without a hint or schema, a type without a schema, an unknown name in the decorator, a
            default of the wrong type, or a hand-written schema that contradicts the signature.
    """
    own, described = _keywords(signature, declared)
    fragments = {name: value for name, value in described.items() if isinstance(value, Mapping)}
    written = read_written(declared.written, signature.where) if declared.written is not None else None
    if written is not None and described:
        raise SchemaError(
            f"{signature.where}: @openapi_schema has both a hand-written schema and descriptions of {list(described)}; "
            "move the descriptions into the schema"
        )
    covered = set(written.parameters.get("properties", {}) if written else fragments)
    _refuse_unhinted(signature, covered)
    validator, leniently, derived, precise = argument_type(signature)
    schema = derived if written is None else written.parameters
    if written is not None:
        compare(written, signature, derived)
    else:
        schema = _shown_schema(derived, signature, described)
    checker = _checker(schema, signature.where) if written is not None or fragments else None
    from pydantic_core import to_json

    text = declared.description or (written and written.description) or signature.docstring.description
    name = own.get("name", written.name if written is not None else None)
    policy = {name: value for name, value in own.items() if name in KEYWORDS}
    exact = derived if precise else None
    accepted = Arguments(schema, validator.validate_json, checker, to_json, leniently, exact)
    return Offer(name, text or "", policy, accepted)


def arguments_of_schema(schema: Mapping[str, Any], checked: Mapping[str, Any], where: str) -> Arguments:
    """Return the arguments of a tool that has a schema but no signature.

    Args:
        schema: JSON Schema of the arguments object, as the model sees it.
        checked: the schema that arguments are checked against.
        where: for messages.

    Raises:
        SchemaError: the schema is invalid, or refers to another document.
    """
    from pydantic_core import from_json, to_json

    def accept(text: bytes, *, strict: bool) -> dict[str, Any]:
        return from_json(text)  # type: ignore[no-any-return]  # the checker has seen an object

    return Arguments(schema, accept, _checker(checked, where), to_json)


def _keywords(signature: Signature, declared: OpenAPISchema) -> tuple[dict[str, Any], dict[str, Any]]:
    """The decorator's keywords: those of the tool, and the parameters' descriptions or schemas.

    If a keyword of the tool is also a parameter's name, a string describes the parameter.
    """
    own: dict[str, Any] = {}
    described = dict(declared.parameters)
    for name, value in declared.keywords.items():
        describes = name in signature.names and (name == "name" or isinstance(value, (str, Mapping)))
        if (name == "name" or name in KEYWORDS) and not describes:
            own[name] = value
        else:
            described[name] = value
    for name, value in described.items():
        if name not in signature.names:
            raise SchemaError(_unknown(name, value, signature))
        if not isinstance(value, str) and not (isinstance(value, Mapping) and name in declared.parameters):
            raise SchemaError(
                f"{signature.where}: @openapi_schema({name}=...) describes parameter {name!r} and must be a string, "
                f"not {value!r}; a JSON Schema goes into parameters={{{name!r}: {{...}}}}"
            )
    return own, described


def _unknown(name: str, value: Any, signature: Signature) -> str:
    if name in signature.context:
        return f"{signature.where}: @openapi_schema describes {name!r}, which is the hidden ToolContext; remove it"
    if name in signature.hidden:
        return f"{signature.where}: @openapi_schema describes {name!r}, which is Hidden; remove it"
    known = ", ".join(map(repr, signature.names)) or "none"
    keywords = ["description", "parameters", "name", *PolicyKeywords.__annotations__]
    hint = did_you_mean(name, [*signature.names, *keywords], argument_names.OPENAPI_SCHEMA)
    if not isinstance(value, str | Mapping):
        return (
            f"{signature.where}: @openapi_schema has no keyword {name!r}{then(hint, 'it has ' + ', '.join(keywords))}, "
            f"and the description of each parameter (parameters: {known})"
        )
    return (
        f"{signature.where}: @openapi_schema describes parameter {name!r}, which does not exist (parameters: {known})"
        f"{hint or '; rename or remove it'}"
    )


def _refuse_unhinted(signature: Signature, covered: set[str]) -> None:
    for parameter in signature.parameters:
        if parameter.hint is NOTHING and parameter.name not in covered:
            if parameter.name == "self" and signature.names[:1] == ("self",):
                raise SchemaError(
                    f"{signature.where}: its first parameter is 'self', but it is not a method: remove 'self', "
                    "or move it into a class, decorate it with @openapi_schema, and pass an instance: tools=[MyTool()]"
                )
            if parameter.name in argument_names.CONTEXTS:
                raise SchemaError(
                    f"{signature.where}: parameter {parameter.name!r} has no type; to receive what the application "
                    f"passed to the run, annotate it ({parameter.name}: ToolContext) and read {parameter.name}.state"
                )
            default = json_default(parameter)
            known = default is not NOTHING and default is not None
            hint = type(default).__name__ if known else "str | None" if default is None else "str"
            written = f"{parameter.name}: {hint}" + ("" if default is NOTHING else f" = {parameter.default!r:.60}")
            schema = {parameter.name: {"type": type_of(default) if known else "string"}}
            raise SchemaError(
                f"{signature.where}: parameter {parameter.name!r} has no type; annotate it ({written}), or "
                f"write its schema: @openapi_schema(parameters={schema})"
            )


def _shown_schema(derived: Mapping[str, Any], signature: Signature, described: Mapping[str, Any]) -> dict[str, Any]:
    """The derived schema with descriptions, defaults, and hand-written schemas of individual parameters."""
    properties = {
        parameter.name: _property(parameter, derived["properties"][parameter.name], described, derived, signature.where)
        for parameter in signature.parameters
    }
    return {**derived, "properties": properties}


def _property(
    parameter: Parameter, schema: Mapping[str, Any], described: Mapping[str, Any], root: Mapping[str, Any], where: str
) -> dict[str, Any]:
    given = described.get(parameter.name)
    shown = dict(given) if isinstance(given, Mapping) else dict(schema)
    description = given if isinstance(given, str) else parameter.description
    if description and (isinstance(given, str) or "description" not in shown):
        shown["description"] = description
    default = json_default(parameter)
    if default is NOTHING:
        return shown
    allowed = types_of(shown, root)
    if allowed and type_of(default) not in allowed:
        raise SchemaError(
            f"{where}: parameter {parameter.name!r} has default {parameter.default!r}, which is {type_of(default)}, "
            f"but its hint says {' or '.join(sorted(allowed))}; change one of them"
        )
    return {**shown, "default": default}


def _checker(schema: Mapping[str, Any], where: str) -> Validator:
    refuse_invalid(schema, where)
    return checker_of(schema)
