"""The registered tools, by function name and by XML tag: both keys lead to the same `BoundTool`.

Every error in a definition is found here, at registration. Registries share nothing and there is no global one. Runs no
tool: `agentkit.processor` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, Unpack

from agentkit import formats
from agentkit.checks.spelling import did_you_mean, methods_take, takes, unknown
from agentkit.errors import ConfigError, SchemaError
from agentkit.foreign import argument_names
from agentkit.foreign.absent import suggest_attributes
from agentkit.tool.policy import PolicyKeywords

if TYPE_CHECKING:
    from agentkit.formats.format import Format
    from agentkit.tool.bound_tool import BoundTool, FunctionNames
    from agentkit.tool.tool_index import ToolIndex
    from agentkit.toolspec import ToolSpec


@suggest_attributes
@methods_take
class ToolRegistry:
    """The tools that a model may call.

    >>> def add(a: int, b: int) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> ToolRegistry(add).tools["add"].validate({"a": 1, "b": 2}, lenient=False)
    {'a': 1, 'b': 2}

    Args:
        tools: whatever `register` accepts.
    """

    @takes(others=argument_names.REGISTRY)
    def __init__(self, *tools: Any) -> None:
        self._all: dict[str, BoundTool] = {}  # by function name, including those that have only a tag
        self._by_name: dict[str, BoundTool] = {}
        self._by_tag: dict[str, BoundTool] = {}
        self._index: ToolIndex | None = None  # made at the first search
        self.register(*tools)

    @property
    def tools(self) -> Mapping[str, BoundTool]:
        """The tools by function name, except those declared only by `@xml_schema`.

        A read-only live view.
        """
        return _Tools(self._by_name, "tool")

    @property
    def xml_tools(self) -> Mapping[str, BoundTool]:
        """The tools that have an `@xml_schema`, by tag; a read-only live view."""
        return _Tools(self._by_tag, "tag")

    def register(self, *tools: Any) -> tuple[BoundTool, ...]:
        """Register tools in any form.

        Args:
            tools: functions; instances and classes with decorated methods; `"module:Class"` or `"module:function"`;
                `BoundTool`s of another registry; and lists of these.

        Raises:
            SchemaError: a definition is wrong, or a name is taken.
            ConfigError: a reference does not resolve to a tool.
        """
        return self._add([bound for tool in tools for bound in _bound(tool)])

    def register_tool(
        self, tool: Any, /, function_names: FunctionNames | None = None, **kwargs: Any
    ) -> tuple[BoundTool, ...]:
        """Register a class's decorated methods, all on the same instance.

        Args:
            tool: a class, which is called with `kwargs`, or an instance.
            function_names: which methods to register: a list of their names; or a mapping from method names to tool
                names; or a function that maps each method name to a tool name (`"left_{}".format`), or to None to
                omit it. None registers all methods under their own names. A renamed tool's tag is its new name in
                kebab-case.
            kwargs: arguments for the constructor, with any names.

        Returns:
            The new tools, in the order of definition.

        Raises:
            SchemaError: a definition is wrong, no method is decorated, a name in `function_names` is not a decorated
                method, or a name or tag is taken. In that case nothing is registered.
        """
        from agentkit.tool.bound_tool import bind_methods

        return self._add(bind_methods(tool, function_names, kwargs))

    @takes(PolicyKeywords, others=argument_names.OPENAPI_SCHEMA, error=SchemaError)
    def register_function(
        self, function: Callable[..., Any], name: str | None = None, **policy: Unpack[PolicyKeywords]
    ) -> BoundTool:
        """Register a function or a bound method, decorated or not.

        Args:
            function: needs type hints; its docstring describes it.
            name: the tool's name; by default the function's own.
            policy: how the tool may be run, see `ToolPolicy`; overrides the decorator's keywords, None keeps those.

        Raises:
            SchemaError: its definition is wrong, or its name or tag is taken.
        """
        from agentkit.tool.bound_tool import bind_function

        return self._add([bind_function(function, name, policy)])[0]

    def unregister(self, name: str) -> BoundTool:
        """Remove a tool by its function name, together with its tag.

        Raises:
            SchemaError: there is no such tool.
        """
        if name not in self._all:
            raise SchemaError(_absent(name, self._all))
        bound = self._all.pop(name)
        self._index = None
        self._by_name.pop(name, None)
        if bound.tag is not None:
            del self._by_tag[bound.tag]
        return bound

    def plus(self, tool: BoundTool) -> Self:
        """A copy of this registry with one more tool.

        Raises:
            SchemaError: the tool's name or tag is taken.
        """
        other = copy(self)
        other._all, other._by_name, other._by_tag = dict(self._all), dict(self._by_name), dict(self._by_tag)
        other._add([tool])
        return other

    def get_tool(self, name: str) -> BoundTool | None:
        """The tool with this function name, even if declared only by `@xml_schema`; None if there is none."""
        return self._all.get(name)

    def get_xml_tool(self, tag: str) -> BoundTool | None:
        """The tool with this tag; None if there is none."""
        return self._by_tag.get(tag)

    def specs(self, names: Iterable[str] | None = None) -> tuple[ToolSpec, ...]:
        """The tools as models and formats see them, in order of registration, or of `names`.

        Raises:
            SchemaError: one of `names` is not registered.
        """
        return tuple(bound.spec for bound in self._chosen_tools(names))

    def offered_specs(self, format: str | Format | None) -> tuple[ToolSpec, ...]:
        """The tools to offer to a model; those declared only by `@xml_schema` only if it writes such tags.

        Args:
            format: the text format of the model's calls; None for native calls.

        Raises:
            FormatError: no format has that name.
        """
        if format is not None and formats.get(format).tagged:
            return self.specs()
        return tuple(bound.spec for bound in self._by_name.values())

    def search(self, text: str, most: int = 10, format: str | Format | None = None) -> tuple[ToolSpec, ...]:
        """Search the tools that can be offered to a model, by the words of their names, descriptions and parameters.

        >>> def weather(city: str) -> str:
        ...     "The weather in a city."
        ...     return "sunny"
        >>> [tool.name for tool in ToolRegistry(weather).search("How is the weather in Oslo?")]
        ['weather']

        Args:
            text: the words, in any order; at most 20,000 characters of it are searched.
            most: how many tools are returned at most, 1 or more.
            format: the text format of the model's calls; None for native calls.

        Returns:
            The tools that share a word with the text, best match first.

        Raises:
            FormatError: no format has that name.
        """
        from agentkit.tool.tool_index import ToolIndex

        if self._index is None:
            self._index = ToolIndex(self.specs())
        offered = {spec.name: spec for spec in self.offered_specs(format)}
        return tuple(islice((offered[name] for name in self._index.find(text) if name in offered), most))

    def get_openapi_schemas(self, flavour: str = "chat", names: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """The tools in the form of a provider's API.

        Args:
            flavour: `chat` (OpenAI chat completions and compatible servers), `responses`, `strict` (chat completions in
                strict mode; see `strict_report`), `anthropic`, `gemini`, or `mcp`.
            names: which tools; None for all except those declared only by `@xml_schema`.

        Raises:
            ConfigError: there is no such flavour.
            SchemaError: one of `names` is not registered.
        """
        from agentkit.schemas.flavours import FLAVOURS

        if flavour not in FLAVOURS:
            raise ConfigError(unknown("flavour of schemas", str(flavour), FLAVOURS, argument_names.FLAVOURS))
        return [FLAVOURS[flavour](spec) for spec in (self.offered_specs(None) if names is None else self.specs(names))]

    def strict_report(self) -> dict[str, tuple[str, ...]]:
        """Return the losses in OpenAI's strict mode, by tool name; only of tools that lose anything."""
        from agentkit.schemas.flavours import openai_strict

        reports = {name: openai_strict(bound.spec)[1] for name, bound in self._by_name.items()}
        return {name: report for name, report in reports.items() if report}

    def get_xml_examples(self) -> list[str]:
        """An example XML call for each tag, in order of registration: the declared example, or a generated one."""
        return [bound.xml_example for bound in self._by_tag.values() if bound.xml_example is not None]

    def _chosen_tools(self, names: Iterable[str] | None) -> list[BoundTool]:
        if names is None:
            return list(self._all.values())
        if isinstance(names, str):
            raise SchemaError(f"names={names!r}: expected a list of names: names=[{names!r}]")
        chosen = list(names)
        for name in chosen:
            if name not in self._all:
                raise SchemaError(_absent(name, self._all))
        return [self._all[name] for name in chosen]

    def _add(self, tools: Iterable[BoundTool]) -> tuple[BoundTool, ...]:
        """Add all of them, or none."""
        new = tuple(tools)
        names, tags = dict(self._all), dict(self._by_tag)
        for bound in new:
            _take(names, bound.name, bound, "function name")
            if bound.tag is not None:
                _take(tags, bound.tag, bound, "XML tag")
        self._index = None
        self._all.update(names)
        self._by_name.update((name, bound) for name, bound in names.items() if not bound.xml_only)
        self._by_tag.update(tags)
        return new


