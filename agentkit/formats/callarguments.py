"""The arguments of one call while it is read: each value, typed by the tool's schema, and the repairs of values.

Knows the declarations of the tool, but neither the call's form nor its opening.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agentkit.formats.reader import Damage, Reader
from agentkit.schemas import walk
from agentkit.schemas.typed import values
from agentkit.schemas.typed.exact import exactly, rounded
from agentkit.schemas.typed.repairs import LEADING_ZEROS, QUOTED_VALUE, WRAPPED_ARGUMENTS
from agentkit.toolspec import UNDECLARED, ToolSpec

_DECIMAL = re.compile(r"(?<![\w.])0[0-9]+(?![\w.])").search
_WRAPPERS = ("arguments", "input", "properties")
"""Source: vLLM's parsers of DeepSeek V3.2 (`arguments`, `input`) and of MiniCPM 5 (`properties`), with their tests."""


def _precise(schema: walk.Schema, root: walk.Schema) -> bool:
    """Return True if an integer or a decimal may be in a value; for a schema elsewhere, it may."""
    if "$ref" in (text := str(schema)):
        text += str(root.get("$defs"))
    return "'integer'" in text or "'decimal'" in text


class ParameterKinds:
    """The parameters of a tool by the values that its schema allows, computed once.

    `words` accept any text, as it is written; `texts` accept a string; `others` is True if parameters that the schema
    does not name accept one; in `precise`, all digits of a number count.
    """

    __slots__ = ("known", "others", "precise", "texts", "tool", "words")

    def __init__(self, tool: ToolSpec) -> None:
        self.tool = tool
        root, self.known = tool.parameters, tool.parameters.get("properties", {})
        more = root.get("additionalProperties")
        self.texts = frozenset(name for name in self.known if self._is_text(tool.schema_of(name)))
        self.words = frozenset(name for name in self.texts if values.is_any_text(tool.schema_of(name), root))
        self.precise = frozenset(name for name in self.known if _precise(tool.schema_of(name), root))
        self.others = self._is_text(more if isinstance(more, Mapping) else {})

    def _is_text(self, schema: walk.Schema) -> bool:
        return not schema or values.accepts("", schema, self.tool.parameters)

    def fits(self, arguments: Mapping[str, Any]) -> bool:
        """Return True if no repair changes these arguments: none is a wrapper, or a string that may not be one."""
        if len(arguments) == 1 and not arguments.keys().isdisjoint(_WRAPPERS):
            return False
        for name, value in arguments.items():
            if isinstance(value, str):
                if name not in self.texts and (name in self.known or not self.others):
                    return False
            elif name in self.precise and rounded(value):
                return False
        return True


