"""Imports a Hugging Face `response_template` as a `Format`: delimiters become literals, content parsers become slots.

What our parts cannot express is refused explicitly, never approximated: a Format that reads other calls than the
checkpoint's own template is worse than none. Knows declarations and the template's data; does not use transformers.

Source: transformers 5.23, `utils/chat_parsing` (version 1 of the template), and the templates that transformers and
trl ship for Qwen, GLM, Gemma, gpt-oss, Cohere, ERNIE, Inkling, SmolLM, Llama, Nemotron and LFM.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, Final, Literal

from agentkit.errors import FormatError
from agentkit.formats.format import Braced, Envelope, Format, FormatPart, Json, Name, Pairs, Section, Shape, Skip
from agentkit.formats.write import render_calls
from agentkit.interop.response_template.spellings import CapturedGroup, Item, Spelling, Zero, spellings
from agentkit.messages import ToolCall
from agentkit.toolspec import ToolSpec

_THINKING: Final = ("reasoning_content", "thinking", "reasoning")
_TOP: Final = {"version", "defaults", "fields", "start_anchor", "start_anchor_pattern"}
_PLACEHOLDER = re.compile(r"\{(\w+(?:\.\w+)*)\}\Z")
_OPENED_TAG = re.compile(r"<([A-Za-z_][\w.:-]*)")
_NEWLINES: Final[Mapping[tuple[bool, bool], Literal["start", "both", "none"]]] = {
    (True, False): "start",
    (True, True): "both",
    (False, False): "none",
}
"""Where a newline is not part of a value, by whether white space is before and after it in the pattern."""
_PROBE: Final = ToolSpec(
    "look_up",
    "Probe.",
    {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
)
_PROBED: Final = ToolCall("", _PROBE.name, {"city": "Oslo", "days": 2})

Template = Mapping[str, Any]


def from_response_template(template: Template | str, name: str = "response_template") -> Format:
    """A checkpoint's own `response_template` as a Format.

    Args:
        template: the template, or a `tokenizer_config` that has one under that key; either as an object or as JSON.
        name: the Format's name.

    If the prompt already opened the reasoning, use `Parser(format, tools, thinking=True)`. Text that a template drops
    (between regions, where no field captures it) stays text, and every call counts, even if the template keeps only the
    last one (no `repeats`).

    Raises:
        FormatError: it is not a version 1 template, or contains what no parts of a Format can express; the message
            says what.
    """
    found = _loaded(template)
    fields = {field: _field(field, value) for field, value in found["fields"].items()}
    if "tool_calls" not in fields:
        raise FormatError("the response_template has no field 'tool_calls': it declares no calls")
    if unknown := sorted(set(fields) - {"tool_calls", "content", *_THINKING}):
        raise FormatError(f"the response_template has fields that do not belong to a reply: {', '.join(unknown)}")
    anchors = _delimiters("response_template", found, "start_anchor")
    shapes, leftovers = _calls(fields["tool_calls"], anchors)
    content = fields.get("content", {})
    opened = _delimiters("content", content, "open")
    closes = [text for spelling in _delimiters("content", content, "close") if (text := _literal(spelling))]
    if opened and len(closes) != 1:
        raise FormatError(
            "'content' has an opening but not exactly one closing: an answer must be between two literals"
        )
    thinking = [pair for field in _THINKING if field in fields for pair in _regions(field, fields[field], anchors)]
    format = Format(
        name,
        shapes[0].call,
        shapes[0].section,
        separator="," if shapes[0].section is not None else "",
        also=tuple(shapes[1:]),
        thinking=tuple(thinking),
        answer=tuple((text, closes[0]) for spelling in opened if (text := _literal(spelling))),
        markup=tuple(dict.fromkeys([*leftovers, *(() if opened else closes), *filter(None, map(_literal, anchors))])),
    )
    return _tried(format)


def _loaded(template: Template | str) -> Template:
    found = json.loads(template) if isinstance(template, str) else template
    if isinstance(found, Mapping) and "fields" not in found and "response_template" in found:
        found = found["response_template"]
    if isinstance(found, Mapping) and any(key.startswith("x-") or key == "response_schema" for key in found):
        raise FormatError("this is a response_schema, the older kind, which transformers itself no longer supports")
    if not isinstance(found, Mapping) or not isinstance(found.get("fields"), Mapping):
        raise FormatError("not a response_template: expected an object with 'fields'")
    if found.get("version", 1) != 1:
        raise FormatError(f"version {found['version']!r} of response_template is not supported; expected 1")
    if unknown := sorted(set(found) - _TOP):
        raise FormatError(f"the response_template has unknown keys: {', '.join(unknown)}")
    return found


def _field(name: str, field: Any) -> Template:
    if not isinstance(field, Mapping):
        raise FormatError(f"field {name!r} is not an object")
    return field


def _tried(format: Format) -> Format:
    """The format, after a call written in it has been read back as a check."""
    try:
        render_calls(format, [_PROBED], [_PROBE])
    except (FormatError, TypeError, StopIteration) as e:
        raise FormatError(f"the response_template's calls cannot be distinguished from what surrounds them: {e}") from e
    return format


# ---------------------------------------------------------------- delimiters


def _delimiters(scope: str, field: Template, key: str) -> list[Spelling]:
    """The spellings of a delimiter, which is a list of literals or a pattern; empty if there is no delimiter."""
    try:
        literals = field.get(key)
        if literals is not None:
            return [(text,) for text in ([literals] if isinstance(literals, str) else literals)]
        pattern = field.get(f"{key}_pattern")
        return [] if pattern is None else list(spellings(pattern))
    except FormatError as e:
        raise FormatError(f"{scope!r}: {e}") from e


def _trimmed(spelling: Spelling) -> Spelling:
    """The spelling without conditions, and without gaps and white space at its ends."""
    items: list[Item] = [item for item in spelling if item is not Zero.EDGE]
    while items and (items[0] is Zero.GAP or (isinstance(items[0], str) and items[0].isspace())):
        items.pop(0)
    while items and isinstance(items[-1], str) and items[-1].isspace():
        items.pop()
    return tuple(items)


def _literal(spelling: Spelling) -> str:
    """The only literal of a delimiter; empty if it is only a condition."""
    match _trimmed(spelling):
        case ():
            return ""
        case (str(text),):
            return text.strip()
        case _:
            raise FormatError(f"a delimiter is not a literal: {spelling!r}")


def _openings(scope: str, field: Template) -> tuple[list[Spelling], list[str]]:
    """The ways in which a region opens, and meaningless literals that may precede some of them."""
    ways = [way for way in map(_trimmed, _delimiters(scope, field, "open")) if way]
    kept = [way for way in ways if not any(len(o) < len(way) and way[-len(o) :] == o for o in ways)]
    return kept, [way[0] for way in ways if way not in kept and isinstance(way[0], str)]


def _regions(scope: str, field: Template, anchors: Iterable[Spelling]) -> list[tuple[str, str]]:
    closes = _closings(scope, field)[0]
    opens = [_literal(way) for way in _openings(scope, field)[0]]
    if len(opens) == len(closes) > 1:
        return list(zip(opens, closes, strict=True))
    if len(closes) != 1:
        raise FormatError(f"{scope!r}: reasoning must end at exactly one literal, not {len(closes)}")
    if not opens:  # the region is open from the start: the prompt contains its opening tag
        literals = [item for anchor in anchors for item in anchor if isinstance(item, str)]
        opens = [tag for tag in [closes[0].replace("</", "<")] if any(tag in text for text in literals)]
    if not opens:
        raise FormatError(f"{scope!r}: no literal opens the reasoning")
    return [(text, closes[0]) for text in opens]


def _closings(scope: str, field: Template) -> tuple[list[str], list[str]]:
    """The literals that close a region, and meaningless literals that may follow some of them."""
    texts = [text for spelling in _delimiters(scope, field, "close") if (text := _literal(spelling))]
    kept = [text for text in texts if not any(o != text and text.startswith(o) for o in texts)]
    rest = [text[len(o) :].strip() for text in texts for o in kept if o != text and text.startswith(o)]
    return list(dict.fromkeys(kept)), rest


# ---------------------------------------------------------------- calls


def _calls(field: Template, anchors: list[Spelling]) -> tuple[list[Shape], list[str]]:
    """The shapes in which calls are written, and meaningless literals around them."""
    ways, leftovers = _openings("tool_calls", field)
    if not ways:
        raise FormatError("'tool_calls': no literal opens a call")
    closes, behind = _closings("tool_calls", field)
    shapes = []
    for way in ways:
        body, array = _body(field, way)
        ends = _ends(way, body, closes, behind)
        if array:
            if len(way) != 1 or not isinstance(way[0], str):
                raise FormatError("'tool_calls': an array of calls must be opened by one literal")
            shapes.append(Shape((body,), Section(f"{way[0]}[", f"]{''.join(ends)}")))
            continue
        leads = ("", *_behind_anchors(way, anchors))
        shapes += [Shape((*_parts(way, _named(field), lead), body, *ends)) for lead in leads]
    return shapes, [*leftovers, *closes[1:], *behind]


def _behind_anchors(way: Spelling, anchors: Iterable[Spelling]) -> Iterator[str]:
    """Where an opening made of letters may occur within a reply: after the start of a turn, repeated by the model."""
    if isinstance(way[0], str) and way[0][0].isalnum():
        yield from filter(None, map(_literal, anchors))


def _ends(way: Spelling, body: FormatPart, closes: list[str], behind: list[str]) -> tuple[str, ...]:
    """Return the closings that follow a body; if it determines its own end, further ones are control tokens."""
    if not isinstance(body, Pairs):
        return tuple(closes[:1])
    if len(closes) != 1:
        raise FormatError(f"'tool_calls': parameters must be closed by exactly one literal, not {len(closes)}")
    before = takewhile(lambda item: isinstance(item, str), way)
    opened = [tag for item in before for tag in _OPENED_TAG.findall(str(item))]
    inner = [f"</{tag}>\n" for tag in reversed(opened) if f"</{tag}>" not in "".join([*closes, *behind])]
    return ("".join([*inner, closes[0]]),)  # a tag that is opened but has no declared close closes first


def _parts(way: Spelling, named: str, lead: str) -> Iterator[FormatPart]:
    """Yield an opening as parts: literals, the slot of the name, and the text skipped before and after it."""
    if not isinstance(way[0], str):
        raise FormatError("'tool_calls': a call does not open with a literal")
    seen = False
    for i, item in enumerate(way):
        match item:
            case str(text):
                yield f"{lead} {text}" if lead and i == 0 else text
            case CapturedGroup(name) if name == named and not seen:
                seen = True
                yield Name()
            case CapturedGroup() | Zero.GAP if any(isinstance(later, str) for later in way[i + 1 :]):
                yield Skip("")
            case _:
                raise FormatError(f"'tool_calls': {item!r} is where only a literal or the tool's name can be")
    if named and not seen:
        raise FormatError(f"'tool_calls': no group captures the name {named!r}")


def _function(field: Template) -> Any:
    """The result of the transform: a call's name and arguments as placeholders, or one placeholder for both."""
    transform = field.get("transform")
    if not isinstance(transform, Mapping):
        raise FormatError("'tool_calls' has no transform that says where the name and the arguments are")
    return transform.get("function", transform)


