"""Tools written for agentkit in a rollout: a class, of which each trajectory has an instance; or something stateless.

Bound and checked once, on an empty prototype of the class; each trajectory's instance is only put in its place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from time import perf_counter
from types import MappingProxyType
from typing import Any, Final

from agentkit.checks.bounds import instance, refuse
from agentkit.errors import ConfigError
from agentkit.processor.tool_run import in_a_thread
from agentkit.rollout.tools.call_signatures import refuse_misfit, refuse_unknown
from agentkit.rollout.tools.per_trajectory import HOOKS, RolloutTool, SharedByAll
from agentkit.tool.bound_tool import BoundTool, FunctionNames, bind_function, bind_methods, looks_like_tool
from agentkit.tool.declare import declarations_of
from agentkit.tool.own_thread import construct
from agentkit.tool.references import load
from agentkit.tool.result import ToolResult
from agentkit.tool.signature import name_of

_NO_TOOLS: Final[Mapping[str, BoundTool]] = MappingProxyType({})
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

_SHAPES: Final = (
    "agentkit.interop.verl.verl_shape:VerlShaped",
    "agentkit.interop.open_instruct.open_instruct_shape:InstructShaped",
)
"""The shapes of other systems' tools: classes that recognise such a tool, and make a `RolloutTool` of it.

By name: a bridge to another system may import this package, and is loaded with the first tool.
"""


def as_rollout_tool(tool: Any, config: Mapping[str, Any] = _NOTHING, names: FunctionNames | None = None) -> RolloutTool:
    """Anything that a rollout can use as a tool.

    Args:
        tool: a class with decorated methods, of which each trajectory gets an instance; a function, or an instance
            without state, which all trajectories share; a class or an object of verl's or open-instruct's shape;
            `"module:name"` of these; or a `RolloutTool`.
        config: keyword arguments of the class's constructor, the same for all trajectories.
        names: which methods, and under which names; see `ToolRegistry.register_tool`.

    Raises:
        SchemaError: a definition is wrong.
        ConfigError: it is none of these, or an instance that has to be one for each trajectory.
    """
    refuse("as_rollout_tool", {"config": config}, {"config": instance(Mapping, "the constructor's arguments by name")})
    if isinstance(tool, str):
        tool = load(tool)
    if (shape := shape_of(tool)) is not None:
        if names is not None:
            raise ConfigError(f"{_called(tool)} is one tool with its own name; remove names")
        return shape(tool, config=config)
    if isinstance(tool, type):
        return DecoratedTool(tool, config, names)
    if config:
        raise ConfigError(f"{_called(tool)} is not a class, so there is nothing to construct with {list(config)}")
    if all(hasattr(tool, member) for member in ("name", "tools", "instance", "check")):
        return tool  # type: ignore[no-any-return]  # a RolloutTool
    return StatelessTool(tool, names)


def shape_of(tool: Any) -> Callable[..., RolloutTool] | None:
    """Find the class that makes a `RolloutTool` of a tool in another system's shape; None if it has no such shape."""
    return next((shape for shape in map(load, _SHAPES) if shape.recognises(tool)), None)


class DecoratedTool:
    """A class with decorated methods: a new instance for each trajectory.

    Args:
        tool: the class. Its methods `create`, `calc_reward` and `release`, if it has them, are called with the sample's
            keyword arguments; without `create`, those go to the constructor.
        config: keyword arguments of the constructor; those of a sample override them.
        names: which methods, and under which names.

    Raises:
        SchemaError: a definition is wrong.
    """

    def __init__(self, tool: type, config: Mapping[str, Any] = _NOTHING, names: FunctionNames | None = None) -> None:
        if callable(getattr(tool, "bound_tools", None)):
            raise ConfigError(
                f"{name_of(tool)} finds its tools when it is constructed; pass an instance, which all trajectories "
                "share"
            )
        self.kind = tool
        self.config = dict(config)
        self.tools: Mapping[str, BoundTool] = {b.name: b for b in bind_methods(_empty(tool), names, {})}
        self.name = next(iter(self.tools))
        self.hooks = frozenset(_hooks(tool))
        self._signatures = _signatures(tool, self.hooks)
        constructor = self._signatures["constructor"]
        if "create" in self.hooks:
            refuse_misfit(constructor, name_of(tool), **self.config)
        elif constructor is not None:  # a sample may tell what is missing
            refuse_unknown(constructor, name_of(tool), self.config)

    def __repr__(self) -> str:
        return f"DecoratedTool({name_of(self.kind)})"

    def instance(self, trajectory_id: str) -> _Instance:
        """A new instance; `create` constructs it."""
        return _Instance(self)

    def check(self, kwargs: Mapping[str, Any]) -> None:
        """Refuse keyword arguments, by phase, that do not fit; those of `execute` are checked for each function.

        Raises:
            ConfigError: says which, and what it takes.
        """
        create: Mapping[str, Any] = kwargs.get("create", _NOTHING)
        constructor = self.config if "create" in self.hooks else {**self.config, **create}
        kind = name_of(self.kind)
        refuse_misfit(self._signatures["constructor"], kind, **constructor)
        for hook in HOOKS:
            given: Mapping[str, Any] = kwargs.get(hook, _NOTHING)
            if hook in self.hooks:
                refuse_misfit(self._signatures[hook], f"{kind}.{hook}", **given)
            elif given and hook != "create":
                raise ConfigError(
                    f"{kind} has no method {hook!r}, so {hook}_kwargs {list(given)} are unused; write "
                    f"`def {hook}(self, {', '.join(given)})` there, or remove them"
                )


