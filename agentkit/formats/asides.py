"""A model's asides: text in code tags, comments or thinking tags, and turns of other roles. No call in one counts.

A model that invents its tool's result, or the user's next turn, writes another's text; a call in it is not a request by
the model. Data, and the patterns that find it. Knows no format and no tool.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from agentkit.formats.declaration_checks import THOUGHTS
from agentkit.formats.reader import Delimiter, Search, any_beginning, any_of, beginnings, may_begin, pattern

SHOWN: Final = (
    "pre", "code", "example", "examples", "samp", "kbd", "tt", "xmp", "listing", "textarea", "script", "nowiki", "var",
    "cite", "q", "quote", "blockquote",
)  # fmt: skip
"""Elements whose text is shown as code, or quoted."""
_SHOWN_BETWEEN: Final = {"<!--": "-->", "<![CDATA[": "]]>", "[code]": "[/code]"}
_ANSWERS: Final = (
    "tool_response", "tool_responses", "tool_result", "tool_results", "tool_output", "tool_outputs",
    "function_response", "function_result", "function_results", "observation",
)  # fmt: skip
_TAGS: Final = {tag: f"<{tag}>" for tag in (*SHOWN, *THOUGHTS, *_ANSWERS)}
_ROLES: Final = ("user", "system", "tool", "developer", "ipython", "observation")
_OTHERS: Final = {
    # ChatML (Qwen, Hermes, Yi), Llama 3, Gemma 2/3, Gemma 4, gpt-oss
    **{f"<|im_start|>{role}": ("<|im_end|>", "<|im_start|>assistant") for role in _ROLES},
    **{
        f"<|start_header_id|>{role}<|end_header_id|>": ("<|eot_id|>", "<|start_header_id|>assistant") for role in _ROLES
    },
    "<start_of_turn>user": ("<end_of_turn>", "<start_of_turn>model"),
    **{f"<|turn>{role}": ("<turn|>", "<|turn>model") for role in _ROLES},
    **{f"<|start|>{role}": ("<|end|>", "<|start|>assistant") for role in (*_ROLES, "functions.")},
    # Phi 3/4, GLM 4
    **{f"<|{role}|>": ("<|end|>", "<|assistant|>") for role in _ROLES},
    # DeepSeek V3, Llama 2 and Mistral, Gemma 4
    "<｜User｜>": ("<｜Assistant｜>",),
    "<｜tool▁outputs▁begin｜>": ("<｜tool▁outputs▁end｜>", "<｜Assistant｜>"),
    "<｜tool▁output▁begin｜>": ("<｜tool▁output▁end｜>", "<｜Assistant｜>"),
    "[INST]": ("[/INST]",),
    "[TOOL_RESULTS]": ("[/TOOL_RESULTS]",),
    "<|tool_response>": ("<tool_response|>",),
    "<|tool_response:begin|>": ("<|tool_response:end|>",),  # Solar Open
}
"""The start of another role's turn in a chat template, and the literals that end it. Sources: `control.FAMILIES`."""


class Aside(NamedTuple):
    """One kind of aside: the literals that end it, and whether it is at most a paragraph if it starts inside a line.

    This way, a tag that prose merely mentions ("the <pre> element") does not affect a call in a later paragraph. After
    another tag or the marker of a list item, it starts a block, which ends with the item at the latest. The mark of
    another role's turn or of a result is a mention only inside a line, and if the sentence continues (`mention`);
    otherwise all text after it is invented, and no part of the reply.
    """

    closes: tuple[str, ...]
    paragraph: bool = False


LITERALS: Final = {
    **{text: Aside(ends) for text, ends in _OTHERS.items()},
    **{text: Aside((end,), paragraph=True) for text, end in _SHOWN_BETWEEN.items()},
}
"""Asides that start with a literal, by that literal, which contains no white space."""
_RESULT: Final = Aside(())
_ANY_CASE: Final = {text.lower(): aside for text, aside in LITERALS.items()}


_NO_EMPTY: Final = r"(?!<!---?(?:>|\Z))"
"""Matches unless `<!-->` follows, a complete comment in HTML, or the beginning of it."""

