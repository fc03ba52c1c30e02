"""Exports a Format as a Hugging Face `response_template`, so that a checkpoint can carry it in its tokenizer config.

A template is less expressive than a Format: a region ends at the first closing literal, even inside a JSON string; an
unreadable body fails the whole message; values cannot be escaped. What it cannot express at all is refused with the
reason.

Source: transformers 5.23, `utils/chat_parsing` (version 1 of the template).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from agentkit.errors import FormatError
from agentkit.formats.edges import weak
from agentkit.formats.engine import get
from agentkit.formats.format import (
    Braced,
    CallBody,
    CallId,
    CountedName,
    Envelope,
    Format,
    FormatPart,
    Json,
    KeyEnvelope,
    Name,
    NameTag,
    NestedTags,
    Pairs,
    PythonCall,
    Section,
    Skip,
    Tag,
    TagParameters,
    TextArgument,
    ToolElement,
)

_NAME: Final = r"(?P<name>[^\s<>{}\[\]()\"'`,;:=]+)"
_NAMED: Final = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
_REFUSED: Final[Mapping[type[FormatPart], str]] = {
    PythonCall: "its arguments are written as Python, which no content parser of a template can read",
    KeyEnvelope: "the tool's name is a JSON key, which no placeholder of a template can capture",
    NestedTags: "its values are nested elements, and a template's xml-inline is flat",
    TextArgument: "its text is the tool's first required parameter, and a template does not know the tools",
    ToolElement: "the tag is the tool's own, and a template does not know the tools",
}
"""Why a template cannot express a body."""


def to_response_template(format: str | Format, start_anchor: str | Sequence[str]) -> dict[str, Any]:
    r"""A Format as a `response_template`, consisting only of JSON values.

    Args:
        format: the format; only the shape that it writes is exported, not those that it only reads.
        start_anchor: how an assistant turn starts in the checkpoint's chat template (`"<|im_start|>assistant\n"`), or
            several alternatives: formats do not know it, and without it a parser would read earlier turns as the reply.

    Values that are written as text get their types from the `tools` passed to `parse_response` (transformers >= 5.15).

    Raises:
        FormatError: a template cannot express how this format writes calls; the message says why.
    """
    declared = get(format)
    fields: dict[str, Any] = {}
    if declared.thinking:
        opens, closes = (list(dict.fromkeys(texts)) for texts in zip(*declared.thinking, strict=True))
        fields["reasoning_content"] = {"open": opens, "close": closes, "content": "text"}
    fields["tool_calls"] = _Calls(declared).field()
    if declared.answer:
        opens, closes = (list(dict.fromkeys(texts)) for texts in zip(*declared.answer, strict=True))
        fields["content"] = {"open": opens, "close": closes, "content": "text"}
    else:
        fields["content"] = {"content": "text"} | _closing(
            rf"\s*(?:{_any(declared.markup)})" if declared.markup else ""
        )
    anchor = start_anchor if isinstance(start_anchor, str) else list(start_anchor)
    return {"version": 1, "defaults": {"role": "assistant"}, "start_anchor": anchor, "fields": fields}


def _any(texts: Iterable[str]) -> str:
    """A regular expression for any of these literals, the longest first."""
    return "|".join(sorted(dict.fromkeys(_literal(text.strip()) for text in texts), key=len, reverse=True))


def _literal(text: str) -> str:
    """A literal as a regular expression that allows any white space where the literal has some."""
    return "".join(r"\s*" if run.isspace() else re.escape(run) for run in re.findall(r"\s+|\S+", text))


def _closing(pattern: str) -> dict[str, str]:
    return {"close_pattern": pattern} if pattern else {}


def _edge(edge: str | Tag) -> str:
    return f"<{'/' * edge.closing}{re.escape(edge.name)}>" if isinstance(edge, Tag) else _literal(edge.strip())


def _spelt(part: FormatPart) -> str:
    """A part that is not a body, as a regular expression."""
    match part:
        case str() | Tag():
            return _literal(part) if isinstance(part, str) else _edge(part)
        case Name(prefix):
            return rf"(?:{_literal(prefix)})?{_NAME}" if prefix else _NAME
        case CountedName(prefix):
            return rf"(?:{_literal(prefix)})?{_NAME}(?::\d+)?"
        case NameTag(name, attribute):
            return rf'<{re.escape(name)} {attribute}="(?P<name>[^"]+)">'
        case Skip() | CallId():  # a template has no field for a call's id
            return r".{0,256}?"
        case _:
            raise TypeError(f"{part!r} is a body")


class _Calls:
    """The field of the calls of one format: what opens and closes a region, and how its content is read."""

    def __init__(self, format: Format) -> None:
        at = next(i for i, part in enumerate(format.call) if isinstance(part, CallBody))
        self.format, self.section = format, format.section
        self.before, self.body, self.after = format.call[:at], format.call[at], format.call[at + 1 :]
        self.array = self._array()

    def cannot(self, why: str) -> FormatError:
        return FormatError(f"format {self.format.name!r} cannot be a response_template: {why}")

    def field(self) -> dict[str, Any]:
        """The field `tool_calls`."""
        if why := _REFUSED.get(type(self.body)):
            raise self.cannot(why)
        repeats = {} if self.array else {"repeats": True}
        opening = {"open_pattern": self._opening()}
        return opening | _closing(self._closing()) | repeats | self._content()

    def _array(self) -> Section | None:
        """Return the section without its brackets if it is one JSON array of calls."""
        section = self.section
        if section is None or self.before or self.after or not isinstance(self.body, Envelope):
            return None
        if isinstance(section.open, Tag) or isinstance(section.close, Tag) or self.format.separator.strip() != ",":
            return None
        opened, closed = section.open.rstrip(), section.close.lstrip()
        if not opened.endswith("[") or not closed.startswith("]"):
            return None
        if opened.startswith("{"):
            raise self.cannot("its calls are a list inside a JSON object, which no transform can access one by one")
        return Section(opened[:-1], closed[1:])

    def _opening(self) -> str:
        """Return the pattern that opens a region, after white space and the section's opening (else content)."""
        if self.array is not None:
            return self._guarded(_literal(str(self.array.open).rstrip()), str(self.array.open), "[")
        first = self.before[0] if self.before else self.section.open if self.section else ""
        own = "".join(map(_spelt, self.before))
        lead = rf"(?:{_edge(self.section.open)}\s*)?" if self.section is not None and self.before else ""
        if self.section is not None and not self.before:
            own = _edge(self.section.open)
        return self._guarded(lead + own, first, "")

    def _guarded(self, opening: str, first: FormatPart, bracket: str) -> str:
        """The opening; if its first literal also occurs in prose, only before what looks like a call."""
        if not isinstance(first, str) or not weak(first):
            return rf"\s*{opening}\s*".replace(r"\s*\s*", r"\s*")
        if not isinstance(self.body, Envelope):
            raise self.cannot("nothing marks the start of a call, and a template cannot check whether a tool exists")
        return rf"\s*{opening}{self._envelope_here(bracket)}"

    def _envelope_here(self, bracket: str = "") -> str:
        assert isinstance(self.body, Envelope)
        return rf'(?={re.escape(bracket)}\s*\{{\s*"{self.body.name}"\s*:)'

    def _closing(self) -> str:
        """Return the pattern that ends a region: closing literals, the next call or control token, or the end."""
        if self.array is not None:
            own, rest = _literal(str(self.array.close).strip()), ""
        else:
            own = r"\s*".join(_spelt(part).strip() for part in self.after)
            rest = rf"(?:\s*{_edge(self.section.close)})?" if self.section and _is_visible(self.section.close) else ""
        if own:
            return rf"\s*{own}{rest}\s*".replace(r"\s*\s*", r"\s*")
        if not isinstance(self.body, Json | Envelope | Braced):
            raise self.cannot("nothing marks the end of a call")
        return self._before_what_follows()

    def _before_what_follows(self) -> str:
        separator = _literal(self.format.separator.strip())
        ends = []
        if self.array is None:
            start = _spelt(self.before[0]).strip() if self.before else self._envelope_here()
            ends.append(rf"{separator}\s*(?={start})")
        if self.format.markup:
            ends.append(rf"(?={_any(self.format.markup)})")
        return rf"\s*(?:{'|'.join(ends)})".replace(r"\s*(?:\s*", r"\s*(?:") if ends else ""

    def _content(self) -> dict[str, Any]:
        """How the body is read, and how it becomes a call."""
        match self.body:
            case Json():
                return {"content": "json", "transform": _NAMED}
            case Braced(quote):
                args = {"unquoted_keys": True, "string_delims": [[quote, quote]]}
                return {"content": "json", "content_args": args, "transform": _NAMED}
            case Envelope(name, (arguments, *_)):
                path = "" if self.array else "content."
                function = {"name": f"{{{path}{name}}}", "arguments": f"{{{path}{arguments}}}"}
                each = {"transform_each": True} if self.array else {}
                return {"content": "json", **each, "transform": {"type": "function", "function": function}}
            case TagParameters() | Pairs() as body:
                args = {"tag_pattern": _parameter(body)}
                return {"content": "xml-inline", "content_args": args, "transform": _NAMED}
            case other:
                raise self.cannot(f"no content parser of a template reads a {type(other).__name__}")


def _is_visible(edge: str | Tag) -> bool:
    return isinstance(edge, Tag) or bool(edge.strip())


def _parameter(body: TagParameters | Pairs) -> str:
    """One parameter as a regular expression with its key and its value.

    As in a Format, the newline after the opening is not part of the value, nor is the one at its end if the format
    writes one there.
    """
    if isinstance(body, TagParameters):
        tag = re.escape(body.name)
        more = "[^>]*" if body.kind else ""
        newline = "" if body.newlines == "none" else r"\n?"
        return rf'<{tag} {body.attribute}="(?P<key>[^"]*)"{more}>{newline}(?P<value>.*?)</{tag}>'
    middle = _literal(body.middle.strip())
    if body.kind:
        before, after = (_literal(text.strip()) for text in body.kind)
        middle = rf"(?:{before}.{{0,64}}?{after}|{middle})"
    start, end = (r"\n?" if body.newlines in ends else "" for ends in (("start", "both"), ("both",)))
    key, close = _literal(body.key.strip()), _literal(body.close.strip())
    return rf"{key}\s*(?P<key>.+?)\s*{middle}{start}(?P<value>.*?){end}{close}"
