"""`@xml_schema` checked against a tool's parameters: where each one sits in the tool's XML element.

Pure; knows no registry and parses no XML.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final, Literal

from agentkit.errors import SchemaError
from agentkit.schemas.walk import alternatives, enum_values
from agentkit.tool.declare import XMLMapping, XMLSchema
from agentkit.toolspec import Element, Node

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
"""XML names that every parser and every model agrees on."""

KINDS: Final[Mapping[str, Literal["attribute", "element", "content"]]] = {
    "attribute": "attribute",
    "element": "element",
    "content": "content",
    "text": "content",
}

SHORT_FORMATS: Final = frozenset(
    ["date-time", "date", "time", "duration", "uuid", "email", "hostname", "ipv4", "ipv6", "uri", "path"]
)
"""String formats whose values are single short words."""

SHORT: Final = 100
"""Maximum length at which a bounded string becomes an attribute."""


def kebab(name: str) -> str:
    """A function's name as a tag.

    >>> kebab("create_file"), kebab("readHTMLPage")
    ('create-file', 'read-html-page')
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name)
    return words.replace("_", "-").strip("-").lower()


def element_of(
    declared: XMLSchema, name: str, parameters: Mapping[str, Any], where: str, *, tag: str | None = None
) -> Element:
    """Resolve a declaration.

    Args:
        declared: the declaration of `@xml_schema`.
        name: the tool's function name, used if no tag is declared.
        parameters: the JSON Schema of the arguments.
        where: the class and method, for messages.
        tag: replaces the declared tag; a declared example, which shows the old one, is then dropped.

    Raises:
        SchemaError: a tag, attribute or element that is not an XML name; a parameter that does not exist, is mapped
            twice, or is required but not mapped; content together with elements; two parameters in one place.
    """
    resolved = next(t for t in (tag, declared.tag_name, kebab(name)) if t is not None)
    _refuse_name(resolved, "tag", where)
    mappings = derive_mappings(parameters) if declared.mappings is None else declared.mappings
    required = parameters.get("required", ())
    nodes = tuple(_node(mapping, parameters, required, where) for mapping in mappings)
    _refuse_unmapped(nodes, required, where)
    _refuse_places(nodes, where)
    example = declared.example if tag in (None, declared.tag_name) else None
    return Element(resolved, nodes, example, declared.strip)


def derive_mappings(parameters: Mapping[str, Any]) -> tuple[XMLMapping, ...]:
    """The mappings of a bare `@xml_schema`: attributes for short scalars, elements for the rest.

    Short scalars are booleans, numbers, enumerations of scalars, and strings with a short format (`date`, `uuid`,
    `path`, …) or of at most 100 characters; all of these even if nullable. Any other string becomes an element: it may
    be code, which an attribute would have to escape.
    """
    return tuple(
        XMLMapping(name, "attribute" if _short(schema, parameters) else "element")
        for name, schema in parameters.get("properties", {}).items()
    )


def _short(schema: Any, root: Mapping[str, Any]) -> bool:
    options = list(alternatives(schema, root)) if isinstance(schema, Mapping) else []
    return bool(options) and all(_short_option(option) for option in options)


def _short_option(option: Mapping[str, Any]) -> bool:
    if values := enum_values(option):
        return not any(isinstance(value, (dict, list)) for value in values)
    if option.get("type") == "string":
        return option.get("format") in SHORT_FORMATS or option.get("maxLength", SHORT + 1) <= SHORT
    return option.get("type") in ("boolean", "integer", "number", "null")


def _node(mapping: XMLMapping, parameters: Mapping[str, Any], required: Any, where: str) -> Node:
    name = mapping.param_name
    known = list(parameters.get("properties", {}))
    if name not in known:
        listed = ", ".join(map(repr, known)) or "none"
        raise SchemaError(
            f"{where}: @xml_schema maps parameter {name!r}, which does not exist (parameters: {listed}); rename or "
            "remove it"
        )
    if mapping.node_type not in KINDS:
        raise SchemaError(
            f"{where}: @xml_schema maps parameter {name!r} as {mapping.node_type!r}; write one of {', '.join(KINDS)}"
        )
    if mapping.required not in (None, name in required):
        stated = "required" if mapping.required else "optional"
        raise SchemaError(
            f"{where}: @xml_schema says that parameter {name!r} is {stated}, but the signature says the opposite; omit "
            "'required' to follow the signature"
        )
    kind = KINDS[mapping.node_type]
    return Node(name, kind, _path(mapping, kind, where), name in required)


