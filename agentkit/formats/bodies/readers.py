"""The table of how each part of a declaration is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from agentkit.formats.bodies.braced import read_braced
from agentkit.formats.bodies.elements import read_element, read_name_tag, read_text_argument
from agentkit.formats.bodies.fixed import (
    read_call_id,
    read_counted_name,
    read_literal,
    read_name,
    read_recipient,
    read_skip,
    read_tag,
)
from agentkit.formats.bodies.json import read_envelope, read_json, read_key_envelope
from agentkit.formats.bodies.nested import read_nested_tags
from agentkit.formats.bodies.pairs import read_pairs, read_tag_parameters
from agentkit.formats.bodies.pythonic import read_python_call
from agentkit.formats.call import CallReader
from agentkit.formats.format import (
    Braced,
    CallId,
    CountedName,
    Envelope,
    FormatPart,
    Json,
    KeyEnvelope,
    Name,
    NameTag,
    NestedTags,
    Pairs,
    PythonCall,
    Recipient,
    Skip,
    Tag,
    TagParameters,
    TextArgument,
    ToolElement,
)
from agentkit.formats.reader import Reader, Wait

Read = Callable[[Reader, CallReader, Any], Wait]

READERS: Final[Mapping[type[FormatPart], Read]] = {
    str: read_literal,
    Tag: read_tag,
    Name: read_name,
    CountedName: read_counted_name,
    CallId: read_call_id,
    Recipient: read_recipient,
    NameTag: read_name_tag,
    TagParameters: read_tag_parameters,
    Pairs: read_pairs,
    Json: read_json,
    Envelope: read_envelope,
    KeyEnvelope: read_key_envelope,
    PythonCall: read_python_call,
    Skip: read_skip,
    Braced: read_braced,
    NestedTags: read_nested_tags,
    TextArgument: read_text_argument,
    ToolElement: read_element,
}
