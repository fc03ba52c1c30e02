"""Redacts anything that looks like a key from texts that are shown or logged. Pure."""

from __future__ import annotations

import re
from typing import Final

BLOT: Final = "[key]"

_MEMBERS: Final = 5  # exceptions of a group that are shown

_KEYLIKE = re.compile(
    r"""\b(?:sk|pk|rk|gsk|xai|key)[-_][A-Za-z0-9_\-]{8,}
    | \b(?:gh[oprsu]_|github_pat_|glpat-|xox[abeprs]-|hf_|AKIA|AIza|eyJ)[A-Za-z0-9_.\-]{12,}  # GitHub … JSON Web Tokens
    | (?i:bearer|basic)\s+(?=[A-Za-z0-9._\-+/]*[0-9=_])[A-Za-z0-9._\-+/=]{8,}
    | (?i:bearer)\s+[A-Za-z0-9._\-]{8,}""",
    re.VERBOSE,
)
_IN_ADDRESS = re.compile(
    r"(?<=://)[^/\s@]+@|(?i:(?<=[?&])([^=&\s]{0,40}(?:auth|key|secret|token|pass|sig)[^=&\s]{0,40}=))[^&\s'\"]+"
)
_BEFORE_HOST: Final = re.compile(r"(?is)^([a-z][a-z0-9+.-]*://)?.*@")  # a password may contain anything


def without_keys(text: str) -> str:
    """Replace anything that looks like a key.

    >>> without_keys("Bearer abcdefgh12 is refused")
    '[key] is refused'
    """
    return _KEYLIKE.sub(BLOT, text)


def without_credentials(text: str) -> str:
    """Remove API keys, and the credentials in URLs.

    >>> without_credentials("GET https://ada:secret@example.org/v1?api_key=abcdef&q=tea")
    'GET https://[key]@example.org/v1?api_key=[key]&q=tea'
    """
    return _IN_ADDRESS.sub(lambda found: f"{found[1] or ''}{BLOT}{'' if found[1] else '@'}", without_keys(text))


def words(error: BaseException) -> str:
    """An exception's type and message, as a model reads it and the log shows it: without keys and credentials.

    For a group also those of its members, since its own message says nothing.

    >>> words(ValueError("GET https://example.org/?token=abcdef failed"))
    'ValueError: GET https://example.org/?token=[key] failed'
    """
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - an exception whose message cannot be built still has a name
        message = ""
    described = f"{type(error).__name__}: {without_credentials(message)}" if message else type(error).__name__
    if isinstance(error, BaseExceptionGroup):
        described += ": " + "; ".join(words(member) for member in error.exceptions[:_MEMBERS])
    return described


def shown_url(url: str) -> str:
    """Return a URL fit to be shown, even if it is invalid."""
    bare, _, query = _BEFORE_HOST.sub(r"\1", url).partition("?")
    return bare + ("?…" if query else "")