def _path(mapping: XMLMapping, kind: str, where: str) -> tuple[str, ...]:
    name, path = mapping.param_name, mapping.path
    if kind == "content":
        if path not in (".", ""):
            raise SchemaError(
                f"{where}: @xml_schema maps parameter {name!r} as content with path {path!r}; content is the tag's own "
                "text and has no path"
            )
        return ()
    steps = tuple(path.split("/")) if path != "." else (name,)
    if (instead := _no_path(path, name)) is not None:
        raise SchemaError(
            f"{where}: @xml_schema has path {path!r} for parameter {name!r}: a path is names, not XPath; {instead}"
        )
    for step in steps:
        _refuse_name(step, f"{kind} (path {path!r} of parameter {name!r})", where)
    if kind == "attribute" and len(steps) > 1:
        raise SchemaError(
            f"{where}: @xml_schema maps parameter {name!r} as an attribute with the nested path {path!r}; attributes "
            "belong to the tag itself: use node_type 'element', or the attribute's name alone"
        )
    if len(set(steps)) < len(steps):
        raise SchemaError(
            f"{where}: @xml_schema has path {path!r} for parameter {name!r}, which names an element inside one of "
            "the same name; give one of them another name"
        )
    return steps


def _no_path(path: str, name: str) -> str | None:
    """Return the advice for a path written as XPath; None if the path may consist of names."""
    if path.startswith("@"):
        return f"write {{'param_name': {name!r}, 'node_type': 'attribute', 'path': {path[1:]!r}}}"
    if path in ("text()", "./text()"):
        return f"write {{'param_name': {name!r}, 'node_type': 'content'}}"
    if path != "." and path.startswith((".", "/")):
        return f"write {path.lstrip('./')!r}" if path.lstrip("./") else "write '.', or omit it"
    return None


def _refuse_name(name: str, what: str, where: str) -> None:
    if not NAME.match(name):
        raise SchemaError(
            f"{where}: @xml_schema has {name!r} as {what}, which is not an XML name; use ASCII letters, digits, '_', "
            "'-' and '.', starting with a letter or '_'"
        )


def _refuse_unmapped(nodes: tuple[Node, ...], required: Any, where: str) -> None:
    mapped = [node.parameter for node in nodes]
    for name in required:
        if name not in mapped:
            raise SchemaError(
                f"{where}: parameter {name!r} is required, but @xml_schema does not map it, so an XML call could never "
                "succeed; add it to attributes, elements or content"
            )
    for name in mapped:
        if mapped.count(name) > 1:
            raise SchemaError(f"{where}: @xml_schema maps parameter {name!r} {mapped.count(name)} times; keep one")


def _refuse_places(nodes: tuple[Node, ...], where: str) -> None:
    contents = [node.parameter for node in nodes if node.kind == "content"]
    elements = sorted((node for node in nodes if node.kind == "element"), key=lambda node: node.path)
    attributes = sorted((node for node in nodes if node.kind == "attribute"), key=lambda node: node.path)
    if len(contents) > 1:
        raise SchemaError(
            f"{where}: @xml_schema has two contents, {contents[0]!r} and {contents[1]!r}; a tag has only one text"
        )
    if contents and elements:
        raise SchemaError(
            f"{where}: @xml_schema has content ({contents[0]!r}) together with elements ({elements[0].parameter!r}), "
            "which cannot be told apart; make the content an element too, or the elements attributes"
        )
    for one, other in [*pairwise(elements), *pairwise(attributes)]:
        if other.path[: len(one.path)] == one.path:
            raise SchemaError(
                f"{where}: @xml_schema puts parameters {one.parameter!r} and {other.parameter!r} into the same "
                f"{one.kind} {'/'.join(one.path)!r}; give one of them another path"
            )
