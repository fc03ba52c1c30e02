"""The bodies of parameters: repeated names and values, between tags or between literals. Values are raw text.

Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterable
from typing import Any

from agentkit.errors import ErrorCode, FormatError
from agentkit.formats import tags, values
from agentkit.formats.bodies.fixed import strays
from agentkit.formats.bodies.json import read_json
from agentkit.formats.call import CallReader, ended, until
from agentkit.formats.escapes import CDATA_AT_START, attribute, cdata, raw_value, reads_as_null, text_of
from agentkit.formats.format import Json, Pairs, Shape, TagParameters
from agentkit.formats.kind import OTHERS_AS_JSON, STRINGS_AS_MEANT, PartKind, Writing
from agentkit.formats.reader import Damage, Reader, Wait, literal
from agentkit.formats.value import read_value
from agentkit.formats.valueends import end_of_value
from agentkit.schemas import walk


def read_tag_parameters(r: Reader, call: CallReader, part: TagParameters) -> Wait:
    """Repeated `<parameter name="key">value</parameter>`."""
    end = end_of_value(call.shape, part)
    while not call.complete:
        yield from r.space()
        found = yield from r.sees(tags.tag(part.name, closing=False))
        if found is None:
            yield from _maybe_json(r, call)
            call.refuse_none(r)
            return
        r.at = found.end()
        attributes = tags.Attributes(r, part.name, (part.attribute,))
        attributes.committed = True
        opening = yield from attributes.read()
        key = opening.attributes.get(part.attribute)
        if not key:
            raise Damage("invalid_arguments", f"<{part.name}> has no {part.attribute!r}", r.offset)
        refuse_strays(part.name, (k for k in opening.attributes if k not in (part.attribute, part.kind)), (), r.offset)
        if opening.empty:
            call.arguments.put(r, key, None)
            continue
        kind = opening.attributes.get(part.kind) if part.kind else None
        text, verbatim = yield from read_value(r, call, key, end, is_text=True if kind == "true" else None)
        call.arguments.put_written(r, key, text, kind if kind in ("true", "false") else None, verbatim=verbatim)


def _maybe_json(r: Reader, call: CallReader) -> Wait:
    """In place of parameters, models also write one JSON object with all of them."""
    if not call.arguments.by_name and r.buf.startswith("{", r.at):
        yield from read_json(r, call, Json())
        call.complete = False


def read_pairs(r: Reader, call: CallReader, part: Pairs) -> Wait:
    """Repeated key and value between literals."""
    end = end_of_value(call.shape, part)
    while True:
        yield from tags.layout(r)
        found = yield from r.sees(literal(part.key.strip()))
        if found is None:
            yield from _maybe_json(r, call)
            call.refuse_none(r)
            return
        r.at = found.end()
        if part.key[-1].isspace():  # all of it, also what has not arrived yet
            yield from r.space()
        key, kind = yield from _key_and_kind(r, part)
        text, verbatim = yield from read_value(r, call, key, end, is_text=kind == "string" if kind else None)
        call.arguments.put_written(r, key, text, kind, verbatim=verbatim)


def _key_and_kind(r: Reader, part: Pairs) -> Generator[None, None, tuple[str, str]]:
    """A key, and its value's type if one is written, up to where the value starts."""
    start = r.offset
    middle, kind = part.middle.strip(), ""
    key = yield from until(r, tuple(text.split()[0] for text in (*part.kind[:1], middle)), _IN_NO_KEY)
    if key is not None and part.kind and (found := (yield from r.sees(literal(part.kind[0].strip())))):
        r.at = found.end()
        middle = part.kind[1].strip()
        kind = (yield from until(r, (middle.split()[0],), _IN_NO_KIND)) or ""
        key = key if kind else None
    if key is None:
        over = ended(r, start) or r.cut >= start
        r.back_to(start)  # an endless key may contain whole calls
        raise _no_value(middle, start, over=over)
    for word in middle.split():
        yield from tags.layout(r)
        if (found := (yield from r.sees(literal(word)))) is None:
            raise _no_value(middle, start, over=r.ended and r.offset in (r.cut, r.base + len(r.buf)))
        r.at = found.end()
    return (tags.decoded(key) if part.key.endswith('="') else key).strip(), kind.strip()


