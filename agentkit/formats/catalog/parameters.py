"""Formats whose arguments are repeated key and value pairs between delimiters."""

from __future__ import annotations

from agentkit.formats.spec import Format, NameTag, Section, Tag, TagParameters

INVOKE = Format(
    "invoke",
    (NameTag("invoke", "name"), "\n", TagParameters("parameter", "name"), Tag("invoke", closing=True)),
    section=Section(Tag("function_calls"), Tag("function_calls", closing=True)),
    aliases=("function_calls",),
    families=("Claude (in text)",),
)

PARAMETERS = (INVOKE,)
