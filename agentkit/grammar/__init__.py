"""Grammars for constrained decoding, from the declarations of formats and the schemas of tools. Built on `formats`."""

from __future__ import annotations

from agentkit.grammar.arguments_as_rules import Target
from agentkit.grammar.from_schema import Gap
from agentkit.grammar.targets import (
    TARGETS,
    ThinkingRule,
    exactly,
    grammar,
    grammar_gaps,
    grammar_targets,
    openings,
    why_no_grammar,
)

__all__ = [
    "TARGETS",
    "Gap",
    "Target",
    "ThinkingRule",
    "exactly",
    "grammar",
    "grammar_gaps",
    "grammar_targets",
    "openings",
    "why_no_grammar",
]
