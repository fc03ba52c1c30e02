"""The examples in docstrings: lines that begin with >>> become a block of code, as Markdown would not see one.

mkdocstrings gives docstrings to Markdown, where >>> is a quotation in a quotation in a quotation. griffe, which reads
the code for it, calls `FencedDoctests` for each object.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^>>> .*(?:\n(?!\s*$).+)*", re.MULTILINE)


def fenced(text: str) -> str:
    """A docstring whose examples are blocks of code; an example ends before an empty line."""
    return DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", text)


class FencedDoctests(griffe.Extension):
    """Fences the examples of each docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each module, class, function and attribute, once."""
        if obj.docstring is not None and not obj.is_alias:
            obj.docstring.value = fenced(obj.docstring.value)
