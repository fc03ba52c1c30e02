"""Checks of a declaration: the faults that would make its calls unreadable.

Knows the parts by the names of their kinds; `format.py`, which declares them, asks here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

REASONING: Final = ("reasoning", "thought", "scratchpad")
"""Tags around reasoning that many prompts request and no family's template contains."""

THOUGHTS: Final = ("think", "thinking", *REASONING)
"""Tags around reasoning, in any case; where a format declares one, its exact letters mean `Thinking` instead."""

_THOUGHT: Final = re.compile(rf"\s*<(?:{'|'.join(THOUGHTS)})>", re.IGNORECASE).match
_WITH_NAME: Final = ("Envelope", "KeyEnvelope", "PythonCall", "ToolElement")  # bodies that contain the tool's name
_NAMES: Final = ("Name", "CountedName", "NameTag")
_READ_UP_TO: Final = ("Name", "CountedName", "CallId", "Recipient")


def fault_in_call(call: Sequence[Any], section: tuple[str, str] | None) -> str:
    """Return the fault in the parts of a call or in a section's opening and end; empty if there is none."""
    parts = [part for part in call if not isinstance(part, str) or part.strip()]
    bodies = [n for n, part in enumerate(parts) if hasattr(part, "label")]
    if len(bodies) != 1:
        found = " and ".join(_kind(parts[n]) for n in bodies)
        return f"expected one part for a call's arguments, found {found or 'none'}"
    (at,) = bodies
    before, after = parts[:at], parts[at + 1 :]
    return (
        _names(parts, at)
        or _ends(parts)
        or _body(before, parts[at], after)
        or _thought(section[0] if section is not None else parts[0])
        or _section(section, after)
        or _section_end(section, parts[at])
    )


def blank_literals(**fields: Sequence[Any]) -> str:
    """Return the fault in literals that are read outside of calls, by field: white space alone is everywhere."""
    for field, literals in fields.items():
        for literal in literals:
            if not all(text.strip() for text in ((literal,) if isinstance(literal, str) else literal)):
                return f"{field} contains {literal!r}: expected literals that are not only white space"
    return ""


def unsafe_close(close: str) -> str:
    """Return the fault in the end of a result: a single character could not be cut where a result contains it."""
    return f"ResultShape(close={close!r}) has only one character, which results contain" * (len(close.strip()) == 1)


def _kind(part: object) -> str:
    return type(part).__name__


def _names(parts: Sequence[Any], at: int) -> str:
    """Return the fault in the place of the tool's name, which must be known before the body is read."""
    body = _kind(parts[at])
    names = [n for n, part in enumerate(parts) if _kind(part) in _NAMES]
    if body in _WITH_NAME:
        return f"{body} contains the tool's name, which {_kind(parts[names[0]])} would repeat" if names else ""
    if len(names) != 1 or names[0] > at:
        return f"expected one part for the tool's name before {body}, such as Name()"
    name = parts[names[0]]
    if body == "TagParameters" and _kind(name) == "NameTag" and name.name == parts[at].name:
        return f"<{name.name}> has both the tool's name and the parameters' names"
    return ""


def _ends(parts: Sequence[Any]) -> str:
    """Return the fault of a part that nothing ends."""
    for part, after in pairwise((*parts, None)):
        marked = isinstance(after, str) or _kind(after) == "Skip" or bool(getattr(after, "start", ""))
        if _kind(part) in _READ_UP_TO and not marked:
            return f"nothing marks the end of {_kind(part)}: expected a literal after it that is not only white space"
        if _kind(part) in ("Skip", "Pairs", "NestedTags") and not isinstance(after, str):
            return f"expected a literal after {_kind(part)} that is not only white space: it is read up to there"
    return ""


def _body(before: Sequence[Any], body: Any, after: Sequence[Any]) -> str:
    """Return the fault in the literals of the body."""
    match _kind(body):
        case "Pairs":
            for field in ("key", "middle", "close", "kind"):
                texts = getattr(body, field)
                if not all(text.strip() for text in ((texts,) if isinstance(texts, str) else texts)):
                    return f"Pairs({field}={texts!r}) is only white space, which may be anywhere in a value"
            for text in (*before, after[0]):
                if _alike(body.close, text) or _alike(body.key, text):
                    return f"the literal {text!r} begins like the key or the close of Pairs, or that like it"
            if after[0].lstrip().startswith("{"):
                return (
                    f"the literal {after[0]!r} after Pairs begins like JSON, which is read in place of keys and values"
                )
        case "TagParameters" if after and _like_a_tag(after[0], body.name):
            return f"the literal {after[0]!r} after TagParameters begins like a tag <{body.name} …> of one more"
        case "Braced" if not body.quote.strip():
            return f"Braced(quote={body.quote!r}) is only white space"
        case "NestedTags" if not body.token.strip():
            return f"NestedTags(token={body.token!r}) is only white space"
    return ""


def _thought(opening: object) -> str:
    """Return the fault of an opening that begins with a tag of thinking."""
    if isinstance(opening, str) and (found := _THOUGHT(opening)):
        return f"{opening!r} begins with {found[0].strip()}, after which everything is thinking"
    return ""


def _section(section: tuple[str, str] | None, after: Sequence[Any]) -> str:
    """Return the fault in the opening and the end of a section."""
    if section is None:
        return ""
    first, last = section
    if not first.strip():
        return f"Section(open={first!r}) is only white space, which is everywhere in text"
    if last.strip().startswith(first.strip()):
        return f"Section(close={last!r}) begins with what opens the section"
    if len(after) == 1 and _alike(last, after[0]):
        return f"Section(close={last!r}) cannot be distinguished from what ends a call: one begins the other"
    if any(_alike(first, part) for part in after):
        return f"Section(open={first!r}) cannot be distinguished from what ends a call: one begins the other"
    return ""


def _section_end(section: tuple[str, str] | None, body: Any) -> str:
    """Return the fault of a section's end that begins like an argument."""
    if section is not None and _kind(body) == "Pairs" and _alike(section[1], body.key):
        return f"Section(close={section[1]!r}) begins like the key of Pairs, or that like it"
    return ""


def _like_a_tag(literal: object, name: str) -> bool:
    """Return True if a literal may be the beginning of a parameter's tag, or `<` and text that continues no tag."""
    text = literal.strip() if isinstance(literal, str) else ""
    tag = f"<{name}"
    if not text.startswith("<"):
        return False
    return tag.startswith(text) or bool(re.match(rf"{re.escape(tag)}(?![\w:.-])|<(?![/|｜\w])", text))


def _alike(one: str, other: object) -> bool:
    """Return True if one of two literals begins with the other; an empty one is like none."""
    a, b = one.strip(), other.strip() if isinstance(other, str) else ""
    return bool(a and b) and (a.startswith(b) or b.startswith(a))