_IN_NO_KEY = re.compile("[<\n]").search  # the end of the key was forgotten
_IN_NO_KIND = re.compile("[<\n\"']").search


def _no_value(middle: str, start: int, *, over: bool) -> Damage:
    """The error for a parameter's name without its value; `over` if the text has ended."""
    code: ErrorCode = "truncated_call" if over else "invalid_arguments"
    return Damage(code, f"expected {middle!r} after a parameter's name", start, ended=over)


def refuse_strays(name: str, attributes: Iterable[str], own: Collection[str], position: int) -> None:
    """Refuse an opening tag with attributes that nothing reads: dropping them would change the call.

    Args:
        name: the tag's name.
        attributes: its attributes, without those that are read.
        own: names that always matter here.
        position: where the tag ends.
    """
    if lost := strays(attributes, own):
        shown = ", ".join(map(repr, lost))[:200]
        message = f"<{name}> has {shown}, which nothing reads; expected each argument between its own tags"
        raise Damage("invalid_arguments", message, position)


# ---------------------------------------------------------------- written


def write_tag_parameters(w: Writing, part: TagParameters) -> str:
    """One element per argument, each on a separate line."""
    end = end_of_value(w.format.shapes[0], part)
    out = []
    for key, value in w.call.arguments.items():
        start = f'<{part.name} {part.attribute}="{attribute(key)}"'
        if part.kind:
            text: str | None = value if isinstance(value, str) else values.dump(value)
            start += f' {part.kind}="{"true" if isinstance(value, str) else "false"}"'
        else:
            text = text_of(value, key, w.tool)
        marked = reads_as_null(value) or (text is not None and end.marks(text))
        raw = text if text is None else cdata(text) if marked else raw_value(text)
        out.append(f"{start}/>\n" if raw is None else f"{start}>{raw}</{part.name}>\n")
    return "".join(out)


def write_pairs(w: Writing, part: Pairs) -> str:
    """One pair per argument, each on a separate line."""
    out = []
    for key, value in w.call.arguments.items():
        text = _typed_text(value) if part.kind else text_of(value, key, w.tool, nulls=value is None)
        if text is None:
            raise FormatError(f"{w.tool.name}: parameter {key!r}: this format cannot write null for it")
        verbatim = reads_as_null(value)
        kind = _kind(value, part)
        body = cdata(text) if verbatim and not kind else _paired(text, part, w.format.shapes[0])
        name = attribute(key) if part.key.endswith('="') else key
        out.append(f"{part.key}{name}{kind or part.middle}{body}{part.close}\n")
    return "".join(out)


def _typed_text(value: Any) -> str:
    return value if isinstance(value, str) else values.dump(value)


def _kind(value: Any, part: Pairs) -> str:
    """The type of a value, if the format writes it."""
    if not part.kind:
        return ""
    return f"{part.kind[0]}{walk.type_of(value)}{part.kind[1]}"


def _paired(text: str, part: Pairs, shape: Shape) -> str:
    """A value between literals: in CDATA if it contains text that opens or closes something in a call."""
    both = part.newlines == "both"
    if CDATA_AT_START.match(text) or end_of_value(shape, part).marks(text) or (both and text.endswith("\r")):
        return cdata(text)
    dropped = part.newlines != "none" and not part.middle.endswith("\n")
    start = "\n" if dropped and text.startswith(("\n", "\r\n")) else ""
    end = "\n" if both and not part.close.startswith("\n") and text.endswith("\n") else ""
    return start + text + end


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