class CallArguments:
    """The arguments of a call, as far as they are read.

    `tool` is the offered tool that is called, None if there is none or its name is not known yet.
    `body` is the offset at which a JSON body starts, -1 before it.
    """

    __slots__ = ("body", "by_name", "repairs", "tool")

    def __init__(self) -> None:
        self.tool: ToolSpec | None = None
        self.by_name: dict[str, Any] = {}
        self.repairs: list[str] = []
        self.body = -1

    def schema(self, parameter: str) -> tuple[walk.Schema, walk.Schema]:
        """Return the schema of a parameter, and the one in which its references are resolved."""
        return (self.tool.schema_of(parameter), self.tool.parameters) if self.tool else (UNDECLARED, {})

    def is_data(self, parameter: str) -> bool:
        """Return True if a parameter accepts no text, by its schema."""
        schema, root = self.schema(parameter)
        return bool(schema) and not values.accepts("", schema, root)

    def put(self, r: Reader, parameter: str, text: str | None, *, nulls: bool = True) -> None:
        """Add an argument written as text; None for one that was named without a value.

        Without `nulls`, the word null is text if the parameter may be a string.
        """
        schema, root = self.schema(parameter)
        if text is None:
            self.set(r, parameter, None if values.accepts_null(schema, root) else values.read("", schema, root))
        else:
            self._put_read(r, parameter, text, schema, root, nulls=nulls)

    def put_written(self, r: Reader, parameter: str, text: str, kind: str | None, *, verbatim: bool = False) -> None:
        """Add an argument written as text, of a type that may be written next to it.

        Args:
            r: the reader.
            parameter: its name.
            text: its value, byte-exact.
            kind: `string` or `true` for text; another JSON type; `false` for JSON, or text if the schema allows only
                that; None or empty if only the schema has the type.
            verbatim: whether it is in CDATA: then the word null is text if the parameter may be a string.
        """
        if kind in ("string", "true"):
            self.set(r, parameter, text)
        elif kind == "false" and not (self.tool is not None and self.tool.declares(parameter)):
            self.set(r, parameter, values.read(text, {}, {}))
        elif kind and kind != "false":
            self._put_read(r, parameter, text, {"type": kind}, {}, nulls=False)
        else:
            self.put(r, parameter, text, nulls=not verbatim)

    def _put_read(
        self, r: Reader, parameter: str, text: str, schema: walk.Schema, root: walk.Schema, *, nulls: bool
    ) -> None:
        value = self.read(text, schema, root, r.repairs, nulls=nulls)
        if (
            isinstance(value, str)
            and value.lstrip()[:1] in ("{", "[")
            and schema
            and not values.accepts("", schema, root)
        ):
            try:
                values.load(value)
            except values.DuplicateKey as e:  # it stayed text because it repeats a key
                raise Damage("ambiguous_call", f"in {parameter!r}, {e}", r.offset) from e
            except ValueError:
                pass
        self.set(r, parameter, value)

    def read(
        self, text: str, schema: walk.Schema, root: walk.Schema, allowed: frozenset[str], *, nulls: bool = False
    ) -> Any:
        """Return the value of a text for this schema; the text itself if that takes a repair that is not allowed."""
        value = values.read(text, schema, root, nulls=nulls)
        if "0" in text and _DECIMAL(text) and LEADING_ZEROS in allowed:
            dated = values.read(text, schema, root, nulls=nulls, zeros=True)
            if not values.same(dated, value):
                self.note(LEADING_ZEROS)
                value = dated
        return value

    def set(self, r: Reader, parameter: str, value: Any) -> None:
        """Add an argument's value; a second one must be the same."""
        try:
            values.refuse_other(self.by_name, parameter, value)
        except values.DuplicateKey as e:
            raise Damage("ambiguous_call", f"parameter {e}", r.offset) from e
        self.by_name[parameter] = value

    def note(self, repair: str) -> None:
        """Note that a repair was made."""
        if repair not in self.repairs:
            self.repairs.append(repair)

    def repair(self, allowed: frozenset[str]) -> None:
        """Repair arguments that were read, as the tool's schema requires; all digits of their numbers are kept."""
        if self.tool is None:
            return
        if rounded(self.by_name):
            self.by_name = exactly(self.by_name, self.tool.parameters, self.tool.parameters)
        if WRAPPED_ARGUMENTS in allowed and len(self.by_name) == 1:
            self.unwrap(self.tool, allowed)
        if QUOTED_VALUE in allowed:
            self.unquote(allowed)

    def unquote(self, allowed: frozenset[str]) -> None:
        """Read strings as the numbers, booleans, lists and objects they write, if the schema allows no string."""
        for name, value in self.by_name.items():
            if not isinstance(value, str):
                continue
            schema, root = self.schema(name)
            if schema and not values.accepts(value, schema, root):
                read = self.read(value, schema, root, allowed)
                if not isinstance(read, str) and (not isinstance(read, list) or value.lstrip()[:1] in ("[", "(")):
                    self.by_name[name] = read
                    self.note(QUOTED_VALUE)

    def unwrap(self, tool: ToolSpec, allowed: frozenset[str]) -> None:
        """Unwrap arguments from one that only wraps them, if the tool has no parameter of that name."""
        ((name, value),) = self.by_name.items()
        known = tool.parameters.get("properties", {})
        if name not in _WRAPPERS or name in known or not known:
            return
        inner = self.read(value, {"type": "object"}, {}, allowed) if isinstance(value, str) else value
        if isinstance(inner, dict) and inner.keys() <= known.keys():
            self.by_name = inner
            self.note(WRAPPED_ARGUMENTS)
