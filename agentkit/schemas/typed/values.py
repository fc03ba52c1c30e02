"""Text to typed values and back, by JSON Schema. Pure; `read` never raises on a model's text.

A string parameter receives exactly the characters written. Everything else is read as JSON; numbers, arrays, objects
and values without a type in the schema then as Python literals. An array may also be written as comma-separated items.
Text that is clearly JSON of a type other than the schema's becomes that value, and text that cannot be read stays a
string; validation refuses both. `load` and `refuse_other` raise: their callers answer the model.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from agentkit.checks.unicode import has_surrogate, without_surrogates
from agentkit.errors import FormatError
from agentkit.schemas.typed.exact import RoundedNumber, as_integer, nearest
from agentkit.schemas.typed.literals import A_NUMBER, MAX_DEPTH, MAX_NUMBER, PYTHON_WORDS, literal_value
from agentkit.schemas.walk import TYPES, Schema, alternatives

_INTEGER = re.compile(r"[+-]?(?!0[0-9])[0-9]{1,4300}\Z")  # 4,300 is the interpreter's own limit for int(str)
_ONE_READING = re.compile(r"[+-]?(?!0+[1-7][0-7]+\Z)0[0-9]+\Z")  # a month; `007`, `018956`: not octal, as `0644` may be
_TOO_LONG = re.compile(r"(?<!\d)\d{4301}")
_NUMERIC = re.compile(r"[+-]?\.?[0-9]").match
_WORDS: Mapping[str, bool] = {"true": True, "false": False, "True": True, "False": False, "TRUE": True, "FALSE": False}
NULLS = frozenset(("null", "None", "NULL"))
_ESCAPED_JSON = re.compile(r"[\[{][\[{\s]*\\\"")
_UNREAD: Any = object()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = nearest(text) if len(text) <= MAX_NUMBER else math.inf
    if not math.isfinite(value):
        raise ValueError(f"expected {A_NUMBER}, got {text[:20]!r}")
    return value


class DuplicateKey(ValueError):
    """An object has the same key twice, with different values: it is ambiguous which one is meant.

    Args:
        key: the key.
        both: the values, in words.
    """

    def __init__(self, key: str, both: str) -> None:
        super().__init__(key, both)
        self.key = key

    def __str__(self) -> str:
        return "{!r} is given twice, with different values ({}); give it once".format(*self.args)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        for key, value in pairs:
            refuse_other(out, key, value)
    return out


def refuse_other(given: Mapping[str, Any], key: str, value: Any) -> None:
    """Refuse a second value of a key that differs from the first.

    Raises:
        DuplicateKey: the values differ; the message shows both.
    """
    if key in given and not same(given[key], value):
        both = " and ".join(repr(v)[:40] for v in (given[key], value))
        raise DuplicateKey(key, both)


DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_object)
LOOSE = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_object, strict=False)
"""As `DECODER`, with raw control characters allowed inside strings."""


def load(text: str, *, strict: bool = True, depth: int = MAX_DEPTH) -> Any:
    """Parse JSON; non-finite numbers and nesting beyond `depth` are refused, lone surrogates become U+FFFD.

    Raises:
        ValueError: the text is not JSON of this kind: `json.JSONDecodeError` if a position is known, `DuplicateKey` if
            an object has one key with two values.
    """
    try:
        value = (DECODER if strict else LOOSE).decode(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    except ValueError as e:
        if type(e) is ValueError and (digits := _TOO_LONG.search(text)):  # its own words name settings
            raise ValueError(f"expected {A_NUMBER}, got {digits[0][:20]!r}") from None
        raise
    if too_deep(value, text, depth):
        raise ValueError(f"nested deeper than {depth} arrays and objects")
    return without_surrogates(value) if "\\u" in text or has_surrogate(text) else value


def too_deep(value: Any, text: str, limit: int) -> bool:
    """Return True if JSON that was read from this text nests arrays and objects deeper than `limit`."""
    if text.count("{") + text.count("[") <= limit:  # too few to be nested deeper
        return False
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def make_encodable(arguments: dict[str, Any], raw: str) -> dict[str, Any]:
    """Return a call's arguments, with U+FFFD for lone surrogates: the same rule for every body and any chunks."""
    return without_surrogates(arguments) if has_surrogate(raw) else arguments


_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_UNKNOWN = re.compile(r"\ufffd|\\ufffd", re.IGNORECASE)


def has_replacements(arguments: Any, raw: str) -> bool:
    """Return True if these arguments have U+FFFD in place of a lone surrogate in the call's own text."""
    if raw.isascii() and "\\u" not in raw:  # as in most calls: it cannot contain a lone surrogate, escaped or not
        return False
    put = json.dumps(arguments, ensure_ascii=False).count("\ufffd")
    return put > 0 and _HALF.search(raw) is not None and put > len(_UNKNOWN.findall(raw))


