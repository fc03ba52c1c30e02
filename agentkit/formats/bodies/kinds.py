"""The single list of all kinds of parts. Code that reads, writes or teaches a call finds its part's kind here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentkit.formats.bodies import braced_body, elements, fixed_parts, json, nested_body, pairs, pythonic
from agentkit.formats.kind import PartKind

_FILES: Final = (fixed_parts, json, pairs, elements, nested_body, pythonic, braced_body)

KINDS: Final[Mapping[type, PartKind]] = {kind.part: kind for file in _FILES for kind in file.KINDS}
"""Each kind by the class of its parts."""
