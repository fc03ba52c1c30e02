"""One callable method of one tool instance: how it is found, checked against its declarations, and called.

Knows signatures, schemas and elements; knows no registry and runs nothing on its own.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal

from agentkit.checks.spelling import did_you_mean
from agentkit.errors import SchemaError
from agentkit.foreign.absent import suggest_attributes
from agentkit.formats import control
from agentkit.schemas.walk import words
from agentkit.schemas.words import InvalidArguments
from agentkit.tool.arguments import Arguments, offer
from agentkit.tool.declare import BothSchemas, OpenAPISchema, XMLSchema, declarations_of, schemas_of
from agentkit.tool.element import element_of, kebab
from agentkit.tool.identity import digest_of
from agentkit.tool.not_a_tool import advise_decorating, not_a_tool
from agentkit.tool.own_thread import construct
from agentkit.tool.policy import ToolPolicy, policy_of
from agentkit.tool.result import ToolContext
from agentkit.tool.signature import name_of, read_signature
from agentkit.toolspec import ToolSpec

Schemas = tuple[OpenAPISchema | XMLSchema, ...]

FunctionNames = Iterable[str] | Mapping[str, str] | Callable[[str], str | None]
"""Which methods to register, and under which names; see `ToolRegistry.register_tool`."""

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
"""Function names that every provider accepts. Source: the API references of OpenAI and Anthropic."""


@suggest_attributes
@dataclass(frozen=True, slots=True, eq=False)
class BoundTool:
    """One method that a model may call, bound to its instance. Equal only to itself.

    Args:
        name: its registered function name.
        tag: its XML tag; None without `@xml_schema`.
        instance: the tool instance; None for a function.
        method: the bound method or function that is called.
        spec: the tool as models and formats see it.
        schema: the declaration of `@openapi_schema`.
        xml_schema: the declaration of `@xml_schema`; None without it.
        is_async: whether calling it returns an awaitable.
        policy: how it may be run: limits, approval, behaviour after a crash.
        where: its class and method, for messages.
        arguments: its arguments' schema and validator.
        context: the names of the parameters that receive the `ToolContext`.
        xml_only: whether it has only an `@xml_schema`.
    """

    name: str
    tag: str | None
    instance: Any
    method: Callable[..., Any] = field(repr=False)
    spec: ToolSpec = field(repr=False)
    schema: OpenAPISchema
    xml_schema: XMLSchema | None
    is_async: bool = field(repr=False)
    policy: ToolPolicy = field(repr=False)
    where: str
    arguments: Arguments = field(repr=False)
    context: tuple[str, ...] = field(default=(), repr=False)
    xml_only: bool = field(default=False, repr=False)

    @property
    def description(self) -> str:
        """The tool's description for the model."""
        return self.spec.description

    @property
    def timeout(self) -> float | None:
        """Seconds it may take; None uses the processor's setting."""
        return self.policy.timeout

    @property
    def xml_example(self) -> str | None:
        """An example XML call: the declared one, or one with a sample of each required parameter; None without a tag.

        Raises:
            FormatError: XML cannot represent a sample from the schema, such as one with a lone surrogate.
        """
        element = self.spec.element
        if element is None or element.example is not None:
            return element.example if element is not None else None
        from agentkit.formats.teach import example_call

        return example_call("xml", self.spec, [self.spec])

    @property
    def method_name(self) -> str:
        """The method's own name, regardless of the name it is registered under."""
        return self.where.rpartition(".")[2]

    @property
    def origin(self) -> str:
        """The tool's origin, for messages about two tools with the same `where`."""
        return f"{getattr(self.method, '__module__', '?')}.{self.where}"

    @property
    def digest(self) -> str:
        """The digest that a call's approval is bound to, besides name and arguments: see `agentkit.tool.identity`."""
        return digest_of(self.spec, self.method)

    @property
    def how_renamed(self) -> str:
        """Return in words how a program registers it under another name."""
        return (
            "register one of them under another name: "
            f"register_tool(..., {{{self.method_name!r}: 'new_name'}}) or register_function(..., name='new_name')"
        )

    def with_name(self, name: str) -> BoundTool:
        """Return the tool under another name; only for a tool without a tag.

        Raises:
            SchemaError: providers would refuse the name.
        """
        refuse_name(name, self.where)
        return replace(self, name=name, spec=replace(self.spec, name=name))

    def __getitem__(self, key: Literal["instance", "method", "schema"]) -> Any:
        """An entry as in AgentPress: `["instance"]`, `["method"]` (the method's name), `["schema"]`."""
        match key:
            case "instance":
                return self.instance
            case "method":
                return self.method_name
            case "schema":
                xml = None if self.xml_schema is None else replace(self.xml_schema, tag_name=self.tag)
                return self.schema if xml is None else xml if self.xml_only else BothSchemas(self.schema, xml)
            case _:
                raise KeyError(f"a registered tool has the keys 'instance', 'method' and 'schema'; found {key!r}")

    def validate(self, arguments: Mapping[str, Any], *, lenient: bool) -> dict[str, Any]:
        """Turn a model's arguments into typed keyword arguments; the function fills in its own defaults.

        Args:
            arguments: values of JSON types by parameter name.
            lenient: also read text as the declared type (`"5"` as 5, `"a, b"` as a list), for calls that were written
                as text. A declared string is never changed.

        Raises:
            InvalidArguments: they do not match the schema; the message tells the model what is expected.
        """
        return self.arguments.validate(self.name, arguments, lenient=lenient)

    @property
    def takes_context(self) -> bool:
        """True if the method has a parameter for the `ToolContext`."""
        return bool(self.context)

    def invoke(self, kwargs: Mapping[str, Any], context: ToolContext | None) -> Any:
        """Call the method; returns its value, or an awaitable if `is_async`.

        Args:
            kwargs: as returned by `validate`.
            context: passed to the parameters annotated with `ToolContext`; may be None if `takes_context` is False.
        """
        if not self.context:
            return self.method(**kwargs)
        return self.method(**kwargs, **dict.fromkeys(self.context, context))


