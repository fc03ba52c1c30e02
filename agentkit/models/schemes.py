"""Checks, after a failure, if a port answers the other one of http and https; sends nothing of the request."""

from __future__ import annotations

import asyncio
import re
import ssl
import urllib.parse
from typing import Final

WAIT: Final = 2.0  # seconds for the answer

_ANSWERS: Final = re.compile(rb"HTTP/\d\.\d (?!400)").match  # 400: how many TLS ports answer a request without TLS


async def other_scheme(url: str) -> str:
    """Return the URL with the other scheme, if its port answers in that; else empty."""
    parts = urllib.parse.urlsplit(url)
    https = parts.scheme == "https"
    tls = None if https else ssl._create_unverified_context()  # nothing is sent to it that has to be kept secret
    try:
        async with asyncio.timeout(WAIT):
            reader, writer = await asyncio.open_connection(
                parts.hostname, parts.port or (443 if https else 80), ssl=tls
            )
            writer.write(b"HEAD / HTTP/1.0\r\n\r\n")
            answers = tls is not None or _ANSWERS(await reader.read(16))
            writer.close()
    except (OSError, TimeoutError):
        return ""
    return parts._replace(scheme="http" if https else "https").geturl() if answers else ""