def _path(value: Any, what: str) -> list[str]:
    found = _PLACEHOLDER.match(value) if isinstance(value, str) else None
    if found is None:
        raise FormatError(f"'tool_calls': the {what} is {value!r}, not one placeholder")
    return found[1].split(".")


def _named(field: Template) -> str:
    """The group that captures the tool's name; empty if the body contains the name."""
    function = _function(field)
    if not isinstance(function, Mapping) or field.get("transform_each"):
        return ""
    path = _path(function.get("name"), "name")
    return path[0] if path[0] != "content" else ""


def _body(field: Template, way: Spelling) -> tuple[FormatPart, bool]:
    """The slot of a call's body, and whether the calls are an array in it."""
    kind, args = field.get("content", "text"), field.get("content_args", {})
    function, named, each = _function(field), _named(field), bool(field.get("transform_each"))
    if kind == "xml-inline" and named and not each and _path(function.get("arguments"), "arguments") == ["content"]:
        return _pairs(args), False
    if kind != "json":
        raise FormatError(f"'tool_calls': the content {kind!r} is not the arguments object of a named call")
    if unknown := sorted(set(args) - {"unquoted_keys", "string_delims", "allow_non_json"}):
        raise FormatError(f"'tool_calls': unknown content_args {', '.join(unknown)}")
    if named:
        if _path(function.get("arguments"), "arguments") != ["content"]:
            raise FormatError("'tool_calls': the arguments are only part of the body after the name")
        return _json_or_braced(args), False
    if _json_or_braced(args) != Json():
        raise FormatError("'tool_calls': a name inside JSON with special keys or strings")
    return _envelope(function, each), each


