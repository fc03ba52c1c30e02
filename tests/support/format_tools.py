"""The tools that the formats' tests call, as formats see them."""

from __future__ import annotations

from typing import Any

from agentkit.formats import Element, Node, ToolSpec


def spec(name: str, element: Element | None = None, required: tuple[str, ...] = (), **types: Any) -> ToolSpec:
    """A tool from its parameters' JSON Schemas, or their bare types."""
    properties = {k: {"type": t} if isinstance(t, str) else t for k, t in types.items()}
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return ToolSpec(name, f"{name} it", schema, element)


def attribute(name: str, *, required: bool = True) -> Node:
    """A parameter in the attribute of its name."""
    return Node(name, "attribute", (name,), required)


def element(*path: str) -> Node:
    """A parameter in an element, nested for several names; the parameter is called like the last one."""
    return Node(path[-1], "element", path)


CREATE_FILE = spec(
    "create_file",
    Element("create-file", (attribute("file_path"), Node("file_contents", "content"))),
    ("file_path", "file_contents"),
    file_path="string",
    file_contents="string",
)
STR_REPLACE = spec(
    "str_replace",
    Element("str-replace", (attribute("file_path"), element("old_str"), element("new_str"))),
    ("file_path", "old_str", "new_str"),
    file_path="string",
    old_str="string",
    new_str="string",
)
WEB_SEARCH = spec(
    "web_search",
    Element("web-search", tuple(attribute(n, required=n == "query") for n in ("query", "summary", "num_results"))),
    ("query",),
    query="string",
    summary="boolean",
    num_results="integer",
)
ASK = spec("ask", Element("ask", (Node("text", "content"),)), ("text",), text="string")
ADD = spec("add", Element("add", (attribute("a"), attribute("b"))), ("a", "b"), a="integer", b="integer")
NOTE = spec("note", None, ("text",), text="string")
PING = spec("ping", Element("ping"))
ANYTHING = spec(
    "anything",
    Element(
        "any-thing", (element("text"), element("number"), element("items"), element("deep", "object"), element("free"))
    ),
    (),
    text="string",
    number="number",
    items={"type": "array"},
    object={"type": "object"},
    free={},
    maybe={"anyOf": [{"type": "string"}, {"type": "null"}]},
    flag="boolean",
)

TOOLS = (CREATE_FILE, STR_REPLACE, WEB_SEARCH, ASK, ADD, NOTE, PING, ANYTHING)
