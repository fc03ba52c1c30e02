"""The decorators `@openapi_schema` and `@xml_schema`, and the frozen declarations that they store.

A decorator appends one declaration to the function's `tool_schemas` and returns the same function: it only stores. The
declaration is checked against the signature when the tool is registered. `agentkit.schemas.flavours` turns it into each
provider's form; its names are also available here.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final, TypeVar, overload

from agentkit.checks.spelling import did_you_mean, takes
from agentkit.errors import SchemaError
from agentkit.foreign import argument_names
from agentkit.foreign.absent import suggest_attributes
from agentkit.schemas.flavours import FLAVOURS, anthropic, mcp, openai_chat, openai_responses, openai_strict

__all__ = [
    "FLAVOURS",
    "OpenAPISchema",
    "SchemaType",
    "ToolSchema",
    "XMLMapping",
    "XMLSchema",
    "anthropic",
    "declarations_of",
    "mcp",
    "openai_chat",
    "openai_responses",
    "openai_strict",
    "openapi_schema",
    "xml_schema",
]

F = TypeVar("F", bound=Callable[..., Any])

ATTRIBUTE: Final = "tool_schemas"
"""The attribute in which a function stores its declarations."""


class SchemaType(StrEnum):
    """The decorator that a declaration comes from."""

    OPENAPI = "openapi"
    XML = "xml"


class ToolSchema:
    """One decorator's declaration: the base of `OpenAPISchema` and `XMLSchema`, which the decorators create.

    It can also be read like the mapping `{"type": …, "data": …}` (which decorator, and its keywords), and its `repr` is
    the decorator as written in code.

    Raises:
        SchemaError: it is constructed directly.
    """

    __slots__ = ()
    schema_type: ClassVar[SchemaType]

    def __init__(self, *_: Any, **__: Any) -> None:
        raise SchemaError(
            "ToolSchema(…) cannot be used directly: write @openapi_schema({…}) or "
            "@xml_schema(tag_name=…, mappings=[…]) above the method"
        )

    @property
    def _data(self) -> dict[str, Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self["data"].items())
        return f"@{self.schema_type}_schema{arguments and f'({arguments})'}"

    @property
    def xml_schema(self) -> XMLSchema | None:
        """The schema itself if it comes from `@xml_schema`, else None."""
        return self if isinstance(self, XMLSchema) else None

    def __getitem__(self, key: str) -> Any:
        match key:
            case "type":
                return self.schema_type.value
            case "data":
                return {name: value for name, value in self._data.items() if value not in (None, False, {}, [])}
            case _:
                raise KeyError(f"a declaration has the keys 'type' and 'data'; found {key!r}")


@suggest_attributes
@dataclass(frozen=True, slots=True, repr=False)
class OpenAPISchema(ToolSchema):
    """The declaration of `@openapi_schema`; all that it omits comes from the signature and the docstring.

    Args:
        description: what the tool does, for the model.
        parameters: a description or a JSON Schema by parameter name.
        keywords: the decorator's other keywords: parameter descriptions, `name`, and those of `ToolPolicy`.
        written: a hand-written schema: a full OpenAI function, or the JSON Schema of the arguments.
    """

    description: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    keywords: Mapping[str, Any] = field(default_factory=dict)
    written: Mapping[str, Any] | None = None
    schema_type: ClassVar = SchemaType.OPENAPI

    @property
    def _data(self) -> dict[str, Any]:
        return {**(self.written or {}), "description": self.description, "parameters": self.parameters, **self.keywords}

    def __repr__(self) -> str:
        if self.written is None:
            return ToolSchema.__repr__(self)
        return f"@openapi_schema({self.written!r})"


@dataclass(frozen=True, slots=True)
class XMLMapping:
    """The place of one parameter in a tool's XML element.

    Args:
        param_name: the parameter.
        node_type: `element`, `attribute`, or `content` (also called `text`).
        path: the attribute's or element's name; `.` means the parameter's own name; `options/limit` is a nested
            element.
        required: None takes it from the signature.
    """

    param_name: str
    node_type: str = "element"
    path: str = "."
    required: bool | None = None


@suggest_attributes
@dataclass(frozen=True, slots=True, repr=False)
class XMLSchema(ToolSchema):
    """The declaration of `@xml_schema`.

    Args:
        tag_name: None derives it from the function's name, in kebab-case.
        mappings: one per parameter; None derives them: attributes for short scalars, elements for the rest.
        example: an example call for the prompt; None generates one.
        strip: whether to remove white space around the values of content and elements.
    """

    tag_name: str | None = None
    mappings: tuple[XMLMapping, ...] | None = None
    example: str | None = None
    strip: bool = False
    schema_type: ClassVar = SchemaType.XML

    @property
    def _data(self) -> dict[str, Any]:
        keywords = {"name": self.tag_name, "example": self.example, "strip": self.strip}
        nodes = self.mappings or ()
        if any(node.path != "." or node.required is not None for node in nodes):
            return {**keywords, "mappings": [asdict(node) for node in nodes]}
        kinds = {kind: [n.param_name for n in nodes if n.node_type == kind] for kind in ("attribute", "element")}
        content = next((n.param_name for n in nodes if n.node_type in ("content", "text")), None)
        return {**keywords, "attributes": kinds["attribute"], "elements": kinds["element"], "content": content}


@suggest_attributes
@dataclass(frozen=True, slots=True, repr=False)
class BothSchemas(ToolSchema):
    """The declarations of both decorators of one method, as a single registry entry.

    It has no `schema_type`: both keys of the registry lead to the same entry.

    Args:
        openapi: the declaration of `@openapi_schema`.
        xml: the declaration of `@xml_schema`, with the registered tag.
    """

    openapi: OpenAPISchema
    xml: XMLSchema

    @property
    def _data(self) -> dict[str, Any]:
        return {"openapi": self.openapi["data"], "xml": self.xml["data"]}

    def __repr__(self) -> str:
        return f"{self.openapi!r} and {self.xml!r}"

    @property
    def xml_schema(self) -> XMLSchema:
        """The declaration of `@xml_schema`."""
        return self.xml


@overload
def openapi_schema(schema: F, /) -> F: ...
@overload
def openapi_schema(
    schema: Mapping[str, Any] | None = None,
    /,
    *,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> Callable[[F], F]: ...
def openapi_schema(
    schema: Any = None,
    /,
    *,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> Any:
    """Offer a method or function to models.

    Bare, with keywords, or with a hand-written schema:

    >>> @openapi_schema
    ... def add(a: int, b: int) -> int:
    ...     return a + b
    >>> @openapi_schema(description="Read a file", path="the file")
    ... def read(path: str) -> str: ...
    >>> @openapi_schema({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]})
    ... def search(q): ...
    >>> add.tool_schemas
    [@openapi_schema]

    Args:
        schema: a hand-written schema, which the model sees exactly as written: an OpenAI function
            (`{"type": "function", "function": {"name", "description", "parameters"}}`), its inner part alone, or the
            JSON Schema of the arguments alone. An OpenAI function may also be spread: `@openapi_schema(**schema)`.
        description: what the tool does; by default the docstring's text.
        parameters: descriptions by parameter name, for names that are also keywords of this decorator; a mapping
            instead of a string is the parameter's complete JSON Schema.
        keywords: a parameter's description by its name. `name="…"` is the tool's name where no parameter is called
            `name`. The others control how the tool may be run (`timeout=30`, `terminates=True`,
            `requires_approval=True`, …; see `ToolPolicy`); if a parameter has such a name, a string describes the
            parameter.

    Raises:
        SchemaError: immediately if the decorated object cannot be a method; at registration for everything else.
    """
    if _decorates(schema):
        return _append(schema, OpenAPISchema())
    if schema is None and keywords.keys() == {"type", "function"} and isinstance(keywords["function"], Mapping):
        schema, keywords = keywords, {}  # a hand-written schema, spread: @openapi_schema(**schema)
    if schema is not None and not isinstance(schema, Mapping):
        raise SchemaError(
            f"@openapi_schema takes a hand-written schema (a mapping) or keywords, not {schema!r}; "
            "for a description write @openapi_schema(description=...)"
        )
    _refuse_kinds("openapi_schema", description=description, parameters=parameters)
    written = copy.deepcopy(dict(schema)) if schema is not None else None
    declaration = OpenAPISchema(description, copy.deepcopy(dict(parameters or {})), keywords, written)
    return lambda func: _append(func, declaration)


@overload
def xml_schema(name: F, /) -> F: ...
@overload
def xml_schema(
    name: str | None = None,
    *,
    tag_name: str | None = None,
    attributes: Iterable[str] | None = None,
    elements: Iterable[str] | None = None,
    content: str | None = None,
    mappings: Iterable[Mapping[str, Any] | XMLMapping] | None = None,
    example: str | None = None,
    strip: bool = False,
) -> Callable[[F], F]: ...
@takes(others=argument_names.XML_SCHEMA, owner="@xml_schema", error=SchemaError)
def xml_schema(
    name: Any = None,
    *,
    tag_name: str | None = None,
    attributes: Iterable[str] | None = None,
    elements: Iterable[str] | None = None,
    content: str | None = None,
    mappings: Iterable[Mapping[str, Any] | XMLMapping] | None = None,
    example: str | None = None,
    strip: bool = False,
) -> Any:
    """Give a method its own XML element: `<str-replace path="a.py"><old>x</old><new>y</new></str-replace>`.

    >>> @xml_schema(name="str-replace", attributes=["path"], elements=["old", "new"])
    ... def str_replace(path: str, old: str, new: str) -> str: ...
    >>> str_replace.tool_schemas[0].tag_name
    'str-replace'

    Args:
        name: the tag; by default the function's name in kebab-case.
        tag_name: the same as `name`.
        attributes: the parameters that are attributes of the tag.
        elements: the parameters that are elements inside it.
        content: the one parameter that is its text.
        mappings: the long form, instead of these three: `{"param_name", "node_type": "element" | "attribute" |
            "content" | "text", "path", "required"}` per parameter.
        example: an example call for the prompt; generated by default.
        strip: remove white space, including line ends, around the values of content and elements. By default they are
            read exactly as written, except for one line end after the opening tag.

    Raises:
        SchemaError: immediately for two tags or both forms together; at registration for everything else.
    """
    if _decorates(name):
        return _append(name, XMLSchema())
    if name is not None and tag_name is not None:
        raise SchemaError(f"@xml_schema has two tags, name={name!r} and tag_name={tag_name!r}; keep one")
    _refuse_kinds("xml_schema", name=name, tag_name=tag_name, example=example, strip=strip)
    _refuse_kinds("xml_schema", attributes=attributes, elements=elements, content=content, mappings=mappings)
    short = attributes is not None or elements is not None or content is not None
    if short and mappings is not None:
        raise SchemaError("@xml_schema takes mappings=[...] or attributes=/elements=/content=, not both")
    nodes = _short_form(attributes, elements, content) if short else _long_form(mappings)
    declaration = XMLSchema(name if name is not None else tag_name, nodes, example, strip)
    return lambda func: _append(func, declaration)


_KINDS: Final[Mapping[str, tuple[type, str]]] = {
    "description": (str, "a string"),
    "parameters": (Mapping, "descriptions or JSON Schemas by parameter name"),
    **dict.fromkeys(("name", "tag_name"), (str, "the tag, a string")),
    **dict.fromkeys(("attributes", "elements"), (Iterable, "a list of parameter names")),
    "content": (str, "one parameter's name"),
    "mappings": (Iterable, "a list of mappings, one for each parameter"),
    "example": (str, "a call as a model writes it, a string"),
    "strip": (bool, "True or False"),
    "param_name": (str, "a parameter's name"),
    "node_type": (str, "attribute, element, content or text"),
    "path": (str, "the name of an attribute or element, or '.'"),
    "required": (bool, "True or False, or None to follow the signature"),
}
"""The decorators' arguments, apart from None."""


