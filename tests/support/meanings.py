"""What a damaged value may mean: the characters, or what they are in a JSON or Python string. Knows no parser."""

from __future__ import annotations

import ast
import html
import html.entities
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from agentkit.formats.values import load, same
from agentkit.messages import ToolCall
from agentkit.unicode import without_surrogates


def leaves(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The strings, numbers, words and keys in a value, each under the key of its argument."""
    if isinstance(value, dict):
        for k, v in value.items():
            yield key, k
            yield from leaves(key, v)
    elif isinstance(value, list):
        for v in value:
            yield from leaves(key, v)
    else:
        yield key, value


def readings(text: str) -> set[str]:
    """What a damaged value may mean as it stands: the characters, or what they are in a JSON or Python string."""
    text = str(without_surrogates(text))
    decoded = re.sub(r"&#?\w+;", _entity, text)
    out = {text, text.strip(), html.unescape(text), decoded, *_in_a_list(text)}
    for one in list(out):
        out |= {*_in_json(one), *(twice for decoded in _in_json(one) for twice in _in_json(decoded))}
        python = {*_in_python(one)}  # strings joined by `+` may be in JSON that is itself a string
        out |= {_unescaped(one), _unescaped(_unescaped(one)), *python, *map(_unescaped, python)}
    return {str(without_surrogates(one)) for one in out}


def _entity(found: re.Match[str]) -> str:
    """What a whole entity stands for; with damage inside it is text, though HTML would read its beginning.

    So is a number with more digits than that of any character.
    """
    if len(found[0]) > len("&#x10ffff;"):
        return found[0]
    whole = re.fullmatch(r"&#(?:\d+|[xX][\da-fA-F]+);", found[0]) is not None or found[0][1:] in html.entities.html5
    return html.unescape(found[0]) if whole else found[0]


def _in_a_list(text: str) -> set[str]:
    """The strings in a list, as JSON or Python write one."""
    if not text.startswith("["):
        return set()
    text = text.replace("\n", "\\n").replace("\r", "\\r")  # a string may hold a line end as it is
    try:
        return {str(value) for _, value in leaves("", ast.literal_eval(text))}
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return set()


def _in_python(text: str) -> Iterator[str]:
    """What stands in a Python string of either quotes, or in strings side by side, which are one."""
    for quote in ("'", '"', ""):
        try:
            joined = re.sub(rf"{quote}\s*\+\s*{quote}", f"{quote} {quote}", text)
            joined = re.sub(r"\\(?:\r\n?|\n)", "", joined)  # a line goes on behind a backslash
            joined = joined.replace("\n", "\\n").replace("\r", "\\r").replace("\x00", "\\x00")
            found = ast.literal_eval(quote + joined + quote)
            if isinstance(found, str):
                yield found
        except (ValueError, SyntaxError, MemoryError, RecursionError):  # brackets nested too deep for its parser
            continue


def _unescaped(text: str) -> str:
    """What stands in a string with the escapes that JSON and Python share; what is no escape of theirs stays."""
    return _ESCAPE.sub(lambda m: _ESCAPES.get(m[1][:1]) or chr(int(m[1][1:], 16)), text)


_ESCAPE = re.compile(r"\\([nrt\"'\\/]|u[0-9a-fA-F]{4})")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\", "/": "/"}


def _in_json(text: str) -> Iterator[str]:
    """What stands in a JSON string, or in one with its quotes."""
    for loads in (lambda t: json.loads(f'"{t}"', strict=False), json.loads):
        try:
            yield str(without_surrogates(loads(text)))
        except (ValueError, RecursionError):
            continue


TAG = re.compile(r"<(/?)((?:｜DSML｜ )?[^\s<>/=|\]][^\s<>/=|]*)")


_CLOSES_ITSELF = re.compile(r"<[^\s<>/][^<>]*/>")


def balanced(text: str, tags: Collection[str] | None = None) -> bool:
    """Whether every tag in a value that is closed is opened there, and the other way round; of these tags, or any."""
    text = _CLOSES_ITSELF.sub("", text)
    found = [(closing, name) for closing, name in TAG.findall(text) if tags is None or name in tags]
    return Counter(n for c, n in found if c) == Counter(n for c, n in found if not c)


def agrees(text: str, key: str | None, call: ToolCall) -> bool:
    """Whether what streamed of a parameter, or of all arguments as JSON, is what the finished call has."""
    if key is None:
        try:
            return bool(same(load(text or "{}", strict=False), dict(call.arguments)))
        except ValueError:
            return False
    value = call.arguments.get(key)
    said = without_surrogates(text)
    times = len(said) // len(value) if value and isinstance(value, str) else 1  # what is given twice streams twice
    return not isinstance(value, str) or said == value * times or value in _in_json(said)


def says_python(call: ToolCall) -> bool:
    """Whether Python itself reads these arguments in the call's text: however they came about, the text says them."""
    try:
        read = ast.parse(call.raw.strip(), mode="eval").body
        if not isinstance(read, ast.Call) or read.args:
            return False
        given = {k.arg: ast.literal_eval(_JOINED.visit(k.value)) for k in read.keywords if k.arg is not None}
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return False
    return bool(same(given, dict(call.arguments)))


class _Joined(ast.NodeTransformer):
    """Strings joined by `+` are one."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        match (self.visit(node.left), node.op, self.visit(node.right)):
            case (ast.Constant(str(first)), ast.Add(), ast.Constant(str(second))):
                return ast.Constant(first + second)
            case _:
                return node


_JOINED = _Joined()


def plain(text: str) -> str:
    """A text as names are compared: without escapes, case, joiners and, as nothing can carry them, half surrogates.

    However many times it was escaped: a name that holds escapes is written with more of them.
    """
    while (once := _unescaped(text)) != text:
        text = once
    return re.sub(r"[_\\-]", "", str(without_surrogates(text))).casefold()
