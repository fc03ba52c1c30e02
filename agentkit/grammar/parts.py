"""The parts of a call as rules: names, JSON bodies, raw values, elements, Python calls.

Knows declarations, schemas and rules; knows no target. One function per part, in the table at the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from agentkit.errors import FormatError
from agentkit.formats import values
from agentkit.formats.bodies.elements import group_of
from agentkit.formats.format import (
    Braced,
    CountedName,
    Envelope,
    FormatPart,
    Json,
    KeyEnvelope,
    Name,
    NameTag,
    NestedTags,
    Pairs,
    PythonCall,
    Skip,
    Tag,
    TagParameters,
    TextArgument,
    ToolElement,
)
from agentkit.formats.write import attribute, edge
from agentkit.grammar import rules
from agentkit.grammar.arguments_as_rules import CallRules, attribute_value, told, value
from agentkit.grammar.from_schema import PYTHON
from agentkit.grammar.nested_parts import braced, nested
from agentkit.grammar.rules import Blocked, Chars, Lit, Repeat, Rule, alt, opt, seq
from agentkit.toolspec import Node

_NAME: Final = re.compile(r"[^\s<>{}\[\]()\"'`,;=]{1,256}\Z")
_PYTHON_NAME: Final = re.compile(r"[^\W\d][\w.-]{0,255}\Z")
_IDENTIFIER: Final = re.compile(r"[^\W\d]\w*\Z")
_KEY: Final = re.compile(r"[^\s<>\"'=|/&](?:[^<>\"'=|/&\n]{0,200}[^\s<>\"'=|/&])?\Z")
_COUNT: Final = Repeat(Chars("0123456789"), 1, 3)


def call_rule(w: CallRules) -> Rule:
    """One call.

    Raises:
        FormatError: a part of the format, or a name, cannot be written as rules.
        Refused: no arguments satisfy the schema.
    """
    _check_names(w)
    out = []
    for part in w.format.call:
        make = PARTS.get(type(part))
        if make is None:
            raise FormatError(
                f"format {w.format.name!r} has no grammar: {type(part).__name__} values are of no known syntax"
            )
        out.append(make(w, part))
    missing = [n for n in w.tool.parameters.get("required", ()) if n not in w.parameters]
    if missing and not any(isinstance(p, Json | Envelope | KeyEnvelope) for p in w.format.call):
        w.schemas.gap("", [f"required: {n}" for n in missing])
    return seq(*out)


def _check_names(w: CallRules) -> None:
    """Names must be readable where they stand."""
    parts = w.format.call
    python = any(isinstance(p, PythonCall) for p in parts)
    wanted = _PYTHON_NAME if python else _NAME
    if not any(isinstance(p, Envelope | KeyEnvelope | NameTag) for p in parts) and not wanted.match(w.tool.name):
        raise FormatError(f"format {w.format.name!r} cannot write the tool name {w.tool.name!r}")
    if any(isinstance(p, Pairs | TagParameters | ToolElement | TextArgument | PythonCall) for p in parts):
        key = _IDENTIFIER if python else _KEY
        if bad := [n for n in w.parameters if not key.match(n)]:
            raise FormatError(f"format {w.format.name!r} cannot write the parameter names {bad} of {w.tool.name!r}")


# ---------------------------------------------------------------- names and JSON


def _literal(w: CallRules, part: str) -> Rule:
    return Lit(part)


def _tag(w: CallRules, part: Tag) -> Rule:
    if part.closing and w.tool.first_required and any(isinstance(p, TextArgument) for p in w.format.call):
        return rules.EMPTY  # the text argument ends with it
    return Lit(edge(part))


def _name(w: CallRules, part: Name) -> Rule:
    return Lit(part.prefix + (attribute(w.tool.name) if part.attribute else w.tool.name))


def _counted_name(w: CallRules, part: CountedName) -> Rule:
    return seq(Lit(f"{part.prefix}{w.tool.name}:"), _COUNT)


def _skip(w: CallRules, part: Skip) -> Rule:
    before, slot, after = part.written.partition("{number}")
    return seq(Lit(before), _COUNT, Lit(after)) if slot else Lit(before)


def _json(w: CallRules, part: Json) -> Rule:
    return w.arguments()


def _envelope(w: CallRules, part: Envelope) -> Rule:
    head = f"{{{values.dump(part.name)}: {values.dump(w.tool.name)}, {values.dump(part.arguments[0])}: "
    return seq(Lit(head), w.arguments(), Lit("}"))


def _key_envelope(w: CallRules, part: KeyEnvelope) -> Rule:
    return seq(Lit(f"{{{values.dump(w.tool.name)}: "), w.arguments(), Lit("}"))


def _python_call(w: CallRules, part: PythonCall) -> Rule:
    members = w.schemas.members(w.tool.parameters, PYTHON, "", Lit(")"), lambda n: Lit(f"{n}="))
    return seq(Lit(f"{w.tool.name}("), members)


# ---------------------------------------------------------------- raw values


def _text_argument(w: CallRules, part: TextArgument) -> Rule:
    closing = next(p.name for p in w.format.call if isinstance(p, Tag))
    names = w.tool.first_required
    if not names:
        return rules.EMPTY
    return _content(w, names[0], "", closing)


def _content(w: CallRules, name: str, start: str, tag: str) -> Rule:
    """An element's own text up to and with its closing tag."""
    blocked = (Blocked(f"</{tag}", tag=True), Blocked(f"<{tag}", tag=True))
    return value(w, name, start, f"</{tag}>", blocked)


