"""The problems of a call's arguments in words, in terms of the JSON Schema that the model was shown.

Turns errors of pydantic and jsonschema into `Problem`s; knows no tool. They are written for a model: no Python class,
no link to a manual, no traceback.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentkit.checks.spelling import nearest
from agentkit.schemas.validators import checker_of
from agentkit.schemas.walk import alternatives, child, resolve, type_of

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError as WrittenError
    from pydantic_core import ErrorDetails

MAX_PROBLEMS: Final = 20
"""Problems reported to the model at once."""

MAX_ERRORS: Final = 200
"""Errors of one call that are examined; a model fixes the first ones first."""

MAX_SHOWN: Final = 80
"""Characters of a wrong value that are quoted."""

MAX_CHOICES: Final = 50
"""Allowed values and names that are listed."""

FORMAT_EXAMPLES: Final = {
    "date-time": "2025-01-31T12:00:00Z",
    "date": "2025-01-31",
    "time": "12:00:00",
    "duration": "PT90S",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}

BOUNDS: Final = {
    "minimum": ">= {}",
    "maximum": "<= {}",
    "exclusiveMinimum": "> {}",
    "exclusiveMaximum": "< {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "matching {}",
    "uniqueItems": "no duplicate items",
}
"""The words of a restriction after the type: `integer (>= 1)`."""


ANY: Final = "any value"
"""The words for a schema without a type."""

DESCRIBED: Final = frozenset({*BOUNDS, "type", "enum", "const", "format", "anyOf", "oneOf", "allOf"})
"""The keywords that `describe` puts into words."""

MAX_MESSAGE: Final = 200
"""Characters of jsonschema's own message, for every other keyword."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One wrong value or name.

    Args:
        path: its place, as a JSON pointer from the arguments: `/a`, `/items/0/x`.
        expected: the schema's expectation.
        found: the value that was sent.
    """

    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.path or '/'}: expected {self.expected}, found {self.found}"


TOO_DEEP: Final = Problem("", "less deeply nested arguments", "nesting too deep to read")


class InvalidArguments(ValueError):
    """A call's arguments do not match the tool's schema; the message is written for the model.

    Args:
        tool: the tool's name.
        problems: at least one.
    """

    def __init__(self, tool: str, problems: Sequence[Problem]) -> None:
        self.tool = tool
        self.problems = tuple(problems)
        shown = [f"- {problem}" for problem in self.problems[:MAX_PROBLEMS]]
        if (more := len(self.problems) - MAX_PROBLEMS) > 0:
            shown.append(f"- and {more} more")
        super().__init__("\n".join([f"invalid arguments for {tool}:", *shown]))

    def __reduce__(self) -> tuple[type[InvalidArguments], tuple[str, tuple[Problem, ...]]]:
        return InvalidArguments, (self.tool, self.problems)


def of_pydantic(
    errors: Iterable[ErrorDetails], arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> list[Problem]:
    """Problems from pydantic's errors: one per location; for a union, only those of the closest member."""
    problems: dict[str, Problem] = {}
    for located in _nearest_members([_locate(error, arguments) for error in islice(errors, MAX_ERRORS)]):
        problem = _problem(located, arguments, schema)
        before = problems.setdefault(problem.path, problem)
        if before is not problem and located.key:  # another type allowed for the name
            problems[problem.path] = replace(before, expected=f"{before.expected} or {_own_words(located.error)}")
    return list(problems.values())


