"""Formats as data: the parts of which a format is declared, and the tools it is declared for.

Knows text and events; knows no registry, no model and no I/O. A format is a linear template of parts. The engine
reads it
forward to parse, `render.py` backward to write. A quirk of one format is a part of its own, never an option used once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Node:
    """Where one parameter sits inside a tool's XML element.

    Args:
        parameter: the parameter's name.
        kind: `attribute` of the tool's tag, child `element`, or the element's own text `content`.
        path: the attribute's or element's name; several names for an element nested in elements. Empty for content.
        required: whether the call is refused without it.
    """

    parameter: str
    kind: Literal["attribute", "element", "content"]
    path: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True, slots=True)
class Element:
    """The XML element under which one tool is called, as `@xml_schema` declares it.

    At most one node is `content`, and then none is an `element`.
    """

    tag: str
    nodes: tuple[Node, ...] = ()
    example: str | None = None

    def of(self, kind: str) -> tuple[Node, ...]:
        """The nodes of one kind, in their declared order."""
        return tuple(n for n in self.nodes if n.kind == kind)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as models and formats see it.

    Args:
        name: the function name.
        description: what it does, for the model.
        parameters: JSON Schema 2020-12 of the arguments object (`type`, `properties`, `required`, maybe `$defs`).
        element: its XML element; None when it has no `@xml_schema`.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    element: Element | None = None

    def schema_of(self, parameter: str) -> Mapping[str, Any]:
        """The schema of one parameter; the empty schema for one that is not declared."""
        found = self.parameters.get("properties", {}).get(parameter, {})
        return found if isinstance(found, Mapping) else {}

    def with_element(self) -> ToolSpec:
        """This tool with an XML element: its own, or `<its-name>` with one child element per parameter."""
        if self.element is not None:
            return self
        required = self.parameters.get("required", ())
        nodes = (Node(p, "element", (p,), p in required) for p in self.parameters.get("properties", {}))
        return replace(self, element=Element(self.name.replace("_", "-"), tuple(nodes)))


# ---------------------------------------------------------------- parts


@dataclass(frozen=True, slots=True)
class Tag:
    """An opening or closing tag without a slot: `<function_calls>`, `</invoke>`.

    Read in any case, with a namespace prefix and with white space before `>`.
    """

    name: str
    closing: bool = False


@dataclass(frozen=True, slots=True)
class NameTag:
    """Slot: the tool's name in an attribute of an opening tag, `<invoke name="…">`; self-closing ends the call."""

    name: str
    attribute: str


@dataclass(frozen=True, slots=True)
class TagParameters:
    """Slot: repeated `<parameter name="key">value</parameter>`; values are raw text, typed by the tool's schema."""

    name: str
    attribute: str


@dataclass(frozen=True, slots=True)
class Envelope:
    """Slot: one JSON object that holds the tool's name and its arguments, in any order, beside any other keys.

    Args:
        name: the key of the name; written and read.
        arguments: the keys under which the arguments are read; the first is written.
    """

    name: str = "name"
    arguments: tuple[str, ...] = ("arguments",)


@dataclass(frozen=True, slots=True)
class ToolElement:
    """Slot: one XML element per tool, as the tool's `Element` maps it: attributes, elements, content."""


Part = str | Tag | NameTag | TagParameters | Envelope | ToolElement
"""A literal, or one slot. White space at the ends of a literal is written, but need not be there when read."""


@dataclass(frozen=True, slots=True)
class Section:
    """What stands around a run of calls. Read when present, never missed when absent."""

    open: str | Tag
    close: str | Tag


@dataclass(frozen=True, slots=True)
class ResultShape:
    """How a tool's result is shown to the model: text around the result, with `{name}`, `{id}` and `{status}` slots."""

    open: str
    close: str


@dataclass(frozen=True, slots=True)
class Format:
    """How calls look in text: one declaration, read in three directions.

    Args:
        name: its one name.
        call: the parts of one call, in order.
        section: what stands around a run of calls; None for calls that stand alone.
        separator: written between two calls of a section or message.
        result: how results come back.
        thinking: the tags around reasoning; a call inside them never counts.
        aliases: other names of the same format.
        families: model families known to write it.
    """

    name: str
    call: tuple[Part, ...]
    section: Section | None = None
    separator: str = "\n"
    result: ResultShape = ResultShape(
        '<tool_result name="{name}" call_id="{id}" status="{status}">\n', "\n</tool_result>"
    )
    thinking: tuple[tuple[str, str], ...] = (("<think>", "</think>"), ("<thinking>", "</thinking>"))
    aliases: tuple[str, ...] = ()
    families: tuple[str, ...] = ()

    @property
    def textual(self) -> bool:
        """Whether values are written as text, so that their types come from the schema (and coercion is lenient)."""
        return any(isinstance(p, TagParameters | ToolElement) for p in self.call)

    @property
    def body(self) -> str:
        """The body kind, for listings."""
        for part in self.call:
            match part:
                case Envelope():
                    return "JSON envelope"
                case TagParameters():
                    return "parameters"
                case ToolElement():
                    return "element per tool"
        return "other"

    @property
    def stops(self) -> tuple[str, ...]:
        """Strings after which a sampler may stop: the end of the section. Empty where calls stand alone.

        A sampler that stops there leaves the string out; the parser reads the calls all the same.
        """
        if self.section is None:
            return ()
        close = self.section.close
        return (f"</{close.name}>" if isinstance(close, Tag) else close.strip(),)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what a parser accepts.

    Args:
        call: characters of one call.
        depth: nesting of JSON.
        space: white space looked over, in characters, before a delimiter.
        name: characters of a tool's or parameter's name.
    """

    call: int = 16_000_000
    depth: int = 128
    space: int = 1024
    name: int = 256
