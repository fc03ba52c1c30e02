"""The tools as a prompt lists them, in words: the description and the parameters of each.

A list in JSON Schema made models answer in JSON in formats that are not JSON (docs/prompts.md), and is longer. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from agentkit.schemas import walk
from agentkit.schemas.words import describe
from agentkit.toolspec import ToolSpec

_DEPTH: Final = 4  # levels of nested objects: a recursive schema ends there


def describe_tool(tool: ToolSpec, heading: str = "", place: Callable[[str], str] = "`{}`".format) -> str:
    """Return one tool: a heading, its description, and a line for each parameter, with those of nested objects below.

    Args:
        tool: as it is shown, that is, quarantined.
        heading: the name or tag that calls it; its name by default.
        place: the place of a parameter of this name, in a few words; the name alone by default.
    """
    lines = [f"## {heading or tool.name}", "", tool.description or tool.name]
    lines += _properties(tool.parameters, tool.parameters, place, ())
    return "\n".join(lines)


def _properties(
    schema: walk.Schema,
    root: walk.Schema,
    place: Callable[[str], str],
    above: tuple[walk.Schema, ...],
) -> Iterator[str]:
    """Yield a line for each property. `above`: the objects around it, which are not describe_tool again."""
    for name, stated in schema.get("properties", {}).items():
        stated = stated if isinstance(stated, Mapping) else {}
        needed = "required" if name in schema.get("required", ()) else "optional"
        about = f": {stated['description'].rstrip('. ')}." if stated.get("description") else ""
        default = f" Default {_json(stated['default'])}." if stated.get("default") is not None else ""
        yield f"- {place(name)} ({_type(stated, root, _DEPTH)}, {needed}){about}{default}"
        if len(above) < _DEPTH:
            inner = [found for found in _objects(stated, root, _DEPTH) if found not in (*above, schema)]
            for number, found in enumerate(inner):
                if number:
                    yield "  or:"
                lines = _properties(found, root, "`{}`".format, (*above, schema))
                yield from (f"  {line}" for line in lines)


def _objects(schema: walk.Schema, root: walk.Schema, depth: int) -> Iterator[walk.Schema]:
    """Yield the objects with known properties that a value may be, or be a list of."""
    for plain in walk.alternatives(schema, root):
        if plain.get("properties"):
            yield plain
        elif depth and isinstance(plain.get("items"), Mapping):
            yield from _objects(plain["items"], root, depth - 1)


def _type(schema: walk.Schema, root: walk.Schema, depth: int) -> str:
    """Return a schema in a few words; all values of an `enum`, since one of them must be written."""
    words: list[str] = []
    for plain in walk.alternatives(schema, root):
        if "enum" in plain or "const" in plain:
            words += map(_json, plain.get("enum", [plain.get("const")]))
        elif depth and plain.get("type") == "array" and isinstance(plain.get("items"), Mapping):
            words.append(f"list of {_type(plain['items'], root, depth - 1)}")
        elif plain.get("properties"):
            words.append("object")
        else:
            words.append(describe(plain, root))
    return " or ".join(dict.fromkeys(words))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
