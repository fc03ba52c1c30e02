"""What a docstring says to a model: a description, and one per parameter. Google, NumPy, Sphinx and Epydoc style.

Knows no signature: whether the documented parameters exist is `agentkit.tool.signature`'s to say.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field

NOT_PARAMETERS = frozenset({"attribute"})
"""Sections that docstring-parser lists among the parameters but that document something else."""


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring, read.

    Args:
        description: the text before any section, paragraphs kept.
        parameters: descriptions by name, in the order in which they are documented.
    """

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> Docstring:
    r"""Read a docstring in any of the four styles.

    >>> read_docstring("Add.\n\nArgs:\n    a: the first\n    b (int): the second")
    Docstring(description='Add.', parameters={'a': 'the first', 'b': 'the second'})
    """
    text = inspect.cleandoc(text or "").strip()
    if not any(mark in text for mark in (":", "---", "@")):  # no section of any style: spare the parser
        return Docstring(text)
    from docstring_parser import ParseError, parse

    try:
        parsed = parse(text)
    except (ParseError, LookupError, ValueError):  # sections of no known style; some faults of the parser escape it raw
        return Docstring(text)
    gap = "\n\n" if parsed.blank_after_short_description else "\n"
    described = gap.join(part for part in (parsed.short_description, parsed.long_description) if part)
    documented = {
        name.strip().lstrip("*"): (param.description or "").strip()
        for param in parsed.params
        if param.args[0] not in NOT_PARAMETERS
        for name in param.arg_name.split(",")
    }
    return Docstring(described if described or documented else text, documented)
