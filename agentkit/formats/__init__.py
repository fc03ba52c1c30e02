"""Text formats: declared as data, read by one engine, written from the same declarations.

>>> from agentkit.formats import ToolSpec, parse
>>> add = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}})
>>> [call] = calls(parse('<invoke name="add"><parameter name="a">1</parameter></invoke>', "invoke", [add]))
>>> call.name, call.arguments
('add', {'a': 1})
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.foreign.absent_imports import explained_module

if TYPE_CHECKING:
    from agentkit.formats.catalog import CATALOG
    from agentkit.formats.control import restore
    from agentkit.formats.engine import Parser, get
    from agentkit.formats.format import Format, Limits
    from agentkit.formats.quarantined_text import quarantine, render_result
    from agentkit.formats.teach import render_output_prompt, render_prompt
    from agentkit.formats.whole_texts import auto, calls, names, parse, recoverable
    from agentkit.formats.write import render_calls
    from agentkit.schemas.typed.repairs import REPAIRS
    from agentkit.toolspec import Element, InCode, Node, OutputSchema, ToolSpec

__all__ = [
    "CATALOG",
    "REPAIRS",
    "Element",
    "Format",
    "InCode",
    "Limits",
    "Node",
    "OutputSchema",
    "Parser",
    "ToolSpec",
    "auto",
    "calls",
    "get",
    "names",
    "parse",
    "quarantine",
    "recoverable",
    "render_calls",
    "render_output_prompt",
    "render_prompt",
    "render_result",
    "restore",
]

explained_module(
    __name__,
    homes={
        "agentkit.formats.catalog": "CATALOG",
        "agentkit.formats.control": "restore",
        "agentkit.formats.engine": "Parser get",
        "agentkit.formats.format": "Format Limits",
        "agentkit.formats.quarantined_text": "quarantine render_result",
        "agentkit.schemas.typed.repairs": "REPAIRS",
        "agentkit.formats.teach": "render_output_prompt render_prompt",
        "agentkit.formats.whole_texts": "auto calls names parse recoverable",
        "agentkit.formats.write": "render_calls",
        "agentkit.toolspec": "Element InCode Node OutputSchema ToolSpec",
    },
)