def _tag_parameters(w: CallRules, part: TagParameters) -> Rule:
    names = (p.name for p in w.format.call if isinstance(p, NameTag | TagParameters))
    blocked = tuple(Blocked(f"{start}{name}", tag=True) for name in names for start in ("</", "<"))
    close = f"</{part.name}>\n"

    def one(name: str) -> Rule:
        start = f'<{part.name} {part.attribute}="{attribute(name)}"'
        if part.kind:
            return told(
                w, name, f'{start} {part.kind}="true">', lambda _: f'{start} {part.kind}="false">', close, blocked
            )
        return value(w, name, f"{start}>", close, blocked)

    return seq(*(w.optional(n, lambda n=n: one(n)) for n in w.parameters))  # type: ignore[misc]  # bound at once


def _pairs(w: CallRules, part: Pairs) -> Rule:
    literals = [p.strip() for p in w.format.call if isinstance(p, str) and p.strip()]
    marks = dict.fromkeys((part.key.strip(), literals[0], literals[-1]))
    # the parser takes a close in other letters for one that was meant, wherever a parameter may be missing behind it
    blocked = (Blocked(part.close.strip(), cases=True), *(Blocked(mark) for mark in marks))
    close = f"{part.close}\n"

    def one(name: str) -> Rule:
        start = f"{part.key}{name}"
        if part.kind:
            before, after = part.kind
            return told(
                w, name, f"{start}{before}string{after}", lambda k: f"{start}{before}{k}{after}", close, blocked
            )
        return value(w, name, f"{start}{part.middle}", close, blocked)

    return seq(*(w.optional(n, lambda n=n: one(n)) for n in w.parameters))  # type: ignore[misc]  # bound at once


# ---------------------------------------------------------------- elements


def _name_tag(w: CallRules, part: NameTag) -> Rule:
    start = Lit(f'<{part.name} {part.attribute}="{attribute(w.tool.name)}"')
    if not any(isinstance(p, TextArgument) for p in w.format.call):
        return seq(start, Lit(">"))
    others = [n for n in w.parameters if n not in w.tool.first_required]
    return seq(start, *(w.optional(n, lambda n=n: attribute_value(w, n, n)) for n in others), Lit(">"))  # type: ignore[misc]


def _element(w: CallRules, part: ToolElement) -> Rule:
    """A tool's element: its attributes, then its content or its child elements."""
    element = w.tool.element
    assert element is not None
    nodes = {n.parameter: n for n in element.nodes}
    head: list[Rule] = [Lit(f"<{element.tag}")]
    for name in w.parameters:
        node = nodes.get(name)
        if node is None or node.kind == "attribute":
            label = node.path[0] if node is not None else name
            head.append(w.optional(name, lambda n=name, to=label: attribute_value(w, n, to)))  # type: ignore[misc]
    content = element.of("content")
    if content:
        filled = _content(w, content[0].parameter, ">", element.tag)
        body = filled if w.needs(content[0].parameter) else alt([filled, Lit("/>")])
    elif element.of("element"):
        declared = {n.parameter for n in element.of("element")}
        group = {k: v for k, v in group_of(w.tool).items() if isinstance(v, dict) or v.parameter in declared}
        inner, needed = _children(w, group, (element.tag,))
        filled = seq(Lit(">"), inner, Lit(f"</{element.tag}>"))
        body = filled if needed else alt([filled, Lit("/>")])
    else:
        body = Lit("/>")
    return seq(*head, body)


def _children(w: CallRules, group: Mapping[str, Any], parents: tuple[str, ...]) -> tuple[Rule, bool]:
    """Child elements of the first of `parents` on lines of their own, and whether one of them is required."""
    out: list[Rule] = [Lit("\n")]
    needed = False
    for name, below in group.items():
        if isinstance(below, Node):
            tags = (f"<{name}", f"<{parents[-1]}", *(f"</{n}" for n in (name, *parents)))
            blocked = tuple(Blocked(text, tag=True) for text in tags)
            make = lambda n=below.parameter, b=blocked, t=name: value(w, n, f"<{t}>", f"</{t}>\n", b)  # noqa: E731
            out.append(w.optional(below.parameter, make))
            needed = needed or w.needs(below.parameter)
            continue
        inner, wanted = _children(w, below, (name, *parents))
        whole = seq(Lit(f"<{name}>"), inner, Lit(f"</{name}>\n"))
        out.append(whole if wanted else opt(whole))
        needed = needed or wanted
    return seq(*out), needed


Make = Callable[[CallRules, Any], Rule]

PARTS: Final[Mapping[type[FormatPart], Make]] = {
    str: _literal,
    Tag: _tag,
    Name: _name,
    CountedName: _counted_name,
    NameTag: _name_tag,
    TagParameters: _tag_parameters,
    Pairs: _pairs,
    Json: _json,
    Envelope: _envelope,
    KeyEnvelope: _key_envelope,
    PythonCall: _python_call,
    Skip: _skip,
    Braced: braced,
    NestedTags: nested,
    TextArgument: _text_argument,
    ToolElement: _element,
}
"""Parts that can be written as rules. A part that is missing here has no grammar."""
