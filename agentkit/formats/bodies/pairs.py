"""The bodies of parameters: repeated names and values, between tags or between literals. Values are raw text.

Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from typing import Any, Final

from agentkit.errors import FormatError
from agentkit.formats import tags
from agentkit.formats.bodies.fixed_parts import absent_error
from agentkit.formats.bodies.json import read_json
from agentkit.formats.call import CallReader, until
from agentkit.formats.escapes import CDATA_AT_START, attribute, cdata, reads_as_null, text_of
from agentkit.formats.format import Json, Pairs, TagParameters
from agentkit.formats.kind import OTHERS_AS_JSON, STRINGS_AS_MEANT, PartKind, Writing
from agentkit.formats.reader import Damage, Reader, Wait, literal
from agentkit.formats.value import read_value
from agentkit.formats.valueends import ValueEnd, end_of_value
from agentkit.schemas import walk
from agentkit.schemas.typed import values


def read_tag_parameters(r: Reader, call: CallReader, part: TagParameters) -> Wait:
    """Read repeated `<parameter name="key">value</parameter>`."""
    end, opens = end_of_value(call.shape, part), tags.tag(part.name, closing=False)
    while not call.complete:
        yield from r.space()
        if (found := (yield from r.sees(opens))) is None:
            return (yield from _read_end(r, call, end))
        r.at = found.end()
        attributes = tags.Attributes(r, part.name, (part.attribute,))
        attributes.committed = True
        opening = yield from attributes.read()
        key = opening.attributes.get(part.attribute)
        if not key:
            raise Damage("invalid_arguments", f"<{part.name}> has no {part.attribute!r}", r.offset)
        refuse_attributes(
            part.name, (k for k in opening.attributes if k not in (part.attribute, part.kind, *_IDLE)), r.offset
        )
        if opening.empty:
            call.arguments.put(r, key, None)
            continue
        kind = opening.attributes.get(part.kind) if part.kind else None
        text, verbatim = yield from read_value(r, call, key, end, is_text=True if kind == "true" else None)
        call.arguments.put_written(r, key, text, kind if kind in ("true", "false") else None, verbatim=verbatim)


def read_pairs(r: Reader, call: CallReader, part: Pairs) -> Wait:
    """Read repeated keys and values between literals."""
    end, opens = end_of_value(call.shape, part), literal(part.key.strip())
    while True:
        yield from tags.skip_layout(r)
        if (found := (yield from r.sees(opens))) is None:
            return (yield from _read_end(r, call, end))
        r.at = found.end()
        if part.key[-1].isspace():  # all of it, including white space that has not arrived yet
            yield from r.space()
        key, kind = yield from _key_and_kind(r, call, part)
        text, verbatim = yield from read_value(r, call, key, end, is_text=kind == "string" if kind else None)
        call.arguments.put_written(r, key, text, kind, verbatim=verbatim)


def _read_end(r: Reader, call: CallReader, end: ValueEnd) -> Wait:
    """Read the text after the last parameter: the call's end, or JSON, which another family writes after this opening.

    At the text's end the beginning of the call's end is enough, as a stop string cuts it.
    """
    if not call.arguments.by_name and r.buf.startswith("{", r.at):
        yield from read_json(r, call, Json())
        call.complete = False
    call.refuse_none(r)
    yield from r.sees(literal(end.call_end))  # waits until it is known how much of the end has arrived
    if r.ended and end.cut_end(r.buf, r.at):
        r.at, call.complete = len(r.buf), True


def _key_and_kind(r: Reader, call: CallReader, part: Pairs) -> Generator[None, None, tuple[str, str]]:
    """Read a key, and its value's type if one is written, up to the value's start."""
    start, middle, kind = r.offset, part.middle.strip(), ""
    key = yield from until(r, tuple(text.split()[0] for text in (*part.kind[:1], middle)), _IN_NO_KEY)
    if key is not None and part.kind and (found := (yield from r.sees(literal(part.kind[0].strip())))):
        r.at = found.end()
        middle = part.kind[1].strip()
        kind = (yield from until(r, (middle.split()[0],), _IN_NO_KIND)) or ""
        key = key if kind else None
    for word in middle.split() if key is not None else ():
        yield from tags.skip_layout(r)
        if (found := (yield from r.sees(literal(word)))) is None:
            key = None
            break
        r.at = found.end()
    if key is None:
        raise absent_error(r, call, start, f"{middle!r} after a parameter's name", "invalid_arguments")
    return (tags.decode_entities(key) if part.key.endswith('="') else key).strip(), kind.strip()


_IN_NO_KEY = re.compile("[<\n]").search  # the end of the key was forgotten
_IN_NO_KIND = re.compile("[<\n\"']").search


_IDLE: Final = ("string", "type")
"""Attributes of a parameter's tag that repeat its type from the tool's schema. Source: DeepSeek's `string="true"`."""


