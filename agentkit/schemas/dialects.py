"""The part of JSON Schema that each reader accepts. Tables, used by `agentkit.schemas.schema_rewriter` and `.folding`.

OpenAI's strict mode requires an object at the root; in every object, all properties required and no others; optional
ones nullable; a type (or `anyOf`, `enum`, `$ref`) everywhere; and no keywords except those in `KEPT`. Anthropic's
structured outputs also require objects without other properties; optional properties may be omitted; bounds and
recursive schemas are not accepted. Engines that read schemas themselves accept more, and silently ignore what they do
not know.
Source: OpenAI's guide to structured outputs, "Supported schemas"; Anthropic's, "JSON Schema limitations"; xgrammar's
JSON Schema converter, 0.2.6.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

KEPT: Final = frozenset(
    (
        *("$ref", "$defs", "type", "description", "enum", "anyOf"),
        *("properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
        *("pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    )
)
"""The keywords of strict mode."""

SILENT: Final = frozenset({"title", "$schema", "$id", "$comment", "examples", "deprecated", "discriminator"})
"""Keywords that restrict nothing, so that losing them needs no report."""

REPORTED: Final = frozenset(
    (
        *("pattern", "format", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    )
)
"""Keywords that are moved to the description if they cannot stay."""

STRING_FORMATS: Final = frozenset(
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]
)
"""The values of `format` that strict mode supports."""

MAX_LEVELS: Final = 10
"""Strict mode's limit on nesting."""

MAX_PROPERTIES: Final = 5_000
"""Strict mode's limit on properties in one schema."""

MAX_ENUM: Final = 1_000
"""Strict mode's limit on the values of all enums of one schema."""

LONG_ENUM: Final = 250
MAX_LONG_ENUM: Final = 15_000
"""Strict mode's limit on the characters of one enum of strings that has more than `LONG_ENUM` values."""

MAX_CHARACTERS: Final = 120_000
"""Strict mode's limit on the characters of all names of properties and definitions, and of all values of enums."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The part of JSON Schema that one kind of constrained decoding, or another system, accepts.

    Args:
        kept: the accepted keywords.
        formats: the accepted values of `format`.
        optional: whether a property may be omitted; otherwise every one is required, and null means "omitted".
        recursive: whether a schema may contain itself.
        sized: whether strict mode's limits on enums, on characters and on levels through references apply.
        several: whether `type` may be a list, and an enum hold other values than strings.
        nested: whether an enum may hold lists and objects.
        patterns: matches the accepted values of `pattern`; None accepts all.
    """

    kept: frozenset[str]
    formats: frozenset[str]
    optional: bool
    recursive: bool
    sized: bool = False
    several: bool = True
    nested: bool = True
    patterns: re.Pattern[str] | None = None


OPENAI: Final = Dialect(KEPT, STRING_FORMATS, optional=False, recursive=True, sized=True)
ANTHROPIC: Final = Dialect(
    frozenset(
        (
            *("$ref", "$defs", "type", "description", "enum", "anyOf", "format"),
            *("properties", "required", "additionalProperties", "items"),
        )
    ),
    STRING_FORMATS | {"uri"},
    optional=True,
    recursive=False,
)

_SPELLED_ALIKE: Final = re.compile(
    r"""(?: \[\^ (?: [^\]\\\x00-\x1f] | \\[dDwWsS] | \\[^\w\s] )+ \]  # what a class leaves out may be anything
          | \[ (?!\^) (?: [^\]\\"\x00-\x1f] | \\[dDwWsS] | \\[^\w\s"\\] )+ \]
          | \( (?: \?: | (?!\?) )
          | [^\\"\[(\x00-\x1f] | \\[dDwWsS] | \\[^\w\s"\\]
        )*\Z""",
    re.VERBOSE,
)
"""Patterns of texts without quotes, backslashes and control characters.

xgrammar (0.2.8) compares a pattern with a string as JSON spells it, and so asks for an unescaped quote. It also
ignores lookarounds, and refuses the whole grammar for a word boundary or a Unicode property.
"""

XGRAMMAR: Final = Dialect(
    frozenset(
        (
            *("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "properties", "required"),
            *("additionalProperties", "items", "prefixItems", "minItems", "maxItems", "minLength", "maxLength"),
            *("pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
            *("patternProperties", "propertyNames", "minProperties", "maxProperties"),
        )
    ),
    STRING_FORMATS | {"uri"},
    optional=True,
    recursive=True,
    patterns=_SPELLED_ALIKE,
)

# ---------------------------------------------------------------- other systems: keywords of a parameter that they keep

VERL: Final = Dialect(frozenset(("type", "description", "enum")), frozenset(), optional=True, recursive=False)
"""verl from 0.8 on. Source: `verl.tools.schemas.OpenAIFunctionPropertySchema`, which drops everything else."""

EARLY_VERL: Final = Dialect(
    frozenset(("type", "description", "enum")), frozenset(), optional=True, recursive=False, several=False
)
"""verl up to 0.7: one type for each parameter, and enums of strings."""

HINTS: Final = Dialect(
    frozenset(("type", "description", "enum", "items")), frozenset(), optional=True, recursive=False, nested=False
)
"""The type hints of a function. Source: `transformers.utils.get_json_schema`, which TRL uses."""
