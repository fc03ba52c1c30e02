"""The limit on values in a server's message, checked before its bytes are parsed. Pure.

A value costs far more than its bytes: `[],` takes 50 times its size as Python objects, and the official SDK validates
each item of a result separately.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

VALUES: Final = 200_000
"""Arrays, objects and commas in one message: a table of 10,000 rows with 10 named fields has 110,000."""
ITEMS: Final = 2_000
"""Content items of one result, each of which the SDK validates; a page of search results has some hundreds."""

_TOKEN: Final = re.compile(rb'([,\[{])|"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_TOKENS: Final = 3 * VALUES  # a comma precedes two strings at most, a key and a value


def too_many(message: bytes | bytearray) -> str:
    """Return an error message if JSON text has too many values, else an empty text.

    >>> too_many(b'{"text": "' + b"," * 1_000_000 + b'"}'), too_many(b"[" + b"[]," * 100_001 + b"[]]")
    ('', 'its answer has more than 200,000 values')
    """
    if sum(map(message.count, (b",", b"[", b"{"))) <= VALUES:  # also those in strings
        return ""
    tokens = marks = 0
    for token in islice(_TOKEN.finditer(message), _TOKENS + 1):
        tokens += 1
        marks += token.lastindex is not None
    return f"its answer has more than {VALUES:,} values" if marks > VALUES or tokens > _TOKENS else ""
