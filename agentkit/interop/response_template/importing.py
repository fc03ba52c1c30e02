"""A Hugging Face `response_template` read as a `Format`: delimiters become literals, content parsers become slots.

What our parts cannot say is refused by name, never approximated: a Format that reads other calls than the checkpoint's
own template is worse than none. Knows declarations and the template's data; knows no transformers.

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
from agentkit.interop.response_template.spellings import Captured, Item, Spelling, Zero, spellings
from agentkit.messages import ToolCall
from agentkit.toolspec import ToolSpec

_THINKING: Final = ("reasoning_content", "thinking", "reasoning")
_TOP: Final = {"version", "defaults", "fields", "start_anchor", "start_anchor_pattern"}
_PLACEHOLDER = re.compile(r"\{(\w+(?:\.\w+)*)\}\Z")
_OPENED_TAG = re.compile(r"<([A-Za-z_][\w.:-]*)")
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
        template: the template, or a `tokenizer_config` that holds one under that key; either as an object or as JSON.
        name: the Format's name.

    A prompt that already opened the reasoning is told to the parser: `Parser(format, tools, thinking=True)`. Text that
    a template drops (between regions, where no field takes it) stays text, and every call counts, also where the
    template keeps the last one only (no `repeats`).

    Raises:
        FormatError: it is no template of version 1, or holds what no parts of a Format can say; the message names it.
    """
    found = _loaded(template)
    fields = {field: _field(field, value) for field, value in found["fields"].items()}
    if "tool_calls" not in fields:
        raise FormatError("the response_template has no field 'tool_calls': it declares no calls")
    if unknown := sorted(set(fields) - {"tool_calls", "content", *_THINKING}):
        raise FormatError(f"the response_template has fields that are no part of a reply: {', '.join(unknown)}")
    anchors = _delimiters("response_template", found, "start_anchor")
    shapes, leftovers = _calls(fields["tool_calls"], anchors)
    content = fields.get("content", {})
    opened = _delimiters("content", content, "open")
    closes = [text for spelling in _delimiters("content", content, "close") if (text := _literal(spelling))]
    if opened and len(closes) != 1:
        raise FormatError("'content' has an opening but not exactly one closing: an answer is between two literals")
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
        raise FormatError("this is a response_schema, the older kind, which transformers itself no longer reads")
    if not isinstance(found, Mapping) or not isinstance(found.get("fields"), Mapping):
        raise FormatError("no response_template: an object with 'fields' is wanted")
    if found.get("version", 1) != 1:
        raise FormatError(f"version {found['version']!r} of response_template is not known, only 1")
    if unknown := sorted(set(found) - _TOP):
        raise FormatError(f"the response_template has unknown keys: {', '.join(unknown)}")
    return found


def _field(name: str, field: Any) -> Template:
    if not isinstance(field, Mapping):
        raise FormatError(f"field {name!r} is no object")
    return field


def _tried(format: Format) -> Format:
    """The format, once a call written in it has been read back."""
    try:
        render_calls(format, [_PROBED], [_PROBE])
    except (FormatError, TypeError, StopIteration) as e:
        raise FormatError(f"the response_template's calls cannot be told from what stands around them: {e}") from e
    return format


# ---------------------------------------------------------------- delimiters


def _delimiters(scope: str, field: Template, key: str) -> list[Spelling]:
    """The spellings of a delimiter, given as literals or as a pattern; none where it is left out."""
    try:
        given = field.get(key)
        if given is not None:
            return [(text,) for text in ([given] if isinstance(given, str) else given)]
        pattern = field.get(f"{key}_pattern")
        return [] if pattern is None else list(spellings(pattern))
    except FormatError as e:
        raise FormatError(f"{scope!r}: {e}") from e


def _trimmed(spelling: Spelling) -> Spelling:
    """Without conditions, and without the gaps and the white space at its ends."""
    items: list[Item] = [item for item in spelling if item is not Zero.EDGE]
    while items and (items[0] is Zero.GAP or (isinstance(items[0], str) and items[0].isspace())):
        items.pop(0)
    while items and isinstance(items[-1], str) and items[-1].isspace():
        items.pop()
    return tuple(items)


