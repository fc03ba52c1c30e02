"""Rules for calls that run without asking, as numbered lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentkit.checks.visible_text import visible
from agentkit.errors import ConfigError
from agentkit.threads import AllowRule


def rule_lines(rules: Sequence[AllowRule]) -> Iterator[str]:
    """Yield a line for each rule, with the number by which it is revoked."""
    for n, rule in enumerate(rules, 1):
        yield visible(f"{n}. {rule}")
    if not rules:
        yield "no calls run without asking that need approval"


def numbered_rule(rules: Sequence[AllowRule], number: str) -> AllowRule:
    """Return the rule that has a number.

    Raises:
        ConfigError: there is none.
    """
    chosen = [rule for n, rule in enumerate(rules, 1) if str(n) == number]
    if not chosen:
        raise ConfigError(f"there is no rule {number!r} (rules: {len(rules)})")
    return chosen[0]
