"""A second, simple reader of calls with only `json` and `ast`: finds what a model wrote without our parser.

Finds every JSON object with a name and arguments, anywhere, and every Python call with keyword arguments of literals
in a list. It repairs nothing and knows no format.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

Call = dict[str, Any]

_NAMES = ("name", "tool_name")
_ARGUMENTS = ("arguments", "parameters", "args")
_PYTHON = re.compile(r"\[?\s*[\w.]+\(.*\)\s*\]?", re.DOTALL)


def plain_calls(text: str) -> list[Call]:
    """Every JSON call in a text, else every call of a Python list."""
    return [*_json(text)] or [*_python(text)]


def wrote(raw: str, call: Call) -> bool:
    """Whether one of the calls in `raw` is this call; quoted values may have been unquoted."""
    return any(
        found["name"] == call["name"] and _same(found["arguments"], call["arguments"])
        for found in (*_json(raw), *_python(raw), *_named(raw, call["name"]))
    )


def _same(found: Any, read: Any) -> bool:
    if isinstance(found, dict) and isinstance(read, dict):
        return found.keys() == read.keys() and all(_same(found[k], read[k]) for k in found)
    if isinstance(found, str) and not isinstance(read, str):
        return bool(_value(found) == read)
    return bool(found == read)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost objects in a text, written in JSON or in Python."""
    at = 0
    while (at := text.find("{", at)) >= 0:
        try:
            value, length = json.JSONDecoder().raw_decode(text[at:])
        except ValueError:
            value, length = _literal(text[at:])
        if isinstance(value, dict):
            yield value
        at += max(length, 1)


def _literal(text: str) -> tuple[Any, int]:
    """The Python object at the start of a text, and its length; nothing if there is none."""
    for end in (m.end() for m in re.finditer("}", text)):
        value = _value(text[:end])
        if isinstance(value, dict):
            return value, end
    return None, 0


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(_Words().visit(ast.parse(text.strip(), mode="eval")))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError, ZeroDivisionError):
        return None


class _Words(ast.NodeTransformer):
    """JSON literals among Python's, as in `{'a': true}`, and products of numbers, as in `5*60`."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        words = {"true": True, "false": False, "null": None}
        return ast.Constant(words[node.id]) if node.id in words else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        left, right = ast.literal_eval(self.visit(node.left)), ast.literal_eval(self.visit(node.right))
        if isinstance(left, int | float) and isinstance(right, int | float):
            if isinstance(node.op, ast.Mult):
                return ast.Constant(left * right)
            if isinstance(node.op, ast.Div):
                return ast.Constant(left / right)
        return node


def _json(text: str) -> Iterator[Call]:
    for found in _objects(text):
        listed = found.get("tool_calls")
        for call in listed if isinstance(listed, list) else [found]:
            if isinstance(call, dict) and (name := next((call[k] for k in _NAMES if k in call), None)):
                arguments: Any = next((call[k] for k in _ARGUMENTS if k in call), {})
                arguments = _value(arguments) if isinstance(arguments, str) else arguments
                yield {"name": name, "arguments": arguments or {}}


def _named(raw: str, name: str) -> Iterator[Call]:
    """A name, followed by only the arguments as one object."""
    if name in raw:
        yield from ({"name": name, "arguments": found} for found in _objects(raw[raw.index(name) + len(name) :]))


def _python(text: str) -> Iterator[Call]:
    found = _PYTHON.search(text)
    try:
        body = ast.parse(found[0].strip(), mode="eval").body if found else None
    except (SyntaxError, ValueError):
        return
    for node in body.elts if isinstance(body, ast.List) else [body]:
        if isinstance(node, ast.Call):
            values = {k.arg: _value(ast.unparse(k.value)) for k in node.keywords}
            yield {"name": ast.unparse(node.func), "arguments": values}