def refuse_attributes(name: str, attributes: Iterable[str], position: int) -> None:
    """Refuse an opening tag, by its name, with attributes that nothing reads: dropping them would change the call."""
    if unread := ", ".join(map(repr, attributes))[:200]:
        message = f"<{name}> has {unread}, which nothing reads; expected each argument between its own tags"
        raise Damage("invalid_arguments", message, position)


# ---------------------------------------------------------------- written


def write_tag_parameters(w: Writing, part: TagParameters) -> str:
    """Write one element per argument, each on a separate line."""
    out = ""
    for key, value in w.call.arguments.items():
        text = _typed_text(value) if part.kind else text_of(value, key, w.tool)
        kind = f' {part.kind}="{"true" if isinstance(value, str) else "false"}"' if part.kind else ""
        start = f'<{part.name} {part.attribute}="{attribute(key)}"{kind}'
        out += f"{start}/>\n" if text is None else f"{start}>{_raw(w, part, value, text)}</{part.name}>\n"
    return out


def write_pairs(w: Writing, part: Pairs) -> str:
    """Write one pair per argument, each on a separate line."""
    out = ""
    for key, value in w.call.arguments.items():
        text = _typed_text(value) if part.kind else text_of(value, key, w.tool, nulls=value is None)
        if text is None:
            raise FormatError(f"{w.tool.name}: parameter {key!r}: this format cannot write null for it")
        middle = walk.type_of(value).join(part.kind) if part.kind else part.middle
        name = attribute(key) if part.key.endswith('="') else key
        out += f"{part.key}{name}{middle}{_raw(w, part, value, text, middle, part.close)}{part.close}\n"
    return out


def _typed_text(value: Any) -> str:
    return value if isinstance(value, str) else values.dump(value)


def _raw(w: Writing, part: TagParameters | Pairs, value: Any, text: str, before: str = "", after: str = "") -> str:
    """Write a value between literals: in CDATA if it contains markup of its kind of call, or would be read as null."""
    both = part.newlines == "both"
    null = not part.kind and reads_as_null(value)
    marked = CDATA_AT_START.match(text) or end_of_value(w.format.shapes[0], part).has_markup(text)
    if null or marked or (both and text.endswith("\r")):
        return cdata(text)
    dropped = part.newlines != "none" and not before.endswith("\n")
    start = "\n" if dropped and text.startswith(("\n", "\r\n")) else ""
    return start + text + ("\n" if both and not after.startswith("\n") and text.endswith("\n") else "")


KINDS = (
    PartKind(
        TagParameters,
        read_tag_parameters,
        write_tag_parameters,
        taught=(
            STRINGS_AS_MEANT,
            OTHERS_AS_JSON,
            "A string that itself contains one of the tags used here must stand in <![CDATA[ and ]]>.",
        ),
    ),
    PartKind(
        Pairs,
        read_pairs,
        write_pairs,
        taught=(
            STRINGS_AS_MEANT,
            OTHERS_AS_JSON,
            "A string that itself contains what ends a value here must stand in <![CDATA[ and ]]>.",
        ),
    ),
)