def looks_like_tool(tool: Any) -> bool:
    """Return True for a class or an instance with methods, False for a function."""
    if isinstance(tool, type) or not callable(tool):
        return True
    return not hasattr(tool, "__name__") and bool(declarations_of(type(tool)))


def bind_methods(tool: Any, function_names: FunctionNames | None, kwargs: Mapping[str, Any]) -> list[BoundTool]:
    """Bind the decorated methods of a class or an instance; see `ToolRegistry.register_tool`."""
    owner = tool if isinstance(tool, type) else type(tool)
    if callable(getattr(owner, "bound_tools", None)):
        return _brought(_instance(tool, owner, kwargs), owner, function_names)
    methods = declarations_of(owner)
    if not methods:
        raise SchemaError(not_a_tool(tool) or advise_decorating(tool, owner))
    chosen = _chosen_methods(function_names, methods, owner)
    instance = _instance(tool, owner, kwargs)
    return [_bind_method(instance, owner, method, name, methods[method]) for method, name in chosen.items()]


def _brought(source: Any, owner: type, function_names: FunctionNames | None) -> list[BoundTool]:
    """The tools of a `ToolSource`, under their names or new ones."""
    tools = {bound.name: bound for bound in source.bound_tools()}
    chosen = _chosen_methods(function_names, tools, owner, "tool")
    return [tools[name] if new is None else tools[name].with_name(new) for name, new in chosen.items()]


def bind_function(
    function: Callable[..., Any], name: str | None = None, policy: Mapping[str, Any] = MappingProxyType({})
) -> BoundTool:
    """Bind a function or a bound method; see `ToolRegistry.register_function`."""
    if not callable(function):
        raise SchemaError(
            f"{function!r} is not a tool; pass a function, a class or instance with decorated methods, or 'module:name'"
        )
    if isinstance(function, type):
        raise SchemaError(f"{name_of(function)} is a class; register it with register_tool({name_of(function)})")
    employer = getattr(function, "__self__", None)
    if inspect.ismethod(function) and callable(getattr(employer, "as_tool", None)):
        raise SchemaError(
            f"{name_of(function)} is not a tool: turn the agent into one with "
            "agent.as_tool('its_name', 'what it is good at')"
        )
    own = getattr(function, "__name__", None)
    if name is None and (own is None or own == "<lambda>"):
        kind = "a lambda" if own else f"a {type(function).__name__} object"
        raise SchemaError(
            f"{kind} has no name that a model could call; use a def, or register_function(..., name='...')"
        )
    _refuse_unbound(function)
    instance = getattr(function, "__self__", None) if inspect.ismethod(function) else None
    owner = None if instance is None else instance if isinstance(instance, type) else type(instance)
    source = _Source(getattr(function, "__func__", function), own or "", owner, instance is not None)
    schemas = declarations_of(owner).get(source.name, ()) if owner is not None else schemas_of(function)
    return _bind(source, function, instance, name, schemas, policy)