class _Instance:
    """One trajectory's instance of a class."""

    __slots__ = ("_box", "_of", "constructing", "tools")

    def __init__(self, of: DecoratedTool) -> None:
        self._of = of
        self._box: Any = None
        self.constructing = 0.0
        """Seconds for which its constructor held the event loop."""
        self.tools: Mapping[str, BoundTool] = _NO_TOOLS

    async def create(self, **kwargs: Any) -> ToolResult | None:
        """Construct it, and call its `create`, if it has one."""
        of = self._of
        began = perf_counter()
        if "create" not in of.hooks:
            self._place(construct(of.kind, {**of.config, **kwargs}))
            self.constructing = perf_counter() - began
            return None
        self._place(construct(of.kind, of.config))
        self.constructing = perf_counter() - began
        told = await in_a_thread(self._box.create, **kwargs)
        return None if told is None else ToolResult.of(told)

    async def calc_reward(self, **kwargs: Any) -> float | None:
        """The class's final reward; None without such a method."""
        if "calc_reward" not in self._of.hooks:
            return None
        given: float | None = await in_a_thread(self._box.calc_reward, **kwargs)
        return given

    async def release(self, **kwargs: Any) -> None:
        """Call the class's `release`; nothing if it has none, or nothing was constructed."""
        box, self._box, self.tools = self._box, None, _NO_TOOLS
        if box is not None and "release" in self._of.hooks:
            await in_a_thread(box.release, **kwargs)

    def _place(self, box: Any) -> None:
        self._box = box
        self.tools = _Rebound(self._of.tools, box)


class _Rebound(Mapping[str, BoundTool]):
    """A class's tools on one instance; each is bound when it is first looked up."""

    __slots__ = ("_bound", "_box", "_of")

    def __init__(self, of: Mapping[str, BoundTool], box: Any) -> None:
        self._of, self._box = of, box
        self._bound: dict[str, BoundTool] = {}

    def __getitem__(self, name: str) -> BoundTool:
        bound = self._bound.get(name)
        if bound is None:
            of = self._of[name]
            bound = replace(of, instance=self._box, method=getattr(self._box, of.method_name))
            rule: Any = of.policy.requires_approval
            if getattr(rule, "__self__", None) is of.instance:  # a method of the prototype
                bound = replace(bound, policy=replace(of.policy, requires_approval=getattr(self._box, rule.__name__)))
            self._bound[name] = bound
        return bound

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)


class StatelessTool(SharedByAll):
    """A function, or an instance without state: all trajectories share it.

    Args:
        tool: a function, an instance with decorated methods, or a source of tools.
        names: which methods, and under which names.

    Raises:
        SchemaError: a definition is wrong.
        ConfigError: the instance has a method for the beginning or the end of a trajectory.
    """

    def __init__(self, tool: Any, names: FunctionNames | None = None) -> None:
        if looks_like_tool(tool):
            if hooks := _hooks(type(tool)):
                kind = name_of(type(tool))
                raise ConfigError(
                    f"{kind} has {' and '.join(hooks)}, which are for one trajectory, but all would share this "
                    f"instance; pass the class {kind} itself, and its constructor's arguments as config"
                )
            bound = bind_methods(tool, names, {})
        else:
            bound = [bind_function(tool)]
        self.tools: Mapping[str, BoundTool] = {b.name: b for b in bound}
        self.name = next(iter(self.tools), _called(tool))

    def check(self, kwargs: Mapping[str, Any]) -> None:
        """Refuse arguments that only an instance for each trajectory could take.

        Raises:
            ConfigError: says what.
        """
        for hook in HOOKS:
            if given := kwargs.get(hook):
                raise ConfigError(
                    f"{self.name} is shared by all trajectories and takes no {hook}_kwargs, found {list(given)}; "
                    "write it as a class that takes them, or remove them"
                )


def _signatures(kind: type, hooks: Iterable[str]) -> dict[str, inspect.Signature | None]:
    """The signatures of a class's constructor and hooks."""
    empty = _empty(kind)
    functions = {"constructor": kind, **{hook: getattr(empty, hook) for hook in hooks}}
    return {name: _signature(function) for name, function in functions.items()}


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # in C, without a signature
        return None


def _empty(kind: type) -> Any:
    """An instance whose constructor did not run: its methods can be bound and looked at, not called."""
    try:
        return object.__new__(kind)
    except TypeError as e:
        raise ConfigError(f"{name_of(kind)} cannot be a tool of a rollout: {e}") from e


def _hooks(kind: type) -> tuple[str, ...]:
    """List the hooks that a class has, plain or async; a method that the model may call is not one."""
    tools = declarations_of(kind)
    return tuple(hook for hook in HOOKS if hook not in tools and callable(getattr(kind, hook, None)))


def _called(tool: Any) -> str:
    return name_of(tool) if callable(tool) else type(tool).__name__