def _envelope(function: Any, each: bool) -> Envelope:
    if not isinstance(function, Mapping):
        if _path(function, "function") != ["content"] or each:
            raise FormatError("'tool_calls': the function is neither the content nor built from its keys")
        return Envelope()
    name, arguments = _path(function.get("name"), "name"), _path(function.get("arguments"), "arguments")
    if not each:
        if name[:1] != ["content"] or arguments[:1] != ["content"]:
            raise FormatError("'tool_calls': name and arguments are not in the same JSON object")
        name, arguments = name[1:], arguments[1:]
    if len(name) != 1 or len(arguments) != 1:
        raise FormatError("'tool_calls': name and arguments are not keys of one JSON object")
    return Envelope(name[0], (arguments[0],))


def _json_or_braced(args: Template) -> Json | Braced:
    delims, bare = args.get("string_delims") or [], bool(args.get("unquoted_keys"))
    if not delims and not bare:
        return Json()
    if len(delims) != 1 or delims[0][0] != delims[0][1] or not bare:
        raise FormatError("'tool_calls': a kind of JSON other than bare keys and strings between equal tokens")
    return Braced(delims[0][0])


def _pairs(args: Template) -> Pairs:
    """Parameters, from the pattern of one of them."""
    if args.get("merge_duplicates"):
        raise FormatError("'tool_calls': a repeated parameter becomes a list")
    parser = args.get("value_parser") or {"name": "text"}
    lenient = parser.get("name") == "json" and parser.get("args", {}).get("allow_non_json")
    if parser.get("name", "text") != "text" and (not lenient or set(parser["args"]) != {"allow_non_json"}):
        raise FormatError("'tool_calls': values that always have one type, or special strings")
    found = spellings(args.get("tag_pattern", ""))
    if len(found) != 1:
        raise FormatError("'tool_calls': a parameter is written in more than one way")
    match found[0]:
        case (str(key), CapturedGroup("key"), str(middle), CapturedGroup("value"), str(close)) if (
            key.strip() and close.strip()
        ):
            newlines = _NEWLINES.get((middle[-1:].isspace(), close[0].isspace()))
            if newlines is None:
                raise FormatError("'tool_calls': only the newline after a value is not part of it, not the one before")
            return Pairs(key.strip(), middle.lstrip(), close.rstrip(), newlines=newlines)
        case _:
            raise FormatError(
                f"'tool_calls': a parameter is not a key and a value between literals: {args['tag_pattern']!r}"
            )
