"""An element per tool as rules, and the tag that contains a tool's name and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit.formats.bodies.elements import group_of
from agentkit.formats.escapes import attribute
from agentkit.formats.format import (
    NameTag,
    Tag,
    TextArgument,
    ToolElement,
)
from agentkit.grammar import rules
from agentkit.grammar.arguments_as_rules import CallRules, attribute_value, value
from agentkit.grammar.part_rules import KEY, NAME, PartRules
from agentkit.grammar.rules import Exclusion, Lit, Rule, alt, opt, seq
from agentkit.toolspec import Node


def _name_tag(w: CallRules, part: NameTag) -> Rule:
    start = Lit(f'<{part.name} {part.attribute}="{attribute(w.tool.name)}"')
    if not any(isinstance(p, TextArgument) for p in w.format.call):
        return seq(start, Lit(">"))
    others = [n for n in w.parameters if n not in w.tool.first_required]
    return seq(start, *(w.optional(n, lambda n=n: attribute_value(w, n, n)) for n in others), Lit(">"))  # type: ignore[misc]


def _text_argument(w: CallRules, part: TextArgument) -> Rule:
    closing = next(p.name for p in w.format.call if isinstance(p, Tag))
    names = w.tool.first_required
    if not names:
        return rules.EMPTY
    return _content(w, names[0], "", closing)


def _content(w: CallRules, name: str, start: str, tag: str) -> Rule:
    """Return the rule of an element's own text up to and including its closing tag."""
    blocked = (Exclusion(f"</{tag}", tag=True), Exclusion(f"<{tag}", tag=True), Exclusion(">", start=True))
    return value(w, name, start, f"</{tag}>", blocked)


def _element(w: CallRules, part: ToolElement) -> Rule:
    """Return the rule of a tool's element: its attributes, then its content or its child elements."""
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
    """Child elements of the first of `parents` on separate lines, and whether one of them is required."""
    out: list[Rule] = [Lit("\n")]
    needed = False
    for name, below in group.items():
        if isinstance(below, Node):
            tags = tuple(f"{slash}{n}" for n in (name, *parents) for slash in ("<", "</"))
            blocked = tuple(Exclusion(text, tag=True) for text in tags)
            make = lambda n=below.parameter, b=blocked, t=name: value(w, n, f"<{t}>", f"</{t}>\n", b)  # noqa: E731
            out.append(w.optional(below.parameter, make))
            needed = needed or w.needs(below.parameter)
            continue
        inner, wanted = _children(w, below, (name, *parents))
        whole = seq(Lit(f"<{name}>"), inner, Lit(f"</{name}>\n"))
        out.append(whole if wanted else opt(whole))
        needed = needed or wanted
    return seq(*out), needed


RULES = (
    PartRules(NameTag, _name_tag),
    PartRules(TextArgument, _text_argument, keys=KEY),
    PartRules(ToolElement, _element, name=NAME, keys=KEY),
)
