"""The rules of a grammar in no particular syntax: literals, sequences, choices, characters, raw values, JSON, prose.

Pure values; depends on no format, schema or target. The renderers (`structural_tag`, `gbnf`) write them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os.path import commonprefix
from typing import Any, Final

from agentkit.formats.atoms import atoms

SPACES: Final = "".join(c for c in map(chr, range(0x3001)) if c.isspace())
_FOLLOWS_TAG: Final = frozenset(SPACES + "/><=")
_IN_NAMESPACE: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a pattern over characters: one of `chars`, or with `star` any number of them."""

    chars: frozenset[str]
    star: bool = False


_SPACE_RUN: Final = Step(frozenset(SPACES), star=True)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A string that a text must not contain, in every spelling in which the parser would recognise it.

    Args:
        text: its canonical spelling; for a tag `<name` or `</name`.
        tag: whether it is a tag, which is read in any case, with any namespace, and with a hyphen for an underscore.
        start: whether it is forbidden only at the text's start, after any white space.
        quotes: whether its double quotes may also be single quotes.
        cases: whether its letters may be lower or upper case.
        token: whether it is written in one way only, as a control token is, without white space in it.
    """

    text: str
    tag: bool = False
    start: bool = False
    quotes: bool = False
    cases: bool = False
    token: bool = False

    @property
    def patterns(self) -> tuple[tuple[Step, ...], ...]:
        """Its spellings as steps over characters."""
        if self.token:
            return (tuple(Step(frozenset(c)) for c in self.text),)
        if not self.tag:
            lead = (_SPACE_RUN,) if self.start else ()
            steps = _soft(self.text, self.quotes)
            return ((*lead, *(map(_any_case, steps) if self.cases else steps)),)
        slash = "</" if self.text.startswith("</") else "<"
        name = self.text[len(slash) :]
        head = tuple(Step(frozenset(c)) for c in slash)
        letters = (Step(frozenset("-_" if c in "-_" else (c.lower(), c.upper()))) for c in name)
        body = (*letters, Step(_FOLLOWS_TAG))
        namespace = (Step(_IN_NAMESPACE, star=True), Step(frozenset(":")))
        return ((*head, *body), (*head, *namespace, *body))

    @property
    def exact(self) -> bool:
        """True if `spellings` has all of its spellings."""
        if self.start:
            return True
        cased = self.cases and self.text.lower() != self.text.upper()
        return not (self.tag or self.quotes or cased or any(s.star for p in self.patterns for s in p))

    @property
    def spellings(self) -> tuple[str, ...]:
        """Its likely spellings as strings, for targets that support nothing else."""
        if self.quotes:
            texts = (self.text.replace(" :", ":"), self.text.replace(" : ", ":"), self.text)
            return (*texts, *(t.replace('"', "'") for t in texts))
        if not (self.tag or self.cases):
            return tuple(dict.fromkeys((self.text, "".join(self.text.split()))))
        same = {self.text: None} | dict.fromkeys(self.text.replace(*c) for c in ("-_", "_-") if self.tag)
        return tuple(same | dict.fromkeys((self.text.lower(), self.text.upper(), self.text.title())))


def _soft(text: str, quotes: bool) -> Iterable[Step]:
    for atom in atoms(text):
        yield _SPACE_RUN if atom.isspace() else Step(frozenset("\"'" if quotes and atom == '"' else atom))


def _any_case(step: Step) -> Step:
    return Step(frozenset(form for c in step.chars for form in (c, c.lower(), c.upper()) if len(form) == 1), step.star)


# ---------------------------------------------------------------- rules


@dataclass(frozen=True, slots=True)
class Lit:
    """Exactly this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character: one of these, or with `negated` any other."""

    chars: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Seq:
    """One after another."""

    items: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """Any one of them."""

    items: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`least` to `most` times; None has no upper bound."""

    item: Rule
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Many:
    """One or more calls with a separator between them."""

    item: Rule
    separator: str


@dataclass(frozen=True, slots=True)
class Raw:
    """Any text up to and including `close`, without anything in `blocked`; at most `most` characters before `close`."""

    close: str
    blocked: tuple[Exclusion, ...]
    most: int | None = None


def region(close: str) -> Raw:
    """Return the rule of a region of thinking, with its closing tag, without its opening tag in it."""
    return Raw(close, tuple(Exclusion(tag, token=True) for tag, _ in opened_tags(close) if tag))