def _refuse_kinds(decorator: str, **given: Any) -> None:
    for name, value in given.items():
        kind, words = _KINDS[name]
        named = not isinstance(value, Mapping) or all(isinstance(key, str) for key in value)
        if value is not None and not (isinstance(value, kind) and named):
            found = f"{type(value).__name__} {value!r:.60}"
            raise SchemaError(f"@{decorator}({name}=…): expected {words}, found {found}")


def _short_form(
    attributes: Iterable[str] | None, elements: Iterable[str] | None, content: str | None
) -> tuple[XMLMapping, ...]:
    for key, names in (("attributes", attributes), ("elements", elements)):
        if isinstance(names, str):
            raise SchemaError(f"@xml_schema({key}={names!r}): pass a list of parameter names, {key}=[{names!r}]")
    return (
        *(XMLMapping(name, "attribute") for name in attributes or ()),
        *(XMLMapping(name, "element") for name in elements or ()),
        *((XMLMapping(content, "content"),) if content is not None else ()),
    )


def _long_form(mappings: Iterable[Mapping[str, Any] | XMLMapping] | None) -> tuple[XMLMapping, ...] | None:
    if mappings is None:
        return None
    return tuple(m if isinstance(m, XMLMapping) else _mapping(m) for m in mappings)


def _mapping(entry: Any) -> XMLMapping:
    known = ("param_name", "node_type", "path", "required")
    if not isinstance(entry, Mapping) or "param_name" not in entry or entry.keys() - set(known):
        raise SchemaError(
            f"@xml_schema(mappings=[...]): expected an entry with {', '.join(known)} (param_name is required); "
            f"found {entry!r}{_suggestion(entry, known)}"
        )
    _refuse_kinds("xml_schema", **entry)
    return XMLMapping(**entry)