def of_written(
    errors: Iterable[WrittenError], arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> list[Problem]:
    """Problems from jsonschema's errors."""
    found: dict[str, Problem] = {}
    for error in islice(errors, MAX_ERRORS):
        steps = tuple(error.absolute_path)
        for problem in _problems(error, steps, schema):
            found.setdefault(problem.path, problem)
    return list(found.values())


def _problems(error: WrittenError, steps: tuple[str | int, ...], schema: Mapping[str, Any]) -> list[Problem]:
    instance: Any = error.instance
    wanted: Any = error.validator_value
    match error.validator:
        case "required":
            absent = [name for name in wanted if name not in instance]
            return [_missing((*steps, name), schema) for name in absent]
        case "additionalProperties" if wanted is False and isinstance(error.schema, Mapping):
            known = list(error.schema.get("properties", {}))
            return [unknown(name, known, (*steps, name)) for name in instance if name not in known]
    inner = error.schema if isinstance(error.schema, Mapping) else {}
    expected = describe(inner, schema) if error.validator in DESCRIBED else f"that {error.message[:MAX_MESSAGE]}"
    if error.validator in ("anyOf", "oneOf") and ANY in expected.split(" or "):
        expected = _options(error, steps, schema)
    return [Problem(pointer(steps), expected, summarize(instance))]


def _options(error: WrittenError, steps: tuple[str | int, ...], schema: Mapping[str, Any]) -> str:
    """Return the expectations of several schemas that restrict names and values but no type."""
    each: dict[Any, list[str]] = {}
    for inner in error.context or ():
        for problem in _problems(inner, tuple(inner.absolute_path), schema):
            words = each.setdefault(inner.relative_schema_path[0], [])
            words.append(f"{problem.path.removeprefix(pointer(steps)) or '/'} as {problem.expected}")
    if not each:
        options: Any = error.validator_value
        return f"only one of {len(options)} alternatives to fit"
    return " or ".join(" and ".join(words) for words in each.values())


def pointer(steps: Sequence[str | int]) -> str:
    """Return a JSON pointer: `("items", 0, "x")` is `/items/0/x`; a name longer than `MAX_SHOWN` is shortened."""
    names = (name if len(name := str(step)) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}…" for step in steps)
    return "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in names)


def unknown(name: str, known: Sequence[str], steps: Sequence[str | int]) -> Problem:
    """Return the problem of an unknown name, with the known names and the closest one."""
    known = [one for one in known if one != name]
    near = nearest(name, known)
    listed = "one of the names " + ", ".join(map(_json, known[:MAX_CHOICES])) if known else "no names"
    hint = f" (did you mean {_json(near)}?)" if near is not None else ""
    return Problem(pointer(steps), f"{listed}{hint}", f"the unknown name {_json(name)}")


def _missing(steps: Sequence[str | int], schema: Mapping[str, Any]) -> Problem:
    return Problem(pointer(steps), describe_at(steps, schema), "nothing: it is required")


class _Located(NamedTuple):
    """A pydantic error, its path through the arguments, and the union at which its location departs from them."""

    error: ErrorDetails
    steps: tuple[str | int, ...]
    key: bool = False  # whether it is about the name at the last step, not its value
    union: tuple[str | int, ...] | None = None
    member: str = ""

    @property
    def cost(self) -> int:
        """The distance of the value from this member: another type, the right type with other fields, or a value."""
        if self.steps == self.union:
            return 100
        return 2 if self.error["type"].startswith(("missing", "extra", "unexpected")) else 1


_KEY: Final = "[key]"
"""The step that pydantic appends to a location after a wrong name."""


def _locate(error: ErrorDetails, arguments: Mapping[str, Any]) -> _Located:
    """Split an error's location into steps through the arguments and names of the types that were tried."""
    here: Any = arguments
    steps: list[str | int] = []
    tried: list[tuple[tuple[str | int, ...], str]] = []
    for step in error["loc"]:
        inside = (isinstance(here, Mapping) and step in here) or (
            isinstance(here, (list, tuple)) and isinstance(step, int) and step < len(here)
        )
        if inside:
            here = here[step]
            steps.append(step)
        else:
            tried.append((tuple(steps), str(step)))
    if error["type"].startswith("missing"):  # the last step is the missing name
        steps.append(error["loc"][-1])
        tried.pop()
    key = (tuple(steps), _KEY) in tried
    return _Located(error, tuple(steps), key, *(tried[0] if tried and not key else ()))


def _nearest_members(found: list[_Located]) -> list[_Located]:
    """Return the errors, for each union only those of the closest member."""
    costs: dict[tuple[str | int, ...] | None, dict[str, int]] = {}
    for located in found:
        of_union = costs.setdefault(located.union, {})
        of_union[located.member] = of_union.get(located.member, 0) + located.cost
    nearest = {union: min(members, key=members.__getitem__) for union, members in costs.items()}
    return [located for located in found if located.union is None or located.member == nearest[located.union]]


def _problem(located: _Located, arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> Problem:
    error, steps = located.error, located.steps
    kind = error["type"]
    if kind.startswith("missing"):
        return _missing(steps, schema)
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        known = list(dict.fromkeys(name for option in _at(steps[:-1], schema) for name in option.get("properties", {})))
        return unknown(str(steps[-1]), known, steps)
    if kind == "json_invalid" and not error["loc"]:
        return TOO_DEEP
    if located.key:
        return Problem(pointer(steps), f"a name that is {_own_words(error)}", f"the name {_json(str(steps[-1]))}")
    value: Any = arguments
    for step in steps:
        value = value[step]
    if kind in ("value_error", "assertion_error"):  # the author's own check, in any words
        return Problem(pointer(steps), "a valid value", f"{summarize(value)}: {_own_words(error)}")
    code = kind.endswith("_parsing") and isinstance(value, str) and _BEGINS_WITH_ZEROS(value) is not None
    wanted = _expectation(error, value, steps, schema)
    return Problem(pointer(steps), f"{wanted} without leading zeros" if code else wanted, summarize(value))


_BEGINS_WITH_ZEROS: Final = re.compile(r"\s*[+-]?0_?[0-9][0-9._eE+-]*\s*\Z").match


def _expectation(error: ErrorDetails, value: Any, steps: Sequence[str | int], schema: Mapping[str, Any]) -> str:
    """Return the schema's expectation; if the value would meet it, with the further constraint."""
    options = _at(steps, schema)
    described = _or([describe(option, schema) for option in options])
    spelled = error["type"].endswith(("_parsing", "_format"))
    if described and all((spelled and "format" in option) or breaks(value, option) for option in options):
        return described
    own = _own_words(error)
    if not described:
        return own
    return f"{described}: {own[0].lower() if own[1:2].islower() else own[:1]}{own[1:]}"


_SHALLOW: Final = ("enum", "const", *BOUNDS)


def breaks(value: Any, option: Mapping[str, Any]) -> bool:
    """Return True if a value, its contents aside, violates the words of `describe` about a plain schema."""
    wanted = option.get("type")
    found = type_of(value)
    if isinstance(wanted, str) and found != wanted and (found, wanted) != ("integer", "number"):
        return True
    shallow = {key: option[key] for key in _SHALLOW if key in option}
    if not shallow:
        return False
    try:
        return not checker_of(shallow).is_valid(value)
    except re.error:  # a pattern in pydantic's notation, such as `\p{L}`, which Python has not
        return False


def _own_words(error: ErrorDetails) -> str:
    """Return the message of the author's own validator, or pydantic's without its prefix."""
    text = error["msg"]
    for lead in ("Value error, ", "Assertion failed, ", "Input should be "):
        text = text.removeprefix(lead)
    return text


def describe_at(steps: Sequence[str | int], schema: Mapping[str, Any]) -> str:
    """Return the schema's expectation at a path."""
    return _or([describe(option, schema) for option in _at(steps, schema)]) or ANY


def _at(steps: Sequence[str | int], schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the plain schemas that apply at a path."""
    here = [schema]
    for step in steps:  # a schema may have properties, and alternatives that have further ones
        options = [option for one in here for option in (resolve(one, schema), *alternatives(one, schema))]
        found = (child(option, step) for option in options)
        here = list({id(one): one for one in found if isinstance(one, Mapping)}.values())
    return [option for found in here for option in alternatives(found, schema)]


def describe(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> str:
    """Return a schema in a few words: `integer (>= 1)`, `one of "a", "b"`, `array of (string or null)`."""
    return _or([_describe(option, root, depth) for option in alternatives(schema, root)])


def _describe(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if "const" in schema:
        return _json(schema["const"])
    if "enum" in schema:
        listed = ", ".join(_json(value) for value in schema["enum"][:MAX_CHOICES])
        return f"one of {listed}" if len(schema["enum"]) > 1 else listed
    kind = str(schema.get("type", ANY))
    if kind == "array" and depth < 2:
        kind = _array(schema, root, depth)
    if kind == "object" and schema.get("properties") and depth < 2:
        kind = "object with " + ", ".join(list(schema["properties"])[:MAX_CHOICES])
    covered = ("minItems", "maxItems") if "prefixItems" in schema else ()
    limits = [words.format(schema[key]) for key, words in BOUNDS.items() if key in schema and key not in covered]
    if schema.get("contentMediaType") == "application/json":
        limits.insert(0, "JSON as text")
    if (named := schema.get("format")) is not None:
        limits.insert(0, f"{named}, such as {FORMAT_EXAMPLES[named]}" if named in FORMAT_EXAMPLES else str(named))
    return f"{kind} ({', '.join(limits)})" if limits else kind


def _array(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if prefix := schema.get("prefixItems"):
        return f"array of [{', '.join(describe(item, root, depth + 1) for item in prefix)}]"
    items = schema.get("items")
    if not (isinstance(items, Mapping) and items):
        return "array"
    each = describe(items, root, depth + 1)
    return f"array of ({each})" if " or " in each else f"array of {each}"


def _or(words: Sequence[str]) -> str:
    return " or ".join(dict.fromkeys(words))


def summarize(value: Any) -> str:
    """Return a wrong value in a few words: `string "x"`, `integer 5`, `array of 3 items`."""
    match value:
        case None:
            return "null"
        case list() | tuple():
            return f"array of {len(value)} item{'' if len(value) == 1 else 's'}"
        case Mapping():
            names = ", ".join(str(name)[:MAX_SHOWN] for name in list(value)[:5])
            return f"object with {names}" if names else "empty object"
        case _:
            return f"{type_of(value, 'a value')} {_json(value)}"


def _json(value: Any) -> str:
    if isinstance(value, str) and len(value) > MAX_SHOWN:
        return f"{json.dumps(value[:MAX_SHOWN], ensure_ascii=False)}… ({len(value)} characters)"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "that JSON cannot represent"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
