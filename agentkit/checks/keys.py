"""Redacts what looks like a key from everything that is shown or logged. Pure."""

from __future__ import annotations

import re
from typing import Final

BLOT: Final = "[key]"

_KEYLIKE = re.compile(r"\b(?:sk|pk|rk|gsk|xai|key)[-_][A-Za-z0-9_\-]{8,}|(?i:bearer)\s+[A-Za-z0-9._\-]{8,}")
_IN_ADDRESS = re.compile(
    r"(?<=://)[^/\s@]+@|(?i:(?<=[?&])([^=&\s]{0,40}(?:auth|key|secret|token|pass|sig)[^=&\s]{0,40}=))[^&\s'\"]+"
)


def without_keys(text: str) -> str:
    """Text without what looks like a key.

    >>> without_keys("Bearer abcdefgh12 is refused")
    '[key] is refused'
    """
    return _KEYLIKE.sub(BLOT, text)


def without_credentials(text: str) -> str:
    """The same, also without the credentials in URLs.

    >>> without_credentials("GET https://ada:secret@example.org/v1?api_key=abcdef&q=tea")
    'GET https://[key]@example.org/v1?api_key=[key]&q=tea'
    """
    return _IN_ADDRESS.sub(lambda found: f"{found[1] or ''}{BLOT}{'' if found[1] else '@'}", without_keys(text))