_WORDS: Final = (
    "after", "and", "are", "as", "before", "begins", "between", "block", "comes", "ends", "is", "mark", "marker",
    "marks", "means", "opens", "or", "precedes", "separates", "starts", "tag", "tags", "there", "token", "tokens",
    "wraps",
)  # fmt: skip
_AROUND: Final = r"[\"'*_)]"
_SAID_ON: Final = (
    rf"[ \t]{{1,8}}(?:{'|'.join(_WORDS)})(?=[\s,;.:)])|\\n(?=[\s,;.])"
    rf"|{_AROUND}{{0,3}}(?:[,;.](?=\s)|(?<={_AROUND})(?=[\s:\]}}]))"
)
_MAY_BE_SAID_ON: Final = rf"[ \t]{{0,8}}[a-z]{{0,9}}|\\n?|{_AROUND}{{0,3}}[,;.]?"
"""The sign that a sentence only mentions the mark before it: punctuation, or a word that continues the sentence.

No template has these after its marks, and few users would begin with one of these words.
"""


class Asides:
    """The ways in which an aside may start.

    Args:
        taken: names of tags that have another meaning here: a tool, a parameter, a family's markup.
        literals: openers of the formats, without white space; they have precedence.
        marks: the beginnings of a tool's result in the formats; see `ResultShape.mark`.
    """

    def __init__(self, taken: Collection[str], literals: Collection[str], marks: Collection[str] = ()) -> None:
        tags = tuple([tag for tag in _TAGS if tag not in taken and (_TAGS[tag] not in literals or tag in THOUGHTS)])
        own = [mark for mark in marks if mark and mark.strip("<>") not in (*_ANSWERS, *taken)]
        texts = tuple([text for text in dict.fromkeys((*LITERALS, *own)) if text not in literals])
        self.opens = _opens(tags, tuple([tag for tag in THOUGHTS if _TAGS[tag] in literals]), texts)

    def first_characters(self) -> Iterator[tuple[str, str]]:
        """Yield the first character of every opening, and a pattern for the text after it."""
        yield "<", r"[a-zA-Z!|｜]"
        yield "[", r"[A-Zc]"

    def at(self, found: re.Match[str]) -> Aside:
        """Return the aside that starts at a match of `opens`."""
        if (tag := found["tag"]) is not None:
            return Aside((f"</{tag.lower()}>",), paragraph=tag.lower() not in _ANSWERS)
        return _ANY_CASE.get("".join(found[0].split()).lower(), _RESULT)


@lru_cache(64)
def _opens(tags: tuple[str, ...], declared: tuple[str, ...], texts: tuple[str, ...]) -> Delimiter:
    """Return the delimiter of an aside's start: a tag, unless it is exactly one that is `declared`, or a literal.

    A role that more letters follow is another word.
    """
    attributes = r"(?:\s[^<>]{0,255})?"
    not_declared = rf"(?!(?-i:{any_of(declared)})>)" if declared else ""
    roles = any_of(text for text in texts if text[-1].isalpha())
    others = any_of(text for text in texts if not text[-1].isalpha())
    return Delimiter(
        rf"<{not_declared}(?P<tag>{any_of(tags)}){attributes}(?<!/)>|(?P<text>{roles}(?=[\W\d])|{_NO_EMPTY}{others})",
        rf"<(?:{any_of(tags)}{attributes}|{any_beginning(tags)})|{roles}|<!---?|{any_beginning(texts)}",
        re.IGNORECASE,
    )


@lru_cache(256)
def mention(mark: str) -> Delimiter:
    """Return the delimiter of a mark of another role's turn or of a result that a sentence only mentions."""
    mark = re.escape(mark)
    return Delimiter(f"{mark}(?:{_SAID_ON})", f"{mark}(?:{_MAY_BE_SAID_ON})")


@lru_cache(256)
def end_of(closes: tuple[str, ...], margin: int | None, others: Delimiter | None = None) -> tuple[Delimiter, Search]:
    """Return the delimiter of an aside's end, and a search for where it may be.

    Args:
        closes: the literals that end it.
        margin: an empty line also ends it if the next one is indented by less than this; 0: any; None: none does.
        others: the start of an aside, before which this one ends: it is only mentioned.
    """
    whole, part = "|".join(map(pattern, closes)), "|".join(map(beginnings, closes))
    first = "|".join(map(may_begin, closes))
    if margin is not None:
        first = rf"{first}|\n(?=\s|\Z)"
        empty = r"[ \t\r]{0,64}"
        whole += rf"|\n{empty}\n" if not margin else rf"|\n(?:{empty}\n){{1,16}}+(?= {{0,{margin - 1}}}+\S)"
        part += rf"|\n{empty}" if not margin else rf"|\n(?:{empty}\n){{0,16}}{empty}"
    if others is not None:
        first += r"|[<\[]"
        whole, part = rf"{whole}|(?={others.regex.pattern})", rf"{part}|{others.beginning}"
    return Delimiter(whole, part, re.IGNORECASE), re.compile(first, re.IGNORECASE).search
