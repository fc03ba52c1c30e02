"""Grammars for constrained decoding, from a format's declaration and the tools' schemas.

Text that a grammar accepts reads back as calls of offered tools whose arguments satisfy their schemas. Only canonical
spellings are written, arguments in declared order. Pure; imports no grammar engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, assert_never, get_args, overload

from agentkit.errors import FormatError
from agentkit.formats.edges import weak
from agentkit.formats.engine import get
from agentkit.formats.format import Format
from agentkit.grammar import gbnf, parts, prose, rules, structural_tag
from agentkit.grammar.arguments_as_rules import COUNTED, CallRules, Target
from agentkit.grammar.from_schema import Gap, NoRule, SchemaRules, escaping
from agentkit.grammar.rules import Alt, Exclusion, Lit, Many, Prose, Repeat, Rule, Seq, alt, leading, seq
from agentkit.toolspec import OutputSchema, ToolSpec

ThinkingRule = Literal["may_think", "no_thinking", "begun_thinking"]
"""`may_think`: thinking between the format's tags may come first. `no_thinking`: it may not, as for a server that
removes it from the reply and applies the grammar after it. `begun_thinking`: the prompt's end has opened it, with the
first of the format's pairs of tags, and the reply closes it.
"""

TARGETS: Final[tuple[Target, ...]] = get_args(Target)
_PROBE: Final = ToolSpec(
    "probe", "", {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
)


@overload
def grammar(
    format: str | Format, tools: Sequence[ToolSpec], *, target: Literal["structural_tag"] = "structural_tag",
    tool_choice: str = "auto", parallel: bool = True, thinking: ThinkingRule = "may_think", strict: bool = True,
    output: OutputSchema | None = None,
) -> dict[str, Any]: ...  # fmt: skip
@overload
def grammar(
    format: str | Format, tools: Sequence[ToolSpec], *, target: Literal["gbnf"],
    tool_choice: str = "auto", parallel: bool = True, thinking: ThinkingRule = "may_think", strict: bool = True,
    output: OutputSchema | None = None,
) -> str: ...  # fmt: skip
def grammar(
    format: str | Format,
    tools: Sequence[ToolSpec],
    *,
    target: Target = "structural_tag",
    tool_choice: str = "auto",
    parallel: bool = True,
    thinking: ThinkingRule = "may_think",
    strict: bool = True,
    output: OutputSchema | None = None,
) -> dict[str, Any] | str:
    r"""Return a grammar that lets a model write only calls that parse and validate.

    With `auto`, free text may surround the calls. It never contains a call's opening as mere text, not even between
    marks of code, where only `in_code="execute"` reads it as a call; nor the opening of a tool's result or of another
    role's turn.

    Args:
        format: the format, by name or declaration.
        tools: the offered tools.
        target: its syntax. A structural tag is the value of `response_format`, GBNF a grammar as text.
        tool_choice: `auto`, `required` (at least one call, and only calls after the thinking), `none` (text that opens
            no call), or the name of the only tool that must be called, once.
        parallel: whether more than one call may be written.
        thinking: whether a region of thinking may or must come first, in a format that declares its tags.
        strict: whether a schema keyword that the target cannot enforce is an error; otherwise such keywords are
            omitted, and `grammar_gaps` lists them. `format` is never an error: in JSON Schema it refuses nothing.
        output: the schema of a final reply. Then there is no free text: with `auto`, a reply is calls or one JSON value
            of this schema, with `none` or without tools that value alone.

    Raises:
        FormatError: the format has no grammar, or no tags of thinking that could be open; `tool_choice` does not name
            an offered tool; or a schema requires more than rules can express.

    >>> ping = ToolSpec("ping", "", {"type": "object", "properties": {}})
    >>> print(grammar("hermes", [ping], target="gbnf", tool_choice="ping", thinking="no_thinking"))
    root ::= "<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>"
    """
    if thinking not in get_args(ThinkingRule):
        raise FormatError(f"thinking={thinking!r}: expected one of {', '.join(get_args(ThinkingRule))}")
    built, gaps = _build(get(format), tools, target, _Reply(tool_choice, parallel, thinking, output))
    hard = [str(g) for g in gaps if g.keyword != "format"]
    if strict and hard:
        raise FormatError(
            f"{target} cannot enforce these schema keywords in format {get(format).name!r}: {'; '.join(hard)}; "
            "simplify the schema or pass strict=False to omit them"
        )
    match target:
        case "structural_tag":
            return structural_tag.write(built)
        case "gbnf":
            return gbnf.write(built)
        case _:
            assert_never(target)


def exactly(text: str, *, target: Target) -> dict[str, Any] | str:
    """Return a grammar that allows this text and nothing else."""
    built = rules.Grammar(Lit(text))
    return structural_tag.write(built) if target == "structural_tag" else gbnf.write(built)


def openings(
    format: str | Format, tools: Sequence[ToolSpec], *, target: Target, tool_choice: str = "required",
    output: OutputSchema | None = None,
) -> tuple[str, ...]:  # fmt: skip
    """Return the starts of a reply without free text, after any white space; the tags of thinking included."""
    built, _ = _build(get(format), tools, target, _Reply(tool_choice, thinking="no_thinking", output=output))
    assert not isinstance(built.root, Prose)
    block = built.root.items[-1] if isinstance(built.root, Seq) and get(format).thinking else built.root
    found = [text.lstrip() for text in _starts(block)]
    return tuple(dict.fromkeys([*found, *(start.lstrip() for start, _ in get(format).thinking)]))


def _starts(rule: Rule) -> list[str]:
    match rule:
        case Seq(items):
            return _starts(items[0])
        case Alt(items):
            return [text for item in items for text in _starts(item)]
        case Many(item):
            return _starts(item)
    return [leading(rule)]


def grammar_gaps(
    format: str | Format, tools: Sequence[ToolSpec], *, target: Target = "structural_tag"
) -> tuple[Gap, ...]:
    """Return the schema keywords of these tools that a grammar for this target does not enforce."""
    return _build(get(format), tools, target, _Reply("required"))[1]


def grammar_targets(format: str | Format) -> tuple[Target, ...]:
    """Return the targets for which a format has a grammar; empty if it has none."""
    return TARGETS if why_no_grammar(format) is None else ()


def why_no_grammar(format: str | Format, thinking: ThinkingRule = "may_think") -> str | None:
    """Why a format has no grammar; None if it has one."""
    try:
        grammar(format, [_PROBE], thinking=thinking)
    except FormatError as e:
        return str(e)
    return None


# ---------------------------------------------------------------- from format to rules


class _Reply(NamedTuple):
    """The kinds of reply that are allowed."""

    choice: str
    parallel: bool = True
    thinking: ThinkingRule = "may_think"
    output: OutputSchema | None = None

    @property
    def free(self) -> bool:
        """True if it may be text, or with an output its value."""
        return self.choice in ("auto", "none")

    @property
    def named(self) -> bool:
        return self.choice not in ("auto", "required", "none")

    @property
    def many(self) -> bool:
        return self.parallel and not self.named


def _build(
    format: Format, tools: Sequence[ToolSpec], target: Target, reply: _Reply
) -> tuple[rules.Grammar, tuple[Gap, ...]]:
    offered = [t for t in tools if not reply.named or t.name == reply.choice]
    if not offered and not (reply.output is not None and reply.free):
        known = ", ".join(t.name for t in tools) or "none"
        raise FormatError(f"tool_choice={reply.choice!r} is not an offered tool; the offered tools are {known}")
    if reply.thinking == "begun_thinking" and not format.thinking:
        raise FormatError(f"format {format.name!r} has no tags for thinking, so none can be open before the reply")
    writings = [CallRules(format, tool, f"t{i}", target) for i, tool in enumerate(offered)]
    try:
        calls = {w.tool.name: parts.call_rule(w) for w in writings}
    except NoRule as e:
        raise FormatError(f"no call can be written: {e}") from e
    made = [w.schemas for w in writings]
    root: Rule | Prose
    if reply.output is not None:
        block, found = _with_output(format, offered, calls, reply, reply.output)
        root, made = _thoughtful(format, block, reply), [*made, found]
    elif reply.free:
        root = _prose(format, offered, calls, reply)
    else:
        root = _thoughtful(format, alt(_blocks(format, [*calls.values()], reply.many)), reply)
    gaps = {g: None for schemas in made for g in schemas.gaps}
    return rules.Grammar(root, {n: r for schemas in made for n, r in schemas.rules.items()}), tuple(gaps)


def _with_output(
    format: Format, tools: Sequence[ToolSpec], calls: Mapping[str, Rule], reply: _Reply, output: OutputSchema
) -> tuple[Rule, SchemaRules]:
    """Calls, as far as they are allowed, or the final reply's value, and the schema of that.

    No string of the value contains the mark that would open a call: its first character is escaped there.

    Raises:
        FormatError: no value satisfies the schema.
    """
    marks = [*(b.text.strip() for b in _call_starts(format, tools)), format.result.mark]
    opens = {mark[0] for mark in marks if mark and not mark[0].isalnum()} - {'"'}
    schemas = SchemaRules(f"output type {output.name}", output.schema, "output", largest=COUNTED)
    try:
        value = schemas.rule(output.schema, escaping("".join(sorted(opens))))
    except NoRule as e:
        raise FormatError(f"no reply can be written: {e}") from e
    callable_ = calls and reply.choice != "none"
    blocks = _blocks(format, [*calls.values()], reply.many) if callable_ else []
    return alt([*blocks, *([value] if reply.free else [])]), schemas


def _thoughtful(format: Format, block: Rule, reply: _Reply) -> Rule:
    """Return the rule of a reply without free text, after the thinking."""
    if not format.thinking:
        return block
    before: list[Rule] = []
    if reply.thinking == "begun_thinking":
        before.append(_thoughts(rules.opened_tags(format.thinking[0][1])))
    elif reply.thinking == "may_think":
        before.append(Repeat(_thoughts(format.thinking)))
    # models write an empty line after their thinking, even if a server has removed the thinking
    newlines = [] if leading(block)[:1].isspace() else [Repeat(Lit("\n"), 0, 2)]
    return Seq((*before, *newlines, block))


def _thoughts(regions: Sequence[tuple[str, str]]) -> Rule:
    return alt(seq(Lit(start), rules.region(close)) for start, close in regions)


def _blocks(format: Format, calls: list[Rule], many: bool) -> list[Rule]:
    """Everything that a whole reply of calls may be: one run of calls with its section around it."""
    section = format.section
    if section is not None and section.each:
        calls = [_within(format, c) for c in calls]
    run: list[Rule] = [Many(alt(calls), format.separator)] if many else calls
    return [_within(format, alt(run))] if section is not None and not section.each else run


def _within(format: Format, inner: Rule) -> Rule:
    section = format.section
    assert section is not None
    return seq(Lit(section.start), inner, Lit(section.end))


def _prose(format: Format, tools: Sequence[ToolSpec], calls: Mapping[str, Rule], reply: _Reply) -> Prose:
    blocked = _blocked_strings(format, tools)
    regions = format.answer if reply.thinking == "no_thinking" else (*format.thinking, *format.answer)
    closing = format.thinking[0][1] if reply.thinking == "begun_thinking" else ""
    if reply.choice == "none":
        return Prose((), (), tuple(blocked), regions, many=False, closing=closing)
    many = reply.many
    blocks = _openable(format, calls, many, tuple(blocked))
    shape = format.shapes[0]
    found = [prose.trigger(shape, name, rules.leading(b)) for name, b in blocks]
    if (alone := prose.without_section(shape)) is not None:  # models leave out the section's opening
        found += [prose.trigger(alone, name, rules.leading(c)) for name, c in calls.items()]
        blocks += calls.items()
    triggers = {prose.cut_trigger(t, blocked) for t in found}
    first = sorted(t for t in triggers if not any(t != o and t.startswith(o) for o in triggers))
    return Prose(tuple(first), tuple(dict.fromkeys(b for _, b in blocks)), tuple(blocked), regions, many, closing)


def _call_starts(format: Format, tools: Sequence[ToolSpec]) -> dict[Exclusion, None]:
    """Return the openings of calls, and of regions in which none counts."""
    blocked = dict.fromkeys(b for shape in format.shapes for b in prose.call_starts(shape, tools))
    return blocked | dict.fromkeys(Exclusion(tag.strip()) for tag, _ in (*format.thinking, *format.answer))


def _blocked_strings(format: Format, tools: Sequence[ToolSpec]) -> dict[Exclusion, None]:
    blocked = _call_starts(format, tools)
    for new in prose.invented_starts(format):  # nothing opens after a mark that is itself blocked
        if not any(b.exact and new.text.startswith(b.text) for b in blocked):
            blocked[new] = None
    return blocked


def _openable(
    format: Format, calls: Mapping[str, Rule], many: bool, blocked: Sequence[Exclusion]
) -> list[tuple[str, Rule]]:
    """Blocks that may occur in free text, each with the tool that it starts with."""
    section = format.section
    if section is not None and section.each:
        return [(name, _within(format, c)) for name, c in calls.items()]
    # free text may separate calls without a section, unless it cannot contain the separator
    run = many and (section is not None or any(b.text in format.separator for b in blocked))
    more = Repeat(seq(Lit(format.separator), alt(calls.values()))) if run else rules.EMPTY
    if section is None:
        return [(name, seq(c, more)) for name, c in calls.items()]
    if weak(section.open):
        return [(name, _within(format, seq(c, more))) for name, c in calls.items()]
    return [(name, block) for name in calls for block in _blocks(format, [*calls.values()], many)]
