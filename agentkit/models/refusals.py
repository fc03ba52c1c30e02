"""The body of an error response, bounded: the SDKs read all of it, however much it unpacks to.

Knows HTTP and no provider. What is read of it stands in the response as if no more had come, so that the SDKs make of
it what they always make; what is lacking is told beside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import httpx2

MAX_ERROR: Final = 1024 * 1024
"""Bytes that are read of an error's body, decompressed. The longest that are known list what is wrong in a request."""

WAIT: Final = 10.0
"""Seconds in which an error's body must have come. It says why, and is not worth the time of an answer."""

_LACK: Final = "agentkit.lack"

_LIMIT: ContextVar[int | None] = ContextVar("agentkit error limit", default=None)


def watch(http_client: Any) -> None:
    """Let an HTTP client read no more of an error than `errors_up_to` says; its other requests are left alone."""
    hooks = http_client.event_hooks["response"]
    if _shorten not in hooks:
        hooks.append(_shorten)


@contextmanager
def errors_up_to(limit: int) -> Iterator[None]:
    """Bound the body of an error with which a request that is sent here is answered.

    Args:
        limit: bytes of it, if that is less than `MAX_ERROR`.
    """
    mark = _LIMIT.set(min(limit, MAX_ERROR))
    try:
        yield
    finally:
        _LIMIT.reset(mark)


def lack(response: Any) -> str:
    """What was not read of an error's body, and why; empty where all of it was."""
    said = getattr(response, "extensions", {}).get(_LACK, "")
    return str(said)


async def _shorten(response: httpx2.Response) -> None:
    """A hook: read the body of an error or of a redirect now, and put what was read of it in its place."""
    import httpx2

    limit = _LIMIT.get()
    if limit is None or response.status_code < 300:
        return
    whole = httpx2.Response(
        response.status_code, headers=response.headers, stream=response.stream, request=response.request
    )
    kept = bytearray()
    said = ""
    try:
        async with asyncio.timeout(WAIT), aclosing(whole.aiter_bytes()) as pieces:
            async for piece in pieces:
                room = limit - len(kept)
                kept += piece[:room]
                if len(piece) > room:
                    said = f"only its first {limit:,} bytes were read"
                    break
    except TimeoutError:
        said = f"the rest of it did not come within {WAIT:g} s"
    except (httpx2.HTTPError, httpx2.StreamError) as e:
        said = f"the rest of it could not be read ({type(e).__name__}: {e})"
    finally:
        await whole.aclose()
    if said:
        response.extensions[_LACK] = said
    response.headers.pop("content-encoding", None)
    response.stream = httpx2.ByteStream(bytes(kept))
