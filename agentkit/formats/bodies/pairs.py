"""The bodies of parameters: repeated names and values, between tags or between literals. Values are raw text.

Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterable
from functools import cache
from typing import Any

from agentkit.errors import ErrorCode, FormatError
from agentkit.formats import tags, valueends, values
from agentkit.formats.bodies.fixed import strays
from agentkit.formats.bodies.json import read_json
from agentkit.formats.call import CallReader, ended, until
from agentkit.formats.damage.crossing import headless
from agentkit.formats.escapes import CDATA_AT_START, attribute, cdata, raw_value, reads_as_null, text_of
from agentkit.formats.format import Json, NameTag, Pairs, Shape, Tag, TagParameters
from agentkit.formats.kind import OTHERS_AS_JSON, STRINGS_AS_MEANT, PartKind, Writing
from agentkit.formats.rawvalue import Accepts, Value
from agentkit.formats.reader import Damage, Reader, Search, Wait, literal, pattern
from agentkit.formats.repairs import MISSING_CLOSE
from agentkit.formats.worn import doubtful_end, torn_closing
from agentkit.schemas import walk


def read_tag_parameters(r: Reader, call: CallReader, part: TagParameters) -> Wait:
    """Repeated `<parameter name="key">value</parameter>`."""
    end = valueends.end_of_value(call.shape, part)
    while not call.complete:
        yield from r.space()
        found = yield from r.sees(tags.tag(part.name, closing=False))
        if found is None:
            yield from _maybe_json(r, call)
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
        value = value_of(r, call, key, end, is_text=True if kind == "true" else None)
        yield from value.read()
        text = noted(call, value)
        if kind == "true":
            call.arguments.set(r, key, text)
        elif kind == "false" and not (call.tool and call.tool.declares(key)):
            call.arguments.set(r, key, values.read(text, {}, {}))
        else:
            call.arguments.put(r, key, text, nulls=not value.verbatim)


def value_of(r: Reader, call: CallReader, key: str, end: valueends.ValueEnd, *, is_text: bool | None = None) -> Value:
    """One of the call's raw values, before it is read; `is_text` is whether it is written to be, None if it is not."""

    def missing(name: str) -> bool:
        properties = call.tool.parameters.get("properties", {}) if call.tool is not None else {}
        return name in properties and name not in call.arguments.by_name and name != key

    def kind() -> Accepts:
        if values.is_scalar(*call.arguments.schema(key)):
            return "scalar"
        data = call.arguments.is_data(key) if is_text is None else not is_text
        return "data" if data else "text"

    return Value(r, call.index, key, end, missing, kind)


def noted(call: CallReader, value: Value) -> str:
    """The text of a value that has been read; how it was written is noted with the call's arguments."""
    arguments, text = call.arguments, value.text()
    if value.unclosed:
        arguments.note(MISSING_CLOSE)
    if not value.verbatim:
        arguments.plain.add(value.key)
    bare = value.bare() if value.verbatim else text
    if bare and arguments.doubt is None and (doubt := _doubt_of(bare, value)):
        message = f"{value.end.what} is {doubt}, and put a value that contains it in <![CDATA[ … ]]>"
        arguments.doubt = Damage("ambiguous_call", message, value.r.offset)
    return text


def _doubt_of(text: str, value: Value) -> str:
    """What makes it doubtful that a value is all of one, and nothing else, in words; empty if nothing does."""
    if "<" not in text and value.end.what.startswith("<"):  # as in most: it contains no part of a closing
        return ""
    if value.end.doubled(text):
        return f"the first or the last thing in the value of {value.key!r}, and nothing there opens it: write it once"
    if torn_closing(text, value.end.what):
        return f"written in part inside the value of {value.key!r}: write all of it after each value"
    return ""


def _maybe_json(r: Reader, call: CallReader) -> Wait:
    """In place of parameters, models also write one JSON object with all of them."""
    if not call.arguments.by_name and r.buf.startswith("{", r.at):
        yield from read_json(r, call, Json())
        call.complete = False


def read_pairs(r: Reader, call: CallReader, part: Pairs) -> Wait:
    """Repeated key and value between literals."""
    end = valueends.end_of_value(call.shape, part)
    while True:
        yield from tags.layout(r)
        found = yield from r.sees(literal(part.key.strip()))
        if found is None:
            yield from _maybe_json(r, call)
            return
        r.at = found.end()
        if part.key[-1].isspace():  # all of it, also what has not arrived yet
            yield from r.space()
        key, kind = yield from _key_and_kind(r, part)
        value = value_of(r, call, key, end, is_text=kind == "string" if kind else None)
        yield from value.read()
        text = noted(call, value)
        if not value.verbatim and (_opens_again(text, part) or (not kind and _begins_with_type(text, part))):
            message = f"the value of {key!r} begins with what opens a value and does not close it"
            raise Damage("ambiguous_call", message, value.start)
        if kind == "string":
            call.arguments.set(r, key, text)
        elif kind:
            call.arguments.put_typed(r, key, text, kind)
        else:
            call.arguments.put(r, key, text, nulls=not value.verbatim)


def _opens_again(text: str, part: Pairs) -> bool:
    """Whether a value begins with a tag or token that opens or precedes a value, in any case, and is unbalanced."""
    if not text.lstrip().startswith("<"):
        return False
    close, middle = part.close.strip().lower(), part.middle.rstrip().lower()
    own = f"<{close.removeprefix('</')}" if close.startswith("</") and middle.endswith(close[2:]) else ""
    before = (own, *map(str.lower, part.kind[:1])) if own else (middle, *(edge.rstrip().lower() for edge in part.kind))
    tags = tuple({edge[edge.rfind("<") :] for edge in before if "<" in edge and edge.endswith(">")})
    if not tags or not text.lstrip()[: max(map(len, tags))].lower().startswith(tags):
        return False
    return not own or text.lower().count(own) > text.lower().count(close)


def _begins_with_type(text: str, part: Pairs) -> bool:
    """Whether a value begins with the type that belongs before it, and what precedes and follows the type."""
    return bool(part.kind) and part.kind[1] in text and _type(part.kind)(text) is not None


@cache
def _type(kind: tuple[str, ...]) -> Search:
    before = re.sub(r"^\W+", "", kind[0].strip())
    return re.compile(rf"\W{{0,8}}{pattern(before)}\w{{1,16}}{pattern(kind[1].strip())}").match


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
    hazards = tuple(p.name for p in w.format.call if isinstance(p, Tag | NameTag | TagParameters))
    out = []
    for key, value in w.call.arguments.items():
        start = f'<{part.name} {part.attribute}="{attribute(key)}"'
        if part.kind:
            text: str | None = value if isinstance(value, str) else values.dump(value)
            start += f' {part.kind}="{"true" if isinstance(value, str) else "false"}"'
        else:
            text = text_of(value, key, w.tool)
        marked = reads_as_null(value) or (text is not None and doubtful_end(text, f"</{part.name}>"))
        raw = text if text is None else cdata(text) if marked else raw_value(text, hazards)
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
    edges = [p for p in shape.call if isinstance(p, str) and p.strip()]
    marked = any(re.search(pattern(mark.strip()), text) for mark in (part.close, part.key, edges[0], edges[-1]))
    marked = marked or _opens_again(text, part) or headless(text, valueends.end_of_value(shape, part), part) != ""
    marked = marked or doubtful_end(text, part.close.strip())
    if CDATA_AT_START.match(text) or marked or (both and text.endswith("\r")):
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
