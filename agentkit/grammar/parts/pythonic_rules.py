"""A Python call as rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agentkit.formats.format import (
    PythonCall,
)
from agentkit.grammar.arguments_as_rules import CallRules
from agentkit.grammar.from_schema import PYTHON
from agentkit.grammar.part_rules import PartRules
from agentkit.grammar.rules import Exclusion, Lit, Rule, seq
from agentkit.toolspec import ToolSpec

_PYTHON_NAME: Final = re.compile(r"[^\W\d][\w.-]{0,255}\Z")
_IDENTIFIER: Final = re.compile(r"[^\W\d]\w*\Z")


def _python_call(w: CallRules, part: PythonCall) -> Rule:
    members = w.schemas.members(w.tool.parameters, PYTHON, "", Lit(")"), lambda n: Lit(f"{n}="))
    return seq(Lit(f"{w.tool.name}("), members)


def _name_starts(part: PythonCall, edge: str, tool: ToolSpec) -> Iterator[Exclusion]:
    yield Exclusion(f"{edge} {tool.name} (".strip())


RULES = (PartRules(PythonCall, _python_call, name=_PYTHON_NAME, keys=_IDENTIFIER, announces=_name_starts),)
