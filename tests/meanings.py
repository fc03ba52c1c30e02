"""What a damaged value may mean: the characters, or what they are in a JSON or Python string. Knows no parser."""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterator
from typing import Any

from agentkit.formats.values import without_surrogates


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
    decoded = re.sub(r"&#?\w+;", lambda m: html.unescape(m[0]), text)
    out = {text, text.strip(), html.unescape(text), decoded, *_in_a_list(text)}
    for one in list(out):
        out |= {*_in_json(one), *(twice for decoded in _in_json(one) for twice in _in_json(decoded))}
        out |= {_unescaped(one), _unescaped(_unescaped(one)), *_in_python(one)}
    return out


def _in_a_list(text: str) -> set[str]:
    """The strings in a list, as JSON or Python write one."""
    if not text.startswith("["):
        return set()
    try:
        return {str(value) for _, value in leaves("", ast.literal_eval(text))}
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return set()


def _in_python(text: str) -> Iterator[str]:
    """What stands in a Python string of either quotes; where it closes and opens again, the strings are one."""
    for quote in "'\"":
        try:
            joined = re.sub(rf"{quote}\s*\+\s*{quote}", f"{quote} {quote}", text)
            joined = joined.replace("\\\n", "")  # a line goes on behind a backslash
            yield str(ast.literal_eval(quote + joined.replace("\n", "\\n").replace("\r", "\\r") + quote))
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