def dump(value: Any) -> str:
    """JSON text of a value, on one line and in readable Unicode.

    Raises:
        FormatError: the value is not JSON: a non-finite number, a lone surrogate, or a type unknown to JSON.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as e:
        raise FormatError(f"{type(value).__name__} value cannot be written as JSON: {e}") from e
    if has_surrogate(text):
        raise FormatError("a string with a lone surrogate cannot be written in any format")
    return text


_ALIASES: Mapping[str, str] = {
    "str": "string", "text": "string", "char": "string", "int": "integer", "long": "integer", "float": "number",
    "double": "number", "bool": "boolean", "list": "array", "tuple": "array", "dict": "object",
    "hashmap": "object", "arraylist": "array", "any": "any", "none": "null",
}  # fmt: skip
"""Names of types in hand-written schemas that do not use those of JSON Schema.

Python's names; those of the Berkeley leaderboard's functions (`GORILLA_TO_OPENAPI` in bfcl_eval/constants/
type_mappings.py: `any`, `char`, `long`, `double`, `ArrayList`, `HashMap`); `text`, from vLLM's Qwen3-Coder parser.
"""


def _kind(schema: Schema) -> str | None:
    kind = schema.get("type")
    if not isinstance(kind, str):
        return None
    if kind in TYPES:
        return kind
    kind = _ALIASES.get(kind.lower(), kind.lower())
    return None if kind == "any" else kind


def accepts(text: str, schema: Schema, root: Schema) -> bool:
    """Return True if a parameter of this schema may be a string, according to its types alone."""
    for option in alternatives(schema, root):
        if _kind(option) in ("string", None) or any(isinstance(v, str) for v in option.get("enum", ())):
            return True
    return False


def is_any_text(schema: Schema, root: Schema) -> bool:
    """Return True if a parameter of this schema accepts any text, as it is written."""
    options = list(alternatives(schema, root))
    plain = all(_kind(option) == "string" and "enum" not in option and "const" not in option for option in options)
    return plain and bool(options) and not accepts_null(schema, root)


def accepts_null(schema: Schema, root: Schema) -> bool:
    """Return True if null is one of the values of `schema`, or its default."""
    return schema.get("default", ...) is None or any(_kind(s) == "null" for s in alternatives(schema, root))


def read(text: str, schema: Schema, root: Schema, *, nulls: bool = False, zeros: bool = False) -> Any:
    """Return the value that `text` represents for a parameter of this schema.

    With `nulls`, the word null means null even if a string is also allowed. An enum of strings accepts only its
    members; any other text is read by the other types. The word null stays an exception. A number with leading zeros
    stays text, since it may be in another base, or a code; with `zeros`, one with only one reading (`07`, `018956`) is
    read.

    >>> read("007", {"type": "string"}, {}), read("5", {"type": "integer"}, {}), read("a, b", {"type": "array"}, {})
    ('007', 5, ['a', 'b'])
    """
    options = list(alternatives(schema, root))
    may_be_text = False
    for option in options:
        listed = "const" in option or isinstance(option.get("enum"), list)
        if listed and (value := _list_value(text, option)) is not _UNREAD:
            return value  # a value listed literally is meant
        may_be_text = may_be_text or (_kind(option) == "string" and (not listed or text in NULLS))
    if may_be_text:
        if nulls and text in NULLS and accepts_null(schema, root):
            return None
        others = [o for o in options if _kind(o) not in ("string", "null")]
        return _unless_clearly_not(text, others) if others else text
    stripped = text.strip()
    if stripped in NULLS and accepts_null(schema, root):
        return None
    for option in options:
        if (value := _plain(stripped, option, root, zeros)) is not _UNREAD:
            return value
    return _of_another_type(stripped, text, options)


def _list_value(text: str, schema: Schema) -> Any:
    """Return the value of an `enum` or `const` that is written here."""
    enum = schema.get("enum")
    listed = enum if isinstance(enum, list) else [schema.get("const")]
    strings = [value for value in listed if isinstance(value, str)]
    stripped = text.strip()
    if text in strings or (stripped in strings and len(strings) == len(listed)):
        return text if text in strings else stripped
    if len(strings) == len(listed):
        return _UNREAD
    value = _json(stripped)
    return next((v for v in listed if not isinstance(v, str) and same(value, v)), _UNREAD)


def _unless_clearly_not(text: str, others: list[Schema]) -> Any:
    """Return a string, unless it is exactly one value of another type that the schema allows."""
    value = _json(text.strip())
    return value if isinstance(value, str) or any(_is(value, _kind(o)) for o in others) else text


def _of_another_type(stripped: str, text: str, options: list[Schema]) -> Any:
    """JSON of a type that the schema does not allow; but a number is never read as a boolean or vice versa."""
    value = _json(stripped)
    scalar = isinstance(value, bool | int | float) and any(
        _kind(o) in ("boolean", "integer", "number") for o in options
    )
    return text if scalar or value is _UNREAD else value


def _plain(text: str, schema: Schema, root: Schema, zeros: bool) -> Any:
    match _kind(schema):
        case "null":
            return None if text in NULLS or not text else _UNREAD
        case "boolean":
            return _WORDS.get(text, _UNREAD)
        case "integer":
            value = _number(text, zeros)
            exact = as_integer(value) if isinstance(value, float) else value
            return _UNREAD if exact is None else exact
        case "number":
            return _number(text, zeros)
        case "array":
            return _array(text, schema, root, zeros)
        case "object":
            value = _json_or_literal(text, zeros)
            return value if isinstance(value, dict) else _UNREAD
        case None:
            return _anything(text)
    return _UNREAD


def _number(text: str, zeros: bool) -> Any:
    if _INTEGER.match(text) or (zeros and _ONE_READING.match(text)):
        return int(text)
    return _literal(text) if _NUMERIC(text) else _UNREAD


def _anything(text: str) -> Any:
    """Return the value for a schema without a type; a number of Python only, such as `0x1F`, may be a name."""
    value = _json(text)
    if value is _UNREAD and (text.startswith(_PYTHON) or text in PYTHON_WORDS):
        value = _literal(text)
        return _UNREAD if isinstance(value, int | float) and not isinstance(value, bool) else value
    return value


_PYTHON = ("{", "[", "(", "'", '"')


def _array(text: str, schema: Schema, root: Schema, zeros: bool) -> Any:
    value = _json_or_literal(text, zeros) if text.startswith(("[", "(")) else _json(text)
    if isinstance(value, list):
        return value
    if not text or text in NULLS or isinstance(value, str) or text.startswith("{") or not _PLAIN_ITEMS(text):
        return _UNREAD
    items = schema.get("items")
    items = items if isinstance(items, Mapping) else {"type": "string"}
    return [read(part.strip(), items, root, zeros=zeros) for part in text.split(",")]


_PLAIN_ITEMS = re.compile(
    r"""(?!,|(?:[-*+•]|\d{1,9}[.)])\s)  # not a bullet
    (?>[^"{}\[\]()<,\r\n]++ | <(?![\w/!?]) | \([^"{}\[\]()<,\r\n]*+\) | ,\s*+(?![,\s]|\Z))*+\Z""",
    re.VERBOSE,
).match
"""Items on one line, or each after a comma on its own line. Text with a bracket or a quote is damaged JSON, with a tag
or a bullet it is a list of another kind, and without an item before or after a comma its meaning is unknown."""


def _json(text: str) -> Any:
    if not text or text[0] not in '{["-0123456789tfn':
        return _UNREAD
    try:
        return load(text)
    except ValueError:
        return _UNREAD


def _json_or_literal(text: str, zeros: bool) -> Any:
    value = _json(text)
    if value is _UNREAD:
        value = _literal(text, zeros)
    return _escaped_json(text) if value is _UNREAD else value


def _literal(text: str, zeros: bool = False) -> Any:
    try:
        return without_surrogates(literal_value(text, zeros=zeros))
    except (ValueError, RecursionError):
        return _UNREAD


def _escaped_json(text: str) -> Any:
    """Return an object or array whose JSON was escaped as if inside a JSON string, without that string's quotes.

    Source: `todos` of GLM 4.5 and 4.7, in SGLang's tests of their detectors.
    """
    if _ESCAPED_JSON.match(text) is None:
        return _UNREAD
    inner = _json(f'"{text}"')
    return _json(inner) if isinstance(inner, str) else _UNREAD


_CLASSES: Mapping[str | None, tuple[type, ...]] = {
    "boolean": (bool,), "integer": (int,), "number": (int, float), "object": (dict,), "array": (list,),
}  # fmt: skip


def _is(value: Any, kind: str | None) -> bool:
    return isinstance(value, _CLASSES.get(kind, ())) and (kind == "boolean") == isinstance(value, bool)


def same(a: Any, b: Any) -> bool:
    """Equality that distinguishes 1 from True and from 1.0, at any depth."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, RoundedNumber):
        return bool(a.written == b.written)
    return bool(a == b)


def write(value: Any, schema: Schema, root: Schema, *, nulls: bool = False) -> str:
    """Write text that `read` turns back into exactly `value`; `nulls` as for `read`.

    Raises:
        FormatError: there is no such text.
    """
    candidates = [value] if isinstance(value, str) else []
    for text in (*candidates, dump(value)):
        if not has_surrogate(text) and same(read(text, schema, root, nulls=nulls), value):
            return text
    raise FormatError(
        f"{type(value).__name__} {dump(value)[:60]} cannot be written as text for the schema {json.dumps(schema)[:120]}"
    )
