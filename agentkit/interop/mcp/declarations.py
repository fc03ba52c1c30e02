"""A server's declaration of a tool, made fit to be shown to a model: bounded, and without anything that acts as markup.

Pure. The author of a declaration may be hostile to the model's user.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentkit.errors import SchemaError
from agentkit.formats.quarantined_text import DeclarationQuarantine
from agentkit.schemas.walk import map_schemas
from agentkit.toolspec import ToolSpec

MAX_DEPTH: Final = 64  # levels of a schema; the deepest of a published server that we know of has 14
MAX_SCHEMA: Final = 256 * 1024  # characters of a schema as JSON
MAX_KEPT: Final = 20_000  # characters of a description that are pinned; all of it is compared
MAX_NAME: Final = 64  # what providers accept

Rename = Mapping[str, str] | Callable[[str], str | None]
"""New names for a server's tools, by their names there; None omits a tool."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """One tool as its server declares it, to be pinned; `shown` is how the model sees it, None if it cannot be.

    `output` is the schema of its structured results, which no model reads and which is not pinned; None without one.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    output: Mapping[str, Any] | None = None
    shown: ToolSpec | None = None

    @property
    def digest(self) -> str:
        """Changes whenever anything in it does."""
        everything = [self.name, self.description, self.schema]
        return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """As it is kept, to show a difference."""
        return {"name": self.name, "description": truncate(self.description, MAX_KEPT), "schema": self.schema}


def spec_of(declared: Declaration, name: str, max_description: int) -> ToolSpec:
    """A tool as the model sees it.

    Args:
        declared: as the server declares it.
        name: its name here.
        max_description: characters of its description, and of each description in its schema.

    Raises:
        SchemaError: its schema is too large or too deep, or refers to another document.
        FormatError: a name or a value that the model would have to write contains a control token, or a character that
            nobody sees.
    """
    refuse_large(declared.schema, declared.name)
    schema = _plain(declared.schema, max_description)
    return DeclarationQuarantine("xml").tool(ToolSpec(name, truncate(declared.description, max_description), schema))


def local_name(declared: str, prefix: str) -> str:
    """A name that every provider accepts: `files.read/all` of the server `disk` is `disk_files_read_all`.

    Gemini refuses one that begins with a digit or a hyphen. Source: google-genai, `FunctionDeclaration.name`.
    """
    name = re.sub(r"\A(?=[0-9-])", "_", prefix + re.sub(r"[^A-Za-z0-9_-]", "_", declared))
    if len(name) <= MAX_NAME:
        return name
    return f"{name[: MAX_NAME - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def is_literal(declared: str) -> bool:
    """Return True if `local_name` only puts the prefix before a name."""
    return local_name(declared, "") == declared


def truncate(text: str, size: int) -> str:
    """Return a text of at most about `size` characters."""
    return text if len(text) <= size else f"{text[:size]} [… cut: {len(text) - size:,} more characters]"


def refuse_large(schema: Mapping[str, Any], name: str) -> None:
    """Refuse a schema that would make the code that walks it slow or fail.

    Raises:
        SchemaError: names the part that is too large.
    """
    level: list[Any] = [schema]
    for depth in range(MAX_DEPTH + 1):
        level = [
            inner
            for one in level
            if isinstance(one, Mapping | list)
            for inner in (one.values() if isinstance(one, Mapping) else one)
        ]
        if not level:
            break
        if depth == MAX_DEPTH:
            raise SchemaError(f"{name!r:.80}: its schema is nested deeper than {MAX_DEPTH} levels")
    size = len(json.dumps(schema))
    if size > MAX_SCHEMA:
        raise SchemaError(f"{name!r:.80}: its schema has {size:,} characters; at most {MAX_SCHEMA:,} are accepted")


def _plain(schema: Any, size: int) -> Any:
    """A schema without the keywords that name documents, as it is used without them, and with shorter descriptions."""
    if not isinstance(schema, Mapping):
        return schema
    return {
        keyword: truncate(value, size)
        if keyword in ("description", "title") and isinstance(value, str)
        else map_schemas(keyword, value, lambda inner, _: _plain(inner, size))
        for keyword, value in schema.items()
        if keyword not in ("$id", "$schema")
    }
