"""Formats in which every tool has its own XML element."""

from __future__ import annotations

from agentkit.formats.format import Format, Json, Name, NameTag, Shape, Tag, TextArgument, ToolElement

XML = Format(
    "xml",
    (ToolElement(),),
    also=(Shape(("<tool>", Name(), "</tool>\n<tool_input>", Json(), "</tool_input>")),),  # as LangChain's agents do
    families=("any instructed model",),
)
CLINE = Format(
    "cline",
    (ToolElement("children"),),
    families=("any model instructed in the manner of Cline or Roo Code",),
)
LEGACY = Format(
    "legacy",
    (ToolElement("text"),),
    aliases=("open_instruct",),
    families=("open-instruct's legacy rollouts",),
)
DR_TULU = Format(
    "dr_tulu",
    (NameTag("call_tool", "name"), TextArgument(), Tag("call_tool", closing=True)),
    families=("DR Tulu",),
)

ELEMENTS = (XML, CLINE, LEGACY, DR_TULU)