def _literal(spelling: Spelling) -> str:
    """The one literal that a delimiter is; empty where it is nothing but a condition."""
    match _trimmed(spelling):
        case ():
            return ""
        case (str(text),):
            return text.strip()
        case _:
            raise FormatError(f"a delimiter is no literal: {spelling!r}")


def _openings(scope: str, field: Template) -> tuple[list[Spelling], list[str]]:
    """The ways in which a region opens, and literals that may precede some of them and say nothing."""
    ways = [way for way in map(_trimmed, _delimiters(scope, field, "open")) if way]
    kept = [way for way in ways if not any(len(o) < len(way) and way[-len(o) :] == o for o in ways)]
    return kept, [way[0] for way in ways if way not in kept and isinstance(way[0], str)]


def _regions(scope: str, field: Template, anchors: Iterable[Spelling]) -> list[tuple[str, str]]:
    """The literals around reasoning."""
    closes = _closings(scope, field)[0]
    opens = [_literal(way) for way in _openings(scope, field)[0]]
    if len(opens) == len(closes) > 1:
        return list(zip(opens, closes, strict=True))
    if len(closes) != 1:
        raise FormatError(f"{scope!r}: reasoning ends at exactly one literal, not at {len(closes)}")
    if not opens:  # the region is open from the start: the prompt wrote its opening tag
        told = [item for anchor in anchors for item in anchor if isinstance(item, str)]
        opens = [tag for tag in [closes[0].replace("</", "<")] if any(tag in text for text in told)]
    if not opens:
        raise FormatError(f"{scope!r}: no literal opens the reasoning")
    return [(text, closes[0]) for text in opens]


def _closings(scope: str, field: Template) -> tuple[list[str], list[str]]:
    """The literals that close a region, and what may follow some of them and says nothing."""
    texts = [text for spelling in _delimiters(scope, field, "close") if (text := _literal(spelling))]
    kept = [text for text in texts if not any(o != text and text.startswith(o) for o in texts)]
    rest = [text[len(o) :].strip() for text in texts for o in kept if o != text and text.startswith(o)]
    return list(dict.fromkeys(kept)), rest


# ---------------------------------------------------------------- calls


def _calls(field: Template, anchors: list[Spelling]) -> tuple[list[Shape], list[str]]:
    """The shapes in which calls are written, and literals around them that say nothing."""
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
                raise FormatError("'tool_calls': an array of calls is opened by one literal")
            shapes.append(Shape((body,), Section(f"{way[0]}[", f"]{''.join(ends)}")))
            continue
        leads = ("", *_behind_anchors(way, anchors))
        shapes += [Shape((*_parts(way, _named(field), lead), body, *ends)) for lead in leads]
    return shapes, [*leftovers, *closes[1:], *behind]


def _behind_anchors(way: Spelling, anchors: Iterable[Spelling]) -> Iterator[str]:
    """Where an opening of letters may stand in the midst of a reply: behind what starts a turn, written once more."""
    if isinstance(way[0], str) and way[0][0].isalnum():
        yield from filter(None, map(_literal, anchors))


def _ends(way: Spelling, body: FormatPart, closes: list[str], behind: list[str]) -> tuple[str, ...]:
    """What stands behind a body. Where a body tells its own end, of several closings the others are control tokens."""
    if not isinstance(body, Pairs):
        return tuple(closes[:1])
    if len(closes) != 1:
        raise FormatError(f"'tool_calls': parameters are closed by exactly one literal, not by {len(closes)}")
    before = takewhile(lambda item: isinstance(item, str), way)
    opened = [tag for item in before for tag in _OPENED_TAG.findall(str(item))]
    inner = [f"</{tag}>\n" for tag in reversed(opened) if f"</{tag}>" not in "".join([*closes, *behind])]
    return ("".join([*inner, closes[0]]),)  # a tag that is opened and not said to close closes first


