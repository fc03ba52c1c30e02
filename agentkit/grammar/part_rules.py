"""How one kind of part is constrained, and the text rules that several kinds have in common.

The files in `parts/` define one `PartRules` for each part that they know; `parts/__init__.py` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from agentkit.errors import FormatError
from agentkit.grammar.arguments_as_rules import CallRules
from agentkit.grammar.rules import Chars, Exclusion, Lit, Raw, Repeat, Rule, seq
from agentkit.toolspec import ToolSpec

NAME: Final = re.compile(r"[^\s<>{}\[\]()\"'`,;=]{1,256}\Z")
KEY: Final = re.compile(r"[^\s<>\"'=|/&](?:[^<>\"'=|/&\n]{0,200}[^\s<>\"'=|/&])?\Z")


def _nothing(part: object, edge: str, tool: ToolSpec) -> Iterable[Exclusion]:
    return ()


@dataclass(frozen=True, slots=True)
class PartRules:
    """The constraints of one kind of part.

    Args:
        part: its class in `formats/format.py`; `str` for literals.
        rule: makes the rule of a call there. `refuse_constraint` for a part that is only read.
        name: matches the tools' names that are readable there; None if the part has no name or accepts any.
        keys: the same for the names of parameters.
        whole: whether its rule is made from the tool's whole schema, and so reports keywords that it cannot enforce.
        announces: yields the strings that turn text into a call of an offered tool, from the part and the text before
            it, if that is common in prose. Free text must not contain them.
    """

    part: type
    rule: Callable[[CallRules, Any], Rule]
    name: re.Pattern[str] | None = None
    keys: re.Pattern[str] | None = None
    whole: bool = False
    announces: Callable[[Any, str, ToolSpec], Iterable[Exclusion]] = _nothing


def refuse_constraint(w: CallRules, part: object) -> Rule:
    """Refuse a part that occurs only in shapes that are read.

    Raises:
        FormatError: always: the written shape of the format contains such a part.
    """
    raise FormatError(f"format {w.format.name!r} has no grammar: {type(part).__name__} is only read")


def token_text(token: str, least: int, most: int | None, blocked: tuple[Exclusion, ...] = ()) -> Rule:
    """Return the rule of a string up to and including `token`; with bounds, without the token's first character.

    Not every target can count characters in text that may contain beginnings of the token.
    """
    if least == 0 and most is None:
        return Raw(token, blocked)
    return seq(Repeat(Chars(token[0], negated=True), least, most), Lit(token))