def _take(table: dict[str, BoundTool], key: str, bound: BoundTool, what: str) -> None:
    if key not in table:
        table[key] = bound
        return
    new, old = bound.where, table[key].where
    if bound.method == table[key].method:
        raise SchemaError(f"{new}: the {what} {key!r} is taken by the same function: it was passed twice; remove one")
    if new == old:  # two instances of one class, or two classes with the same name
        new, old = bound.origin, table[key].origin
    raise SchemaError(f"{new}: the {what} {key!r} is taken by {old}; {bound.how_renamed}")


def _bound(tool: Any) -> tuple[BoundTool, ...]:
    """The tools from anything that `register` accepts."""
    from agentkit.tool.bound_tool import BoundTool, bind_function, bind_methods, looks_like_tool
    from agentkit.tool.declare import declarations_of

    if isinstance(tool, BoundTool):
        return (tool,)
    if isinstance(tool, str):
        return _bound(_load(tool))
    if isinstance(tool, (list, tuple)) and not declarations_of(type(tool)):
        return tuple(bound for one in tool for bound in _bound(one))
    return tuple(bind_methods(tool, None, {})) if looks_like_tool(tool) else (bind_function(tool),)


def _load(reference: str) -> Any:
    """Import the object that a reference names; the error for any other string suggests a reference."""
    if any(map(str.isspace, reference)):
        raise ConfigError(
            f"{reference!r:.100} is not a tool: pass the function itself, tools=[add], or 'module:function'; "
            "pass instructions as system='…'"
        )
    if reference.isidentifier():
        raise ConfigError(
            f"{reference!r} is not a tool: pass the function or class itself, tools=[{reference}], or its module and "
            f"name, 'module:{reference}'"
        )
    from agentkit.tool.references import load

    return load(reference)