def _suggestion(entry: Any, known: tuple[str, ...]) -> str:
    if isinstance(entry, Mapping):
        wrong = next((key for key in entry if key not in known), None)
        return "" if wrong is None else did_you_mean(str(wrong), known, argument_names.XML_MAPPING)
    name, kind = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, "attribute")
    return f"; write {{'param_name': {str(name)!r}, 'node_type': {str(kind)!r}}}"


def _decorates(target: Any) -> bool:
    """Return True if the argument is the decorated method, since the decorator has no parentheses."""
    return isinstance(target, (staticmethod, classmethod)) or callable(target)


def _append(target: Any, declaration: OpenAPISchema | XMLSchema) -> Any:
    """Store one declaration on the function, or on the one inside a static or class method; return the target."""
    function = getattr(target, "__func__", target)
    if isinstance(function, type):
        raise SchemaError(f"class {function.__qualname__} is decorated as a tool; decorate its methods instead")
    try:
        setattr(function, ATTRIBUTE, [*getattr(function, ATTRIBUTE, ()), declaration])
    except AttributeError as e:
        what = getattr(target, "__qualname__", type(target).__qualname__)
        raise SchemaError(f"{what} cannot be decorated as a tool; wrap it in a def and decorate that") from e
    return target


def schemas_of(attribute: Any) -> tuple[OpenAPISchema | XMLSchema, ...]:
    """The declarations on a function, or on the one inside a static or class method; empty if it has none."""
    function = getattr(attribute, "__func__", attribute)
    if isinstance(function, type):
        return ()
    stored = inspect.getattr_static(function, ATTRIBUTE, ())
    return tuple(stored) if isinstance(stored, (list, tuple)) and all(isinstance(s, ToolSchema) for s in stored) else ()


def declarations_of(owner: type) -> dict[str, tuple[OpenAPISchema | XMLSchema, ...]]:
    """Return a class's decorated methods with their declarations: base classes first, in the order of definition.

    An override without a decorator inherits the declarations, per decorator; an override by something that cannot be
    called (`read = None`) withdraws the method.
    """
    found: dict[str, tuple[OpenAPISchema | XMLSchema, ...]] = {}
    for cls in reversed(owner.__mro__):
        for name, attribute in vars(cls).items():
            if name in found and not _decorates(attribute):
                del found[name]
            elif own := schemas_of(attribute):
                kinds = {type(schema) for schema in own}
                found[name] = (*own, *(s for s in found.get(name, ()) if type(s) not in kinds))
    return found
