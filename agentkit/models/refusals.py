"""The body of an error response, bounded: the SDKs read all of it, regardless of its unpacked size.

Knows HTTP and no provider. The part that is read replaces the body as if no more had come, so that the SDKs handle it
as usual; what is missing is reported separately.
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
"""Bytes that are read of an error's body, decompressed. The longest known ones list what is wrong in a request."""

WAIT: Final = 10.0
"""Seconds within which an error's body must have come. It only says why, and is not worth as much time as an answer."""

_LACK: Final = "agentkit.lack"

_LIMIT: ContextVar[int | None] = ContextVar("agentkit error limit", default=None)


def watch(http_client: Any) -> None:
    """Let an HTTP client read no more of an error than `errors_up_to` allows; its other requests are not affected."""
    hooks = http_client.event_hooks["response"]
    if _shorten not in hooks:
        hooks.append(_shorten)


@contextmanager
def errors_up_to(limit: int) -> Iterator[None]:
    """Limit the body of an error that answers a request sent in this block.

    Args:
        limit: its maximum bytes, if that is less than `MAX_ERROR`.
    """
    mark = _LIMIT.set(min(limit, MAX_ERROR))
    try:
        yield
    finally:
        _LIMIT.reset(mark)


def lack(response: Any) -> str:
    """What was not read of an error's body, and why; empty if all of it was."""
    said = getattr(response, "extensions", {}).get(_LACK, "")
    return str(said)


async def _shorten(response: httpx2.Response) -> None:
    """A hook: read the body of an error or of a redirect now, and replace it with the part that was read."""
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
