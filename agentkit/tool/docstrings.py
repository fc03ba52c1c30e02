"""Descriptions from docstrings: the tool's, and one per parameter. Google, NumPy, Sphinx and Epydoc style.

Knows no signature: `agentkit.tool.signature` checks that the documented parameters exist.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

NOT_PARAMETERS = frozenset({"attribute"})
"""Sections that docstring-parser lists as parameters although they document something else."""


@dataclass(frozen=True, slots=True)
class Docstring:
    """A parsed docstring.

    Args:
        description: the text before any section, paragraphs kept.
        parameters: descriptions by name, in the documented order.
    """

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> Docstring:
    r"""Read a docstring in any of the four styles.

    >>> read_docstring("Add.\n\nArgs:\n    a: the first\n    b (int): the second")
    Docstring(description='Add.', parameters={'a': 'the first', 'b': 'the second'})
    """
    text = inspect.cleandoc(text or "").strip()
    if not any(mark in text for mark in (":", "---", "@")):  # no sections in any style: skip the parser
        return Docstring(text)
    from docstring_parser import ParseError, parse

    try:
        parsed = parse(f"\n{_indent_section(text)}")  # which removes the indentation of all lines after the first one
    except (ParseError, LookupError, ValueError):  # an unknown style; not all of the parser's errors are ParseErrors
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


def _indent_section(text: str) -> str:
    """A docstring that is one section and starts with its title: its indentation was taken for that of the code."""
    from docstring_parser.google import DEFAULT_SECTIONS

    title, _, rest = text.partition("\n")
    begins = title.rstrip().removesuffix(":") in (section.title for section in DEFAULT_SECTIONS)
    return f"{title}\n{textwrap.indent(rest, '    ')}" if begins and rest[:1] not in (" ", "-", "\n") else text
