"""Rules by which calls need no person's approval: a tool, and patterns of its arguments. Pure.

A rule covers only what it plainly says. Whatever cannot be read or compared with certainty is not covered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from agentkit.checks.bounds import TEXT, Bound, Bounds, instance, or_none, refuse
from agentkit.checks.spelling import did_you_mean, takes
from agentkit.errors import ConfigError
from agentkit.foreign import argument_names
from agentkit.messages import ToolCall
from agentkit.schemas.walk import Schema, type_of, types_of
from agentkit.threads.store import Body
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.registry import ToolRegistry

ALLOWED: Final = "allowed"
"""The key of a thread's rules in its metadata."""

_STAR: Final = re.compile(r"[A-Za-z0-9_./:=@,+ -]*")
"""The characters that `*` stands for: none has a meaning for a shell, and none looks like another."""

_PIECES: Final = re.compile(r"\\([*\\])|(\*)")

_BOUNDS: Final[Bounds] = {
    "tool": Bound(lambda value: isinstance(value, str) and value != "", "the name of a tool"),
    "arguments": or_none(
        instance(Mapping, "patterns by the name of the argument, such as {'command': 'git status *'}"), "for any"
    ),
    "digest": TEXT,
}


@takes(others=argument_names.ALLOW_RULE)
@dataclass(frozen=True)
class AllowRule:
    r"""Calls that need no approval.

    In the pattern of a string, `*` stands for any number of the characters `A-Z a-z 0-9 _ . / : = @ , + -` and space.
    A string with `..` in it is only covered by a pattern without `*`. `\*` is a star, `\\` a backslash.

    Args:
        tool: the tool's name.
        arguments: what each argument must be: a pattern for a string, and the same JSON value for anything else. A call
            with other arguments, or without one of these, is not covered. None: any arguments.
        digest: the tool's `BoundTool.digest`; a changed tool is not covered. `ThreadManager.allow` fills it in.

    Raises:
        ConfigError: a value is not JSON, or a pattern has both `*` and `..`.

    >>> rule = AllowRule("run", {"command": "git log *"})
    >>> rule.covers(ToolCall("1", "run", {"command": "git log --oneline -5"}))
    True
    >>> rule.covers(ToolCall("2", "run", {"command": "git log; rm -r ."}))
    False
    """

    tool: str
    arguments: Mapping[str, Any] | None = None
    digest: str = ""

    def __post_init__(self) -> None:
        refuse("AllowRule", {name: getattr(self, name) for name in _BOUNDS}, _BOUNDS)
        if self.arguments is None:
            return
        try:
            own = json.loads(json.dumps(dict(self.arguments), allow_nan=False))  # nobody else can change it
        except (TypeError, ValueError, RecursionError) as e:
            raise ConfigError(f"AllowRule(arguments=…): expected values of JSON types: {e}") from e
        if own.keys() != self.arguments.keys():
            raise ConfigError("AllowRule(arguments=…): expected the names of arguments, which are strings")
        object.__setattr__(self, "arguments", own)
        for name, pattern in own.items():
            if isinstance(pattern, str) and len(_literals(pattern)) > 1 and ".." in pattern:
                raise ConfigError(f"AllowRule: the pattern of {name!r} has both '*' and '..', which leads anywhere")

    @classmethod
    def exactly(cls, call: ToolCall) -> AllowRule:
        """Return the rule for calls of this tool with just these arguments."""
        return cls(call.name, {name: _quoted(value) for name, value in call.arguments.items()})

    def covers(self, call: ToolCall, values: Mapping[str, Any] | None = None) -> bool:
        """Return True if the rule is about this call, whatever the tool's digest.

        Args:
            call: the call.
            values: its arguments as the tool gets them; by default as they were written.
        """
        if call.name != self.tool or self.arguments is None:
            return call.name == self.tool
        read = call.arguments if values is None else values
        return call.arguments.keys() == self.arguments.keys() and all(
            _matches(pattern, _found(call.arguments[name], read.get(name))) for name, pattern in self.arguments.items()
        )

    @cached_property
    def key(self) -> str:
        """Return the rule as text, without the digest: the same for the same rule."""
        return json.dumps([self.tool, self.arguments], sort_keys=True)

    def to_json(self) -> dict[str, Any]:
        """Return it as it is stored."""
        return {"tool": self.tool, "arguments": self.arguments, "digest": self.digest}

    def __str__(self) -> str:
        if self.arguments is None:
            return f"{self.tool}: any arguments"
        said = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in self.arguments.items())
        return f"{self.tool}: {said or 'no arguments'}"


def rules_in(metadata: Body) -> tuple[AllowRule, ...]:
    """Return the rules in a thread's metadata, without those that cannot be read or have no digest."""
    return tuple(rule for rule in map(_rule, _stored(metadata)) if rule is not None)


