"""Grammars for constrained decoding, from a format's declaration and the tools' schemas.

Text that a grammar accepts reads back as calls of offered tools whose arguments satisfy their schemas. Only canonical
spellings are written, arguments in declared order. Pure; imports no grammar engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, assert_never, get_args, overload

from agentkit.errors import FormatError
from agentkit.formats.engine import get
from agentkit.formats.format import Format
from agentkit.formats.openers import weak
from agentkit.grammar import gbnf, lark, parts, prose, rules, structural_tag
from agentkit.grammar.arguments_as_rules import CallRules, Target
from agentkit.grammar.from_schema import Gap, Refused
from agentkit.grammar.rules import Blocked, Lit, Many, Prose, Repeat, Rule, alt, seq
from agentkit.toolspec import ToolSpec

TARGETS: Final[tuple[Target, ...]] = get_args(Target)
_PROBE: Final = ToolSpec(
    "probe", "", {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
)


@overload
def grammar(
    format: str | Format, tools: Sequence[ToolSpec], *, target: Literal["structural_tag"] = "structural_tag",
    tool_choice: str = "auto", parallel: bool = True, strict: bool = True,
) -> dict[str, Any]: ...  # fmt: skip
@overload
def grammar(
    format: str | Format, tools: Sequence[ToolSpec], *, target: Literal["lark", "gbnf"],
    tool_choice: str = "auto", parallel: bool = True, strict: bool = True,
) -> str: ...  # fmt: skip
def grammar(
    format: str | Format,
    tools: Sequence[ToolSpec],
    *,
    target: Target = "structural_tag",
    tool_choice: str = "auto",
    parallel: bool = True,
    strict: bool = True,
) -> dict[str, Any] | str:
    r"""A grammar that lets a model write nothing but calls that parse and validate.

    With `auto`, free text may surround the calls, and a region of thinking may come first. What would open a call never
    stands in it as mere text, so constrained text is read with `in_code="execute"`.

    Args:
        format: the format, by name or declaration.
        tools: the offered tools.
        target: who enforces it. A structural tag is the value of `response_format`; the others are grammars as text.
        tool_choice: `auto`, `required` (one call at least, and nothing but calls), or the name of the one tool that
            must be called, once.
        parallel: whether more than one call may be written.
        strict: whether a schema keyword that the target cannot enforce is an error; else such keywords are left out,
            and `grammar_gaps` lists them. `format` never is an error: in JSON Schema it refuses nothing.

    Raises:
        FormatError: the format has no grammar, `tool_choice` names no tool, or a schema asks for what cannot be said.

    >>> ping = ToolSpec("ping", "", {"type": "object", "properties": {}})
    >>> print(grammar("hermes", [ping], target="gbnf", tool_choice="ping"))
    root ::= "<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>"
    """
    built, gaps = _build(get(format), tools, target, tool_choice, parallel)
    hard = [str(g) for g in gaps if g.keyword != "format"]
    if strict and hard:
        raise FormatError(
            f"{target} cannot enforce these schema keywords in format {get(format).name!r}: {'; '.join(hard)}; "
            "simplify the schema or pass strict=False to leave them out"
        )
    match target:
        case "structural_tag":
            return structural_tag.write(built)
        case "lark":
            return lark.write(built)
        case "gbnf":
            return gbnf.write(built)
        case _:
            assert_never(target)


def grammar_gaps(
    format: str | Format, tools: Sequence[ToolSpec], *, target: Target = "structural_tag"
) -> tuple[Gap, ...]:
    """The schema keywords of these tools that a grammar for this target does not enforce."""
    return _build(get(format), tools, target, "required", True)[1]


def grammar_targets(format: str | Format) -> tuple[Target, ...]:
    """The targets for which a format has a grammar; empty where it has none."""
    return TARGETS if why_no_grammar(format) is None else ()


def why_no_grammar(format: str | Format) -> str | None:
    """Why a format has no grammar; None where it has one."""
    try:
        grammar(format, [_PROBE])
    except FormatError as e:
        return str(e)
    return None


# ---------------------------------------------------------------- from format to rules


def _build(
    format: Format, tools: Sequence[ToolSpec], target: Target, tool_choice: str, parallel: bool
) -> tuple[rules.Grammar, tuple[Gap, ...]]:
    named = tool_choice not in ("auto", "required")
    offered = [t for t in tools if not named or t.name == tool_choice]
    if not offered:
        known = ", ".join(t.name for t in tools) or "none"
        raise FormatError(f"tool_choice {tool_choice!r} is no offered tool; there are {known}")
    writings = [CallRules(format, tool, f"t{i}", target) for i, tool in enumerate(offered)]
    try:
        calls = {w.tool.name: parts.call_rule(w) for w in writings}
    except Refused as e:
        raise FormatError(f"no call can be written: {e}") from e
    many = parallel and not named
    free = tool_choice == "auto"
    root = _prose(format, offered, calls, many) if free else alt(_blocks(format, [*calls.values()], many))
    gaps = {g: None for w in writings for g in w.gaps}
    return rules.Grammar(root, {n: r for w in writings for n, r in w.schemas.rules.items()}), tuple(gaps)


def _blocks(format: Format, calls: list[Rule], many: bool) -> list[Rule]:
    """Everything that a whole reply of calls may be: one run of calls with what stands around it."""
    section = format.section
    if section is not None and section.each:
        calls = [_within(format, c) for c in calls]
    run: list[Rule] = [Many(alt(calls), format.separator)] if many else calls
    return [_within(format, alt(run))] if section is not None and not section.each else run


def _within(format: Format, inner: Rule) -> Rule:
    section = format.section
    assert section is not None
    return seq(Lit(section.start), inner, Lit(section.end))


def _prose(format: Format, tools: Sequence[ToolSpec], calls: Mapping[str, Rule], many: bool) -> Prose:
    """Free text around blocks of calls."""
    blocked = dict.fromkeys(b for shape in format.shapes for b in prose.announced(shape, tools))
    regions = (*format.thinking, *format.answer)
    blocked |= dict.fromkeys(Blocked(tag.strip()) for tag, _ in regions)
    blocks = _openable(format, calls, many, tuple(blocked))
    found = (prose.trigger(format.shapes[0], name, rules.leading(b)) for name, b in blocks)
    triggers = {prose.earliest(t, blocked) for t in found}
    first = sorted(t for t in triggers if not any(t != o and t.startswith(o) for o in triggers))
    return Prose(tuple(first), tuple(dict.fromkeys(b for _, b in blocks)), tuple(blocked), regions, many)


def _openable(
    format: Format, calls: Mapping[str, Rule], many: bool, blocked: Sequence[Blocked]
) -> list[tuple[str, Rule]]:
    """Blocks that may stand in free text, each with the tool that it starts with."""
    section = format.section
    if section is not None and section.each:
        return [(name, _within(format, c)) for name, c in calls.items()]
    # free text may separate calls that stand alone, unless it cannot hold the separator
    run = many and (section is not None or any(b.text in format.separator for b in blocked))
    more = Repeat(seq(Lit(format.separator), alt(calls.values()))) if run else rules.EMPTY
    if section is None:
        return [(name, seq(c, more)) for name, c in calls.items()]
    if weak(section.open):
        return [(name, _within(format, seq(c, more))) for name, c in calls.items()]
    return [(name, block) for name in calls for block in _blocks(format, [*calls.values()], many)]
