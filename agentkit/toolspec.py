"""A tool as models and formats see it: its name, its JSON Schema, its XML element. Frozen values without behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Layout = Literal["own", "children", "text"]
"""How a tool's XML element is laid out."""

InCode = Literal["ignore", "reply", "execute"]
"""What is done with calls in Markdown code; see `Parser`."""


@dataclass(frozen=True, slots=True)
class Node:
    """The place of one parameter inside a tool's XML element.

    Args:
        parameter: the parameter's name.
        kind: `attribute` of the tool's tag, child `element`, or the element's own text `content`.
        path: the attribute's or element's name; several names for an element nested in elements. Empty for content.
        required: whether a call without it is refused.
    """

    parameter: str
    kind: Literal["attribute", "element", "content"]
    path: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True, slots=True)
class Element:
    """The XML element under which one tool is called, as `@xml_schema` declares it.

    At most one node is `content`, and then there is no `element`. With `strip`, white space around the values of
    content and elements is removed; without it, only one newline after the opening tag is.
    """

    tag: str
    nodes: tuple[Node, ...] = ()
    example: str | None = None
    strip: bool = False

    def of(self, kind: str) -> tuple[Node, ...]:
        """The nodes of one kind, in their declared order."""
        return tuple(n for n in self.nodes if n.kind == kind)


UNDECLARED: Mapping[str, Any] = {"type": "string"}
"""The schema of a parameter that no schema mentions: the characters as written. A guessed type could not be undone (the
text `1.10` or `null` would be lost), whereas a string can still be converted later."""


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """The type of a model's final reply, as models and formats see it.

    Args:
        name: the type's name, 1 to 64 of `a-z A-Z 0-9 _ -`.
        schema: JSON Schema 2020-12 of the reply, with an object at its root.
    """

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as models and formats see it.

    Args:
        name: the function name.
        description: its description for the model.
        parameters: JSON Schema 2020-12 of the arguments object (`type`, `properties`, `required`, optionally `$defs`).
        element: its XML element; None when it has no `@xml_schema`.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    element: Element | None = None

    def declares(self, parameter: str) -> bool:
        """Return True if the tool's schema covers a parameter of this name."""
        return parameter in self.parameters.get("properties", {}) or bool(self.parameters.get("additionalProperties"))

    def schema_of(self, parameter: str) -> Mapping[str, Any]:
        """The schema of one parameter; `UNDECLARED` if the tool's schema does not cover it."""
        properties = self.parameters.get("properties", {})
        if parameter in properties:
            found = properties[parameter]
        elif not (found := self.parameters.get("additionalProperties")):
            return UNDECLARED
        return found if isinstance(found, (dict, Mapping)) else {}  # checking for dict first is faster

    def with_element(self, layout: Layout = "own") -> ToolSpec:
        """This tool with an XML element: its own, or a generated one.

        A generated element has the tag `<its-name>`; in the other layouts `<its_name>`, as registered.
        """
        if self.element is not None and layout == "own":
            return self
        required = self.parameters.get("required", ())
        nodes = (Node(p, "element", (p,), p in required) for p in self.parameters.get("properties", {}))
        if layout == "text":
            nodes = (Node(p, "content") for p in self.first_required)
        return replace(
            self, element=Element(self.name.replace("_", "-") if layout == "own" else self.name, tuple(nodes))
        )

    @property
    def first_required(self) -> tuple[str, ...]:
        """The first required parameter, else the first one; empty for a tool without parameters."""
        names = self.parameters.get("properties", {})
        required = [n for n in names if n in self.parameters.get("required", ())]
        return tuple((required or list(names))[:1])