def _stored(metadata: Body) -> list[Any]:
    found = metadata.get(ALLOWED)
    return found if isinstance(found, list) else []


def with_rules(metadata: Body, rules: Iterable[AllowRule]) -> dict[str, Any]:
    """Return metadata with exactly these rules; what cannot be read is kept."""
    rest = {name: value for name, value in metadata.items() if name != ALLOWED}
    stored = [one for one in _stored(metadata) if _rule(one) is None] + [rule.to_json() for rule in rules]
    return {**rest, ALLOWED: stored} if stored else rest


def bound_to(rule: AllowRule | str, registry: ToolRegistry) -> AllowRule:
    """Return a rule, or that for all calls of a tool, for the tool as it is now. A digest that it has is kept.

    Raises:
        ConfigError: there is no such tool, or it can have no call that the rule covers.
    """
    rule = AllowRule(rule) if isinstance(rule, str) else rule
    if rule.digest:
        return rule
    tool = registry.get_tool(rule.tool)
    if tool is None:
        there = ", ".join(map(repr, registry.tools)) or "none: pass registry=agent.registry"
        hint = did_you_mean(rule.tool, registry.tools)
        raise ConfigError(f"there is no tool {rule.tool!r} to allow{hint} (tools: {there})")
    _refuse_unmatched(rule, tool.spec.parameters)
    return replace(rule, digest=tool.digest)


def _refuse_unmatched(rule: AllowRule, schema: Schema) -> None:
    """Raise ConfigError if no valid call of a tool with these parameters is covered by the rule."""
    patterns, known = rule.arguments or {}, schema.get("properties", {})
    for name in (*patterns, *schema.get("required", ())) if rule.arguments is not None else ():
        if name not in patterns:
            raise ConfigError(f"AllowRule: {name!r} is missing, and a rule names all arguments of a call: {rule}")
        if name not in known and schema.get("additionalProperties") is False:
            raise ConfigError(f"AllowRule: {rule.tool} has no argument {name!r}{did_you_mean(name, known)}")
        kinds, kind = types_of(known.get(name, {}), schema), type_of(patterns[name])
        if kinds and kind not in kinds and (kind, "integer" in kinds) != ("number", True):
            why = "; a pattern matches only strings" if kind == "string" else f", found {patterns[name]!r}"
            raise ConfigError(f"AllowRule: {name!r} is of type {' or '.join(sorted(kinds))}{why}: {rule}")


def is_allowed(rules: Iterable[AllowRule], call: ToolCall, tool: BoundTool) -> bool:
    """Return True if one of the rules covers a call, and the tool is still the one that it was made for."""
    valid = [rule for rule in rules if rule.tool == tool.name and rule.digest == tool.digest]
    if not valid:
        return False
    try:
        values = tool.validate(call.arguments, lenient=True)
    except Exception:  # noqa: BLE001 - they do not fit, or a validator of the tool's author fails: a person decides
        return False
    return any(rule.covers(call, values) for rule in valid)


def _rule(stored: object) -> AllowRule | None:
    try:
        rule = AllowRule(**stored)  # type: ignore[arg-type]  # anything may be stored
    except (ConfigError, TypeError):
        return None
    return rule if rule.digest else None


def _found(written: object, read: object) -> object:
    """Return what a pattern is compared with: a text that the tool gets as another JSON value is that value."""
    return read if isinstance(written, str) and type(read) in (str, int, float, bool, list, dict) else written


def _matches(pattern: object, value: object) -> bool:
    if isinstance(pattern, str):
        return isinstance(value, str) and _fits(pattern, value)
    return _same(pattern, value)


def _same(one: object, other: object) -> bool:
    """Return True for two equal JSON values; 1 and 1.0 are one number, as in JavaScript, which True is not."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _fits(pattern: str, text: str) -> bool:
    """Compare in linear time: the first place of each literal is as good as any later one."""
    first, *others = _literals(pattern)
    if not others:
        return text == first
    *middle, last = others
    end = len(text) - len(last)
    if ".." in text or end < len(first) or not (text.startswith(first) and text.endswith(last)):
        return False
    at = len(first)
    for literal in middle:
        place = text.find(literal, at, end)
        if place < 0 or not _STAR.fullmatch(text, at, place):
            return False
        at = place + len(literal)
    return _STAR.fullmatch(text, at, end) is not None


def _literals(pattern: str) -> list[str]:
    """Return the texts between the stars of a pattern."""
    pieces, at = [""], 0
    for found in _PIECES.finditer(pattern):
        pieces[-1] += pattern[at : found.start()] + (found[1] or "")
        if found[2]:
            pieces.append("")
        at = found.end()
    pieces[-1] += pattern[at:]
    return pieces


def _quoted(value: object) -> object:
    return re.sub(r"([*\\])", r"\\\1", value) if isinstance(value, str) else value
