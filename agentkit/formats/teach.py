"""The prompt section that teaches a model a format: the tools, the rules, an example call of each tool.

All of it is generated from the declarations and the tools' schemas. Its order and its words were chosen by trials with
live models (docs/prompts.md). Pure; knows no registry and no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from agentkit.errors import FormatError
from agentkit.formats.bodies.kinds import KINDS
from agentkit.formats.catalog import CATALOG
from agentkit.formats.engine import get
from agentkit.formats.format import Format
from agentkit.formats.identity_cache import IdentityCache
from agentkit.formats.kind import IN_JSON_STRINGS
from agentkit.formats.quarantined_text import DeclarationQuarantine
from agentkit.formats.reserved_tags import refuse_reserved
from agentkit.formats.tool_list import describe_tool
from agentkit.formats.write import render_calls
from agentkit.messages import ToolCall
from agentkit.schemas import walk
from agentkit.schemas.typed import values
from agentkit.toolspec import OutputSchema, ToolSpec

_INTRODUCTION = (
    "You can call the tools listed here. When one of them can do what is asked, call it: do not work out, guess or "
    "make up its result yourself. To call it, write the call exactly as the examples show, and stop. It is executed, "
    "and the next message brings its result."
)
_OUTPUT = "Your final reply must be one JSON value that fits this JSON Schema:"
_OUTPUT_RULES = (
    "Write nothing but the JSON: no words before or after it, no code fence.",
    IN_JSON_STRINGS,
)
_OUTPUT_AFTER_CALLS = "A reply that calls a tool is not the final one and needs no JSON of this kind."

_EXAMPLES = 2_400  # characters of all example calls, about 600 tokens: some 20 small tools
_DEPTH = 4  # levels of a nested example: a recursive schema ends there


def render_prompt(
    format: str | Format, tools: Sequence[ToolSpec], *, tool_choice: str = "auto", parallel: bool | None = None
) -> str:
    """Return the section of the system message that makes a model call these tools in this format.

    Args:
        format: the format, by name or declaration.
        tools: the offered tools.
        tool_choice: `auto`, `required`, `none`, or the name of the tool that must be called.
        parallel: False requests at most one call per reply.

    Returns:
        The section; empty if there are no tools or `tool_choice` is `none`. It is made once for the same tool objects
        and remembered, since most requests of a run offer the same ones. The tools' descriptions are
        quarantined in it: regardless of their author, they cannot end the list of tools or begin a turn.

    Raises:
        FormatError: a tool has a tag that the format uses for itself; or a tool's or parameter's name, or a value of an
            `enum` or `const`, contains text that a format or a template reads as markup.
    """
    declared = get(format)
    if not tools or tool_choice == "none":
        return ""
    make = partial(_prompt, declared, tools, tool_choice, parallel)
    return _made.get((declared,), tools, make, (tool_choice, parallel))


_made: IdentityCache[str] = IdentityCache()


def _prompt(declared: Format, tools: Sequence[ToolSpec], tool_choice: str, parallel: bool | None) -> str:
    refuse_reserved(declared, tools)
    quarantined = DeclarationQuarantine(declared, tools)
    shown = [quarantined.tool(tool) for tool in tools]
    kinds = [(KINDS[type(part)], part) for part in declared.call]
    own = next((kind.listing(part, shown) for kind, part in kinds if kind.listing is not None), None)
    rules = [rule for kind, _ in kinds for rule in kind.taught]
    lines = [
        "# Tools", "", _INTRODUCTION, "", own or "\n\n".join(map(describe_tool, shown)), "",
        "## How to call", "", *(f"- {rule}" for rule in (*rules, *_conduct(tool_choice, parallel))), "",
        _examples(declared, shown),  # last: small models repeat the end of the system message
    ]  # fmt: skip
    return "\n".join(lines)


def render_output_prompt(output: OutputSchema, *, tools: bool = False) -> str:
    """Return the section of the system message that makes a model's final reply JSON of this schema.

    Args:
        output: the schema of the reply.
        tools: whether the model has tools to call first.
    """
    rules = (*_OUTPUT_RULES, *((_OUTPUT_AFTER_CALLS,) if tools else ()))
    schema = DeclarationQuarantine(CATALOG[0]).schema(output.schema, output.name)
    return "\n".join(["# Output", "", _OUTPUT, "", values.dump(schema), "", *(f"- {rule}" for rule in rules)])


def _conduct(tool_choice: str, parallel: bool | None) -> list[str]:
    rules = [
        "Use only these tools, with all their required parameters.",
        "Code and text that a tool takes go into its call, not into the reply.",
    ]
    if parallel is False:
        rules.append("Make at most one call in a reply.")
    else:
        rules.append("Calls that do not depend on each other go into one reply, one after the other.")
    if tool_choice == "required":
        rules.append("You must call at least one tool in this reply.")
    elif tool_choice != "auto":
        rules.append(f"You must call the tool {tool_choice} in this reply.")
    return rules


# ---------------------------------------------------------------- the example calls


def _examples(format: Format, shown: Sequence[ToolSpec]) -> str:
    """Return example calls, as many as `_EXAMPLES` allows: tools with a required parameter first, and one at least.

    Each is written as if its tool were alone: the time to write one next to the others grows with their number.
    """
    examples: list[str] = []
    left = _EXAMPLES
    for tool in sorted(shown, key=lambda t: not t.parameters.get("required")):
        try:
            example = f"To call {tool.name}, write:\n{example_call(format, tool, (tool,))}"
        except FormatError:
            continue
        cost = len(example)
        if cost <= left or not examples:
            examples.append(example)
            left -= cost
    if not examples:
        raise FormatError(
            f"format {format.name!r} cannot represent an example call of any of {[t.name for t in shown]}"
        )
    return "\n\n".join(examples)


def how_to_write(format: str | Format, tool: ToolSpec, tools: Sequence[ToolSpec]) -> str:
    """Return the request to write a call of this tool again: with an example, if the format can represent one."""
    try:
        example = example_call(format, tool, tools)
    except FormatError:
        return "Write the call exactly as the examples show, with your own values."
    return f"Write the call in exactly this form, with your own values:\n\n{example}"


def example_call(format: str | Format, tool: ToolSpec, tools: Sequence[ToolSpec]) -> str:
    """Return a call of this tool with sample arguments, as a model of this format would write it.

    Raises:
        FormatError: the format cannot represent a sample value from the schema.
    """
    return render_calls(format, [ToolCall("", tool.name, example_arguments(tool))], tools)


def example_arguments(tool: ToolSpec, text: str = "the {}") -> dict[str, Any]:
    """Plausible arguments for all parameters, from the schema: its examples, enums and defaults first.

    Including the optional ones: small models got the markup of a parameter wrong that no example showed.

    Args:
        tool: the tool.
        text: a made-up text, with a slot for the parameter's name.
    """
    sample = _Sample(tool.parameters, text)
    return {n: sample.of(n, s, _DEPTH) for n, s in tool.parameters.get("properties", {}).items()}


def is_example(tool: ToolSpec, arguments: Mapping[str, Any]) -> bool:
    """Return True if these arguments have the made-up text wherever the tool's example has one, and it has one."""
    if not any(value == _made_up(name) or isinstance(value, list | dict) for name, value in arguments.items()):
        return False  # as for most calls
    example, other = example_arguments(tool), example_arguments(tool, "")
    made_up = [name for name in arguments if example.get(name) != other.get(name)]
    return bool(made_up) and all(arguments[name] == example[name] for name in made_up)


def _made_up(name: str, text: str = "the {}") -> str:
    return text.format(name.replace("_", " "))


class _Sample(NamedTuple):
    root: Mapping[str, Any]
    text: str

    def of(self, name: str, schema: Mapping[str, Any], depth: int) -> Any:
        plain = next(iter(walk.alternatives(schema, self.root)), {})
        for source in (schema, plain):
            listed = [*source.get("examples", ()), *source.get("enum", ()), source.get("const"), source.get("default")]
            if (value := next((v for v in listed if v not in (None, "")), None)) is not None:
                return value
        kind = plain.get("type")
        if kind == "array":
            items = plain.get("items")
            return [self.of(name, items, depth - 1)] if isinstance(items, Mapping) and depth else []
        if kind == "object":
            inner = plain.get("properties", {}) if depth else {}
            return {n: self.of(n, s, depth - 1) for n, s in inner.items() if n in plain.get("required", ())}
        if kind in ("integer", "number"):
            return int(plain.get("minimum", 1)) if kind == "integer" else float(plain.get("minimum", 1.5))
        return {"string": _made_up(name, self.text), "boolean": True}.get(str(kind))
