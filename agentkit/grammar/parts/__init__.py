"""The parts of a call as rules, in one file per kind as in `formats/bodies/`, and the single list of them.

Knows declarations, schemas and rules; depends on no target.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentkit.errors import FormatError
from agentkit.grammar.arguments_as_rules import CallRules
from agentkit.grammar.part_rules import PartRules
from agentkit.grammar.parts import (
    braced_rules,
    elements_rules,
    fixed_rules,
    json_rules,
    nested_rules,
    pairs_rules,
    pythonic_rules,
)
from agentkit.grammar.rules import Rule, seq

_FILES: Final = (fixed_rules, json_rules, pairs_rules, elements_rules, nested_rules, pythonic_rules, braced_rules)

PARTS: Final[Mapping[type, PartRules]] = {part.part: part for file in _FILES for part in file.RULES}
"""How each part is constrained, by its class."""


def call_rule(w: CallRules) -> Rule:
    """Return the rule of one call.

    Raises:
        FormatError: a part of the format, or a name, cannot be written as rules.
        NoRule: no arguments satisfy the schema.
    """
    kinds = [PARTS[type(part)] for part in w.format.call]
    _check_names(w, kinds)
    out = [kind.rule(w, part) for kind, part in zip(kinds, w.format.call, strict=True)]
    missing = [n for n in w.tool.parameters.get("required", ()) if n not in w.parameters]
    if missing and not any(kind.whole for kind in kinds):
        w.schemas.gap("", [f"required: {n}" for n in missing])
    return seq(*out)


def _check_names(w: CallRules, kinds: list[PartRules]) -> None:
    """Names must be readable at their place."""
    if any(kind.name is not None and not kind.name.match(w.tool.name) for kind in kinds):
        raise FormatError(f"format {w.format.name!r} cannot write the tool name {w.tool.name!r}")
    keys = [kind.keys for kind in kinds if kind.keys is not None]
    if bad := [n for n in w.parameters if not all(key.match(n) for key in keys)]:
        raise FormatError(f"format {w.format.name!r} cannot write the parameter names {bad} of {w.tool.name!r}")
