"""The JSON bodies as rules."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.formats.format import (
    Envelope,
    Json,
    KeyEnvelope,
)
from agentkit.grammar.arguments_as_rules import CallRules
from agentkit.grammar.part_rules import PartRules
from agentkit.grammar.rules import Exclusion, Lit, Rule, seq
from agentkit.schemas.typed import values
from agentkit.toolspec import ToolSpec


def _json(w: CallRules, part: Json) -> Rule:
    return w.arguments()


def _envelope(w: CallRules, part: Envelope) -> Rule:
    head = f"{{{values.dump(part.name)}: {values.dump(w.tool.name)}, {values.dump(part.arguments[0])}: "
    return seq(Lit(head), w.arguments(), Lit("}"))


def _key_envelope(w: CallRules, part: KeyEnvelope) -> Rule:
    return seq(Lit(f"{{{values.dump(w.tool.name)}: "), w.arguments(), Lit("}"))


def _name_starts(part: Envelope, edge: str, tool: ToolSpec) -> Iterator[Exclusion]:
    yield Exclusion(f'"{part.name}" : {values.dump(tool.name)}', quotes=True)


def _key_starts(part: KeyEnvelope, edge: str, tool: ToolSpec) -> Iterator[Exclusion]:
    yield Exclusion(f"{values.dump(tool.name)} : {{", quotes=True)


RULES = (
    PartRules(Json, _json, whole=True),
    PartRules(Envelope, _envelope, announces=_name_starts, whole=True),
    PartRules(KeyEnvelope, _key_envelope, announces=_key_starts, whole=True),
)