def _chosen_methods(
    function_names: FunctionNames | None,
    methods: Iterable[str],
    owner: type,
    what: str = "decorated method",
) -> dict[str, str | None]:
    """Return the methods to register, with their new names; None keeps the declared name."""
    if function_names is None:
        return dict.fromkeys(methods)
    if isinstance(function_names, type):
        raise SchemaError(
            f"function_names is a list of method names, found the class {function_names.__name__}: register each class "
            "with a separate call"
        )
    if callable(function_names):
        renamed = {method: function_names(method) for method in methods}
        return {method: None if name == method else name for method, name in renamed.items() if name is not None}
    if isinstance(function_names, str):
        raise SchemaError(f"function_names is a list of method names; write [{function_names!r}]")
    given: Any = function_names  # a caller may pass anything
    names = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(name, str) for name in names):
        raise SchemaError(f"function_names is a list of method names, found {function_names!r:.60}")
    wanted: dict[str, str | None] = dict(
        function_names if isinstance(function_names, Mapping) else dict.fromkeys(names)
    )
    for name in wanted:
        if name not in methods:
            raise SchemaError(
                f"{name_of(owner)} has no {what} {name!r}; it has {', '.join(map(repr, methods))}"
                f"{did_you_mean(name, methods)}"
            )
    return {method: wanted[method] for method in methods if method in wanted}


def _instance(tool: Any, owner: type, kwargs: Mapping[str, Any]) -> Any:
    if tool is not owner:
        if kwargs:
            raise SchemaError(
                f"register_tool received an instance of {name_of(owner)} and constructor arguments {list(kwargs)}; "
                f"pass the class instead, or construct {name_of(owner)}(...) with them yourself"
            )
        return tool
    try:
        inspect.signature(owner).bind(**kwargs)
    except TypeError as e:
        raise SchemaError(
            f"{name_of(owner)} cannot be constructed with {list(kwargs) or 'no arguments'}: {e}; pass its arguments to "
            f"register_tool({name_of(owner)}, ...), or an instance"
        ) from e
    except ValueError:
        pass  # a C class without a signature: the call below will show
    return construct(owner, kwargs)


@dataclass(frozen=True, slots=True)
class _Source:
    """The origin of a method.

    Args:
        function: the function itself, inside a bound, static or class method.
        name: its name in its class or module.
        owner: its class; None for a function.
        bound: whether its first parameter receives the instance or class.
    """

    function: Callable[..., Any]
    name: str
    owner: type | None
    bound: bool

    @property
    def where(self) -> str:
        return f"{name_of(self.owner)}.{self.name}" if self.owner is not None else name_of(self.function)


def _bind_method(instance: Any, owner: type, method: str, name: str | None, schemas: Schemas) -> BoundTool:
    attribute = inspect.getattr_static(owner, method)
    function = getattr(attribute, "__func__", attribute)
    source = _Source(function, method, owner, not isinstance(attribute, staticmethod))
    if inspect.isfunction(attribute):
        _refuse_without_self(attribute, source.where)
    return _bind(source, getattr(instance, method), instance, name, schemas, {})