def _absent(name: object, names: Iterable[str], what: str = "tool") -> str:
    known = list(names)
    listed = ", ".join(map(repr, known)) or "none"
    return f"no {what} is registered as {name!r} (registered: {listed}){did_you_mean(str(name), known)}"


class _Tools(Mapping[str, "BoundTool"]):
    """A read-only view of a registry's tools; writing to it raises an error with the right call."""

    def __init__(self, tools: Mapping[str, BoundTool], what: str) -> None:
        self._tools, self._what = tools, what

    def __getitem__(self, name: str) -> BoundTool:
        if name not in self._tools:
            raise KeyError(_absent(name, self._tools, self._what) + self._elsewhere(name))
        return self._tools[name]

    def _elsewhere(self, name: str) -> str:
        """The name a method is registered under, if it was looked up by its own name."""
        found = next((key for key, bound in self._tools.items() if bound.method_name == name), None)
        return "" if found is None else f"; the method {name!r} is registered as {found!r}, the name in its schema"

    def get(self, name: str, default: Any = None) -> Any:
        return self._tools.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return repr(dict(self._tools))

    def __setitem__(self, name: str, tool: object) -> None:
        raise TypeError(f"cannot set {name!r}: this view is read-only; write registry.register(…) or register_tool(…)")

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"cannot delete {name!r}: this view is read-only; write registry.unregister({name!r})")
