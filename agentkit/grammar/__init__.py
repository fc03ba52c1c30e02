"""Grammars for constrained decoding, from the declarations of formats and the schemas of tools. Stands on `formats`."""

from __future__ import annotations

from agentkit.grammar.arguments_as_rules import Target
from agentkit.grammar.from_schema import Gap
from agentkit.grammar.targets import TARGETS, grammar, grammar_gaps, grammar_targets, why_no_grammar

__all__ = ["TARGETS", "Gap", "Target", "grammar", "grammar_gaps", "grammar_targets", "why_no_grammar"]