def _parts(way: Spelling, named: str, lead: str) -> Iterator[FormatPart]:
    """An opening as parts: literals, the slot of the name, and what is skipped before and after it."""
    if not isinstance(way[0], str):
        raise FormatError("'tool_calls': a call opens with no literal")
    seen = False
    for i, item in enumerate(way):
        match item:
            case str(text):
                yield f"{lead} {text}" if lead and i == 0 else text
            case Captured(name) if name == named and not seen:
                seen = True
                yield Name()
            case Captured() | Zero.GAP if any(isinstance(later, str) for later in way[i + 1 :]):
                yield Skip("")
            case _:
                raise FormatError(f"'tool_calls': {item!r} stands where only a literal or the tool's name can")
    if named and not seen:
        raise FormatError(f"'tool_calls': no group captures the name {named!r}")


def _function(field: Template) -> Any:
    """What the transform makes of a call: its name and arguments as placeholders, or one for both."""
    transform = field.get("transform")
    if not isinstance(transform, Mapping):
        raise FormatError("'tool_calls' has no transform that tells where the name and the arguments stand")
    return transform.get("function", transform)


def _path(value: Any, what: str) -> list[str]:
    found = _PLACEHOLDER.match(value) if isinstance(value, str) else None
    if found is None:
        raise FormatError(f"'tool_calls': the {what} is {value!r}, not one placeholder")
    return found[1].split(".")


def _named(field: Template) -> str:
    """The group that captures the tool's name; empty where the body holds the name."""
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
        raise FormatError(f"'tool_calls': the content {kind!r} is no arguments object of a named call")
    if unknown := sorted(set(args) - {"unquoted_keys", "string_delims", "allow_non_json"}):
        raise FormatError(f"'tool_calls': unknown content_args {', '.join(unknown)}")
    if named:
        if _path(function.get("arguments"), "arguments") != ["content"]:
            raise FormatError("'tool_calls': the arguments are only a part of the body behind the name")
        return _json_or_braced(args), False
    if _json_or_braced(args) != Json():
        raise FormatError("'tool_calls': a name inside JSON with keys or strings of its own kind")
    return _envelope(function, each), each


def _envelope(function: Any, each: bool) -> Envelope:
    if not isinstance(function, Mapping):
        if _path(function, "function") != ["content"] or each:
            raise FormatError("'tool_calls': the function is neither the content nor made of its keys")
        return Envelope()
    name, arguments = _path(function.get("name"), "name"), _path(function.get("arguments"), "arguments")
    if not each:
        if name[:1] != ["content"] or arguments[:1] != ["content"]:
            raise FormatError("'tool_calls': name and arguments do not stand in the same JSON object")
        name, arguments = name[1:], arguments[1:]
    if len(name) != 1 or len(arguments) != 1:
        raise FormatError("'tool_calls': name and arguments are not keys of one JSON object")
    return Envelope(name[0], (arguments[0],))


def _json_or_braced(args: Template) -> Json | Braced:
    delims, bare = args.get("string_delims") or [], bool(args.get("unquoted_keys"))
    if not delims and not bare:
        return Json()
    if len(delims) != 1 or delims[0][0] != delims[0][1] or not bare:
        raise FormatError("'tool_calls': JSON of another kind than bare keys and strings between equal tokens")
    return Braced(delims[0][0])


def _pairs(args: Template) -> Pairs:
    """Parameters, as the pattern of one of them tells."""
    if args.get("merge_duplicates"):
        raise FormatError("'tool_calls': a repeated parameter makes a list")
    parser = args.get("value_parser") or {"name": "text"}
    lenient = parser.get("name") == "json" and parser.get("args", {}).get("allow_non_json")
    if parser.get("name", "text") != "text" and (not lenient or set(parser["args"]) != {"allow_non_json"}):
        raise FormatError("'tool_calls': values that are always of one type, or strings of their own kind")
    found = spellings(args.get("tag_pattern", ""))
    if len(found) != 1:
        raise FormatError("'tool_calls': a parameter is written in more than one way")
    match found[0]:
        case (str(key), Captured("key"), str(middle), Captured("value"), str(close)) if key.strip() and close.strip():
            ends: Literal["start", "both"] = "both" if close[0].isspace() else "start"
            return Pairs(key.strip(), middle.lstrip(), close.rstrip(), newlines=ends)
        case _:
            raise FormatError(
                f"'tool_calls': a parameter is no key and value between literals: {args['tag_pattern']!r}"
            )