def opened_tags(close: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs of tags of a region that the prompt has opened: a model may write the opening tag once more."""
    return (("", close), (f"<{close[2:]}", close)) if close.startswith("</") else (("", close),)


@dataclass(frozen=True, slots=True)
class JsonRule:
    """JSON text of a self-contained schema, for targets that read schemas themselves."""

    schema: Mapping[str, Any]

    def __hash__(self) -> int:
        return hash(repr(self.schema))


@dataclass(frozen=True, slots=True)
class Ref:
    """The rule of this name in the grammar."""

    name: str


Rule = Lit | Chars | Seq | Alt | Repeat | Many | Raw | JsonRule | Ref


@dataclass(frozen=True, slots=True)
class Prose:
    """Free text that may contain blocks, each after its trigger; `regions` may come first.

    Args:
        triggers: the strings that open a block; none is the beginning of another.
        blocks: each starts with a literal that starts with one trigger; empty if only text is allowed.
        blocked: the strings that the free text must not contain.
        regions: pairs of tags around thinking and the like, in which nothing is a call; they may come at the start.
        many: whether the text may contain more than one block, with free text after each.
        closing: the closing tag of a region that was already open before the text; empty if there was none.
    """

    triggers: tuple[str, ...]
    blocks: tuple[Rule, ...]
    blocked: tuple[Exclusion, ...]
    regions: tuple[tuple[str, str], ...]
    many: bool
    closing: str = ""

    def after(self, trigger: str) -> Rule:
        """Return the rule after a trigger: any block that it opens, without it."""
        heads = ((leading(b), b) for b in self.blocks)
        return alt(without_lead(b, len(trigger)) for head, b in heads if head.startswith(trigger))


@dataclass(frozen=True, slots=True)
class Grammar:
    """A root, and the named rules that `Ref` refers to."""

    root: Rule | Prose
    rules: Mapping[str, Rule] = field(default_factory=dict)


EMPTY: Final = Lit("")


def seq(*items: Rule) -> Rule:
    """Return the rule of a sequence, flat and with neighbouring literals joined."""
    out: list[Rule] = []
    for item in items:
        for one in item.items if isinstance(item, Seq) else (item,):
            last = out[-1] if out else None
            if isinstance(one, Lit) and isinstance(last, Lit):
                out[-1] = Lit(last.text + one.text)
            elif one != EMPTY:
                out.append(one)
    return out[0] if len(out) == 1 else Seq(tuple(out)) if out else EMPTY


def alt(items: Iterable[Rule]) -> Rule:
    """Return the rule of a choice, flat and without duplicates."""
    flat = dict.fromkeys(one for item in items for one in (item.items if isinstance(item, Alt) else (item,)))
    return next(iter(flat)) if len(flat) == 1 else Alt(tuple(flat))


def spread(items: Iterable[Rule]) -> list[Rule]:
    """Write out runs of calls, so that a separator is never the beginning of another rule that may take its place.

    An engine that reads tokens would immediately commit to the separator.
    """
    out = list(items)
    for i, one in enumerate(out):
        if isinstance(one, Many) and i + 1 < len(out) and isinstance(end := out[i + 1], Lit):
            both = commonprefix([one.separator, end.text])  # noqa: RUF071  # characters, not paths
            more = seq(Lit(one.separator[len(both) :]), one.item, Lit(both))
            out[i : i + 2] = [one.item, Lit(both), Repeat(more), Lit(end.text[len(both) :])]
    return [rule for rule in out if rule != EMPTY]


def opt(item: Rule) -> Rule:
    """Return the rule of an optional item."""
    return Repeat(item, 0, 1)


def leading(rule: Rule) -> str:
    """Return the literal that a rule starts with; empty if it starts with something else."""
    match rule:
        case Lit(text):
            return text
        case Seq(items):
            return leading(items[0])
    return ""


def without_lead(rule: Rule, size: int) -> Rule:
    """Return the rule without the first `size` characters of its leading literal."""
    if isinstance(rule, Seq):
        return seq(without_lead(rule.items[0], size), *rule.items[1:])
    assert isinstance(rule, Lit)
    return Lit(rule.text[size:])


def trailing(rule: Rule) -> str:
    """Return the literal that a rule ends with; empty if it ends with something else."""
    match rule:
        case Seq(items) if isinstance(last := items[-1], Lit):
            return last.text
    return ""