def _bind(
    source: _Source,
    method: Callable[..., Any],
    instance: Any,
    new_name: str | None,
    schemas: Schemas,
    policy: Mapping[str, Any],
) -> BoundTool:
    """Check one method against its declarations."""
    where = source.where
    api = _only(OpenAPISchema, schemas, where) or OpenAPISchema()
    xml = _only(XMLSchema, schemas, where)
    signature = read_signature(source.function, where, source.owner, bound=source.bound)
    made = offer(signature, api)
    refuse_control_tokens(made.arguments.schema, where)
    own_name = source.name if made.name is None else made.name
    name = new_name or own_name
    refuse_name(name, where)
    tag = kebab(name) if name != own_name else None
    element = element_of(xml, name, made.arguments.schema, where, tag=tag) if xml is not None else None
    spec = ToolSpec(name, made.description, made.arguments.schema, element)
    _refuse_example(spec, made.arguments, where)
    rules = policy_of({**made.policy, **{k: v for k, v in policy.items() if v is not None}}, instance, where)
    if rules.one_thread and is_async(source.function):
        raise SchemaError(f"{where}: one_thread=True is for a plain function: this one runs on the event loop; use def")
    return BoundTool(
        name=name,
        tag=element.tag if element is not None else None,
        instance=instance,
        method=method,
        spec=spec,
        schema=api,
        xml_schema=xml,
        is_async=is_async(source.function),
        policy=rules,
        where=where,
        arguments=made.arguments,
        context=signature.context,
        xml_only=xml is not None and not any(isinstance(schema, OpenAPISchema) for schema in schemas),
    )


def _refuse_example(spec: ToolSpec, arguments: Arguments, where: str) -> None:
    """Check that a declared example is a call of its own tool; otherwise it would teach the model wrong calls."""
    if spec.element is None or spec.element.example is None:
        return
    from agentkit import formats
    from agentkit.events import CallEnd, CallError

    label = f"{where}: @xml_schema(example=…)"
    found = 0
    for event in formats.parse(spec.element.example, "xml", [spec], in_code="execute"):
        if isinstance(event, CallError):
            raise SchemaError(f"{label} cannot be read: {event.message}")
        if isinstance(event, CallEnd):
            found += 1
            try:
                arguments.validate(spec.name, event.call.arguments, lenient=True)
            except InvalidArguments as e:
                raise SchemaError(f"{label} does not match the tool: {e}") from e
    if not found:
        raise SchemaError(
            f"{label} does not contain a call of <{spec.element.tag}>: found {spec.element.example!r:.100}"
        )


def refuse_name(name: Any, where: str) -> None:
    """Refuse a name that a provider would refuse."""
    if not isinstance(name, str) or not NAME.match(name):
        raise SchemaError(
            f"{where}: {name!r} cannot be a tool's name: providers accept 1 to 64 letters, digits, '_' and '-'; "
            "register it under another name"
        )


def refuse_control_tokens(schema: Mapping[str, Any], where: str) -> None:
    """Refuse control tokens as values: a model that writes one ends its reply, and one in the prompt may end that."""
    for word, place in words(schema):
        if token := control.token_in(word):
            raise SchemaError(
                f"{where}: {place} {word!r} contains {token!r}, which chat templates read as a control token: no model "
                "can write it as a value; use another word"
            )


def _only(kind: type[Any], schemas: Schemas, where: str) -> Any:
    """The only declaration of a kind; None if there is none."""
    found = [schema for schema in schemas if isinstance(schema, kind)]
    if len(found) > 1:
        decorator = "@openapi_schema" if kind is OpenAPISchema else "@xml_schema"
        raise SchemaError(f"{where} has {len(found)} {decorator} decorators; keep one")
    return found[0] if found else None


def is_async(function: Callable[..., Any]) -> bool:
    """Return True if the function itself is async: a sync wrapper around an async function may run it on its own."""
    call = getattr(function, "__call__", None)  # noqa: B004 (of a callable object; it may be async)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _refuse_without_self(function: Callable[..., Any], where: str) -> None:
    """Refuse a method whose first parameter is one of the tool's: it would receive the instance."""
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is None or (first.annotation is not first.empty and first.name != "self"):
        found = f"its first parameter is {first.name!r}" if first is not None else "it has no parameters"
        raise SchemaError(f"{where} has no 'self': {found}; write 'self' first, or decorate it with @staticmethod")


def _refuse_unbound(function: Callable[..., Any]) -> None:
    """`Files.read` instead of `Files().read`."""
    if not inspect.isfunction(function):
        return
    first = next(iter(inspect.signature(function).parameters), None)
    owner, _, _ = function.__qualname__.rpartition(".")
    if first == "self" and owner and not owner.endswith("<locals>"):
        raise SchemaError(
            f"{name_of(function)} is a method without an instance; register {owner.rpartition('.')[2]}() or "
            f"{owner.rpartition('.')[2]}().{function.__name__}"
        )
