"""How one kind of part is constrained, and the text that more than one of them holds.

The files in `parts/` make one `PartRules` of each part that they know; `parts/__init__.py` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from agentkit.errors import FormatError
from agentkit.grammar.arguments_as_rules import CallRules
from agentkit.grammar.rules import Blocked, Chars, Lit, Raw, Repeat, Rule, seq
from agentkit.toolspec import ToolSpec

NAME: Final = re.compile(r"[^\s<>{}\[\]()\"'`,;=]{1,256}\Z")
KEY: Final = re.compile(r"[^\s<>\"'=|/&](?:[^<>\"'=|/&\n]{0,200}[^\s<>\"'=|/&])?\Z")


def _nothing(part: object, edge: str, tool: ToolSpec) -> Iterable[Blocked]:
    return ()


@dataclass(frozen=True, slots=True)
class PartRules:
    """How one kind of part is constrained.

    Args:
        part: its class in `formats/format.py`; `str` for literals.
        rule: what may stand there in a call. `never_constrained` for a part that is only read.
        name: what a tool's name must match so that it can be read there; None where no name stands, or any may.
        keys: the same for the names of parameters.
        whole: whether its rule is made of the tool's whole schema, and so tells itself what of it cannot be enforced.
        announces: what makes a call of an offered tool, given the part and what stands before it, where that is
            common in prose. Free text must not hold it.
    """

    part: type
    rule: Callable[[CallRules, Any], Rule]
    name: re.Pattern[str] | None = None
    keys: re.Pattern[str] | None = None
    whole: bool = False
    announces: Callable[[Any, str, ToolSpec], Iterable[Blocked]] = _nothing


def never_constrained(w: CallRules, part: object) -> Rule:
    """The rule of a part that stands only in shapes which are read.

    Raises:
        FormatError: always: the written shape of the format holds such a part.
    """
    raise FormatError(f"format {w.format.name!r} has no grammar: {type(part).__name__} is only read")


def token_text(token: str, least: int, most: int | None, blocked: tuple[Blocked, ...] = ()) -> Rule:
    """A string up to and with `token`; one of bounded length without the token's first character.

    Not every target can count in text that may hold beginnings of the token.
    """
    if least == 0 and most is None:
        return Raw(token, blocked)
    return seq(Repeat(Chars(token[0], negated=True), least, most), Lit(token))
