"""Formats that nobody wrote: declarations drawn from the documented parts, and damaged texts of each.

A seed is always the same declaration and texts. What is read of a text is compared between cuttings, so that nobody has
to know what is right: `differing` is the first cutting whose events are other ones than those of the whole text.

    python tests/support/declarations.py --formats 20000 --seed 1

prints how many texts were read, and of each declaration that reads one in two ways the smallest text.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

from agentkit.errors import AgentkitError
from agentkit.events import Event, merge
from agentkit.formats import Format, Parser, ToolSpec, parse, render_calls
from agentkit.formats.format import (
    Braced,
    CallBody,
    CallId,
    CountedName,
    Envelope,
    FormatPart,
    Json,
    KeyEnvelope,
    Name,
    NameTag,
    NestedTags,
    Pairs,
    PythonCall,
    Section,
    Shape,
    Skip,
    TagParameters,
    edge,
)
from agentkit.messages import ToolCall

_STRING = {"type": "string"}
_MOVE = {"src": _STRING, "n": {"type": "integer"}, "tags": {"type": "array", "items": _STRING}}
TOOLS = (
    ToolSpec("move", "", {"type": "object", "properties": _MOVE, "required": ["src"]}),
    ToolSpec("ping", "", {"type": "object", "properties": {}}),
)
OPEN = (
    "@@call ", "<<", "[[", "<call>", "{{", "call:", "<|x|>", "§", "⟦", "<tool>", "#!", "<a>", "TOOL ", "(",
    "<tool_call>", "```tool\n", "<|tool|>", "\n@", "~>", "<function=", "[TOOL]", "<c>\n", "%%%", "<invoke>", "…", "➤ ",
)  # fmt: skip
MIDDLE = (
    "\n", " => ", ": ", "::", "|", "<sep>", ">", "\n---\n", "<|args|>", " with ", "=", "]", "<c>", " ", "\t", "\n\n",
)  # fmt: skip
CLOSE = (
    "@@end", ">>", "]]", "</call>", "}}", "<|/x|>", "§", "⟧", "</tool>", "!#", "</a>", "END", "\n@@", ")",
    "</tool_call>", "\n```", "<|end|>", ";", "</function>", "</c>\n", "", "%%%", "\n",
)  # fmt: skip
PIECES = (
    "a", "x y", "", "\n", "a\n", " b ", "{}", "[1]", '"', "it's", "<a>", "</a>", "@@end", "]]>", ">>", "§", "\\n", "日",
    "a: b", "name", "1", "true", "```", "`x`", "<![CDATA[x]]>", "<|end|>", ";", "- x: y", "((", "</v>",
)  # fmt: skip
SCATTERED = ("move", "ping", " ", "\n", "{}", '{"src": "a"}', "src", "x", "functions.move:0", "(src='a')", "ping()")


class Draw(random.Random):
    """One declaration and its texts."""

    def one(self, *of: str) -> str:
        """One of these."""
        return self.choice(of)

    def body(self) -> CallBody:
        """What reads the arguments."""
        form = self.choice(("start", "both", "none"))
        match self.randrange(8):
            case 1:
                return Pairs(self.one(*OPEN, *MIDDLE), self.one(*MIDDLE, *CLOSE), self.one(*CLOSE, *MIDDLE), form)
            case 2:
                return Braced(self.one('<|"|>', "<q>", '"', "''", "§"), self.random() < 0.5)
            case 3:
                return TagParameters(self.one("p", "param", "arg"), self.one("name", "k"))
            case 4:
                return NestedTags(self.one("@", "§", "<t>", "|", "]<]x[>["))
            case 5:
                key, middle = self.one("<k>", "- ", "arg ", "<p="), self.one("</k><v>", ": ", ">", "= ")
                return Pairs(key, middle, self.one("</v>", "\n", "</p>", ";"), form)
            case _:
                return Json()

    def call(self) -> tuple[FormatPart, ...]:
        """The parts of a call."""
        before: str | NameTag = self.one(*OPEN)
        middle, after = self.one(*MIDDLE), self.one(*CLOSE)
        parts: tuple[FormatPart, ...]
        match self.randrange(8):
            case 0:
                keys = self.choice((("arguments",), ("args", "params")))
                parts = (Envelope(self.one("name", "fn"), keys),)
            case 1:
                parts = (KeyEnvelope(),)
            case 2:
                parts = (PythonCall(),)
            case 3:
                parts = (CountedName(), middle, self.body())
            case 4:
                parts = (CallId(), middle, Name(), self.one(*MIDDLE), self.body())
            case 5:
                before, after = NameTag(self.one("do", "run"), "tool"), self.one("</do>", "</run>", "<end>")
                parts = (self.body(),)
            case 6:
                prefix, written = self.one("", "functions.", "f:"), self.one("json", "x")
                parts = (Name(prefix), middle, Skip(written), self.one(*MIDDLE), self.body())
            case _:
                parts = (Name(), middle, self.body())
        return tuple(part for part in (before, *parts, after) if part != "")

    def shape(self) -> Shape:
        """A call, which may be in a section."""
        section = Section(self.one(*OPEN), self.one(*CLOSE), self.random() < 0.3) if self.random() < 1 / 3 else None
        return Shape(self.call(), section)

    def declared(self) -> Format | None:
        """A whole declaration; None if it is refused."""
        shape, rare = self.shape(), self.random
        try:
            return Format(
                "mine",
                shape.call,
                shape.section,
                also=(self.shape(),) if rare() < 0.15 else (),
                separator=self.one("", "; ", ",", "\n\n", "<sep>") if rare() < 0.2 else "\n",
                markup=(self.one("<|m|>", "<eos>", "@@"),) if rare() < 0.15 else (),
                ends=(self.one("<|end|>", "</s>", "END"),) if rare() < 0.15 else (),
                thinking=((self.one("<t>", "[think]", "(("), self.one("</t>", "[/think]", "))")),)
                if rare() < 0.15
                else (("<think>", "</think>"),),
            )
        except AgentkitError:
            return None

    def made(self) -> ToolCall:
        """A call of one of the tools."""
        if self.random() < 0.5:
            return ToolCall("c", "ping", {})
        arguments: dict[str, object] = {"src": self.one(*PIECES) + (self.one(*PIECES) if self.random() < 0.3 else "")}
        if self.random() < 0.4:
            arguments["n"] = self.choice((0, -5, 7))
        if self.random() < 0.3:
            arguments["tags"] = [self.one(*PIECES) for _ in range(self.randrange(3))]
        return ToolCall("c", "move", arguments)

    def texts(self, format: Format) -> Iterator[str]:
        """What a model might write in it: calls, with prose around them or damaged at one place, and soup."""
        own = fixed(format)
        for _ in range(4):
            yield "".join(self.one(*own, *SCATTERED) for _ in range(self.randrange(1, 12)))
            try:
                text = render_calls(format, [self.made() for _ in range(self.choice((1, 1, 2, 3)))], TOOLS)
            except AgentkitError:
                continue
            yield self.one("", "I look. \n", f"Prose with {self.one(*own)} in it.\n\n") + text + self.one("", "\nDone.")
            for _ in range(3):
                at = self.randrange(len(text) + 1)
                yield text[:at] + self.one(*own, "x", "") + text[at + self.randrange(3) :]

    def cuttings(self, text: str) -> Iterator[Sequence[int]]:
        """Where chunks of it end: after every character, and at a few places."""
        yield range(1, len(text))
        if len(text) > 1:
            yield sorted(self.sample(range(1, len(text)), min(len(text) - 1, self.choice((1, 2, 4)))))


def fixed(format: Format) -> list[str]:
    """The texts of which its calls are made, besides names and values."""
    found = [*format.markup, *map(edge, format.ends), *(text for pair in format.thinking for text in pair)]
    for shape in format.shapes:
        for part in shape.call:
            if isinstance(part, str):
                found.append(part)
            if isinstance(part, NameTag):
                found.append(f'<{part.name} {part.attribute}="move">')
            found += [str(getattr(part, name, "")) for name in ("key", "middle", "close", "quote", "token")]
        found += [edge(shape.section.open), edge(shape.section.close)] if shape.section is not None else []
    return [text for text in found if text]


def read_in_pieces(format: Format, text: str, cuts: Sequence[int]) -> list[Event]:
    """The events of a text that arrives in these pieces."""
    parser = Parser(format, TOOLS)
    edges = [0, *cuts, len(text)]
    events = [event for a, b in pairwise(edges) for event in parser.feed(text[a:b])]
    return merge([*events, *parser.close()])


def differing(format: Format, text: str, cuttings: Iterator[Sequence[int]]) -> Sequence[int] | None:
    """The first of these cuttings that reads the text in another way than as a whole; None if none does."""
    whole = merge(parse(text, format, TOOLS))
    return next((cuts for cuts in cuttings if read_in_pieces(format, text, cuts) != whole), None)


def every_single(text: str) -> Iterator[Sequence[int]]:
    """Every character, and every cut alone."""
    yield range(1, len(text))
    yield from ((at,) for at in range(1, len(text)))


def shrunk(format: Format, text: str) -> str:
    """A smaller text that is read in two ways, too."""
    again = True
    while again:
        again = False
        for width in (8, 4, 2, 1):
            at = 0
            while at < len(text):
                less = text[:at] + text[at + width :]
                if less and differing(format, less, every_single(less)) is not None:
                    text, again = less, True
                else:
                    at += 1
    return text


def faults(seed: int) -> Iterator[tuple[Format, str, bool]]:
    """Every text of a seed, with its declaration, and whether it is read in two ways."""
    draw = Draw(seed)
    if (format := draw.declared()) is None:
        return
    for text in draw.texts(format):
        yield format, text, differing(format, text, draw.cuttings(text)) is not None


def told(format: Format, text: str) -> str:
    """What is read in two ways, in a few lines."""
    text = shrunk(format, text)
    cuts = differing(format, text, every_single(text)) or ()
    whole, pieces = merge(parse(text, format, TOOLS)), read_in_pieces(format, text, cuts)
    written = f"{format.shapes} markup={format.markup} ends={format.ends} separator={format.separator!r}"
    return f"{written}\n  {text!r} {cuts}\n  whole  {whole}\n  pieces {pieces}"


def main() -> None:
    """Read the texts of many declarations."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--formats", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=5)
    asked = parser.parse_args()
    read = bad = 0
    for seed in range(asked.seed * 1_000_000, asked.seed * 1_000_000 + asked.formats):
        mine = 0
        for format, text, differs in faults(seed):
            read, mine, bad = read + 1, mine + differs, bad + differs
            if differs and mine == 1 and asked.show > 0:
                asked.show -= 1
                print(f"seed {seed}: {told(format, text)}", flush=True)
    print(f"{read} texts of {asked.formats} declarations, {bad} read in two ways")


if __name__ == "__main__":
    main()
