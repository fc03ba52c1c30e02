"""Formats in which every tool has an XML element of its own."""

from __future__ import annotations

from agentkit.formats.spec import Format, ToolElement

XML = Format("xml", (ToolElement(),), families=("any instructed model",))

ELEMENTS = (XML,)
