"""Errors and redirects: the body of an error is bounded, and a redirect is followed within its server only.

Knows HTTP and no provider. The SDKs read all of an error's body, regardless of its unpacked size: the part that is read
replaces it as if no more had come, so that they handle it as usual; what is missing is reported separately. They follow
any redirect, with all of a request but its `Authorization`: one to another server becomes an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from agentkit.models.decompression import decompress

if TYPE_CHECKING:
    import httpx2

MAX_ERROR: Final = 1024 * 1024
"""Bytes that are read of an error's body, decompressed. The longest known ones list what is wrong in a request."""

WAIT: Final = 10.0
"""Seconds within which an error's body must have come. It only says why, and is not worth as much time as an answer."""

_LACK: Final = "agentkit.lack"
_AWAY: Final = "agentkit.away"

_LIMIT: ContextVar[int | None] = ContextVar("agentkit error limit", default=None)


def install_hooks(http_client: Any) -> None:
    """Let an HTTP client follow no redirect to another server, and read no more of an error than `errors_up_to` allows.

    Only in such a block: its other requests are not affected.
    """
    hooks = http_client.event_hooks["response"]
    hooks += [hook for hook in (_refuse_redirect, _truncate_error_body) if hook not in hooks]


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


def unread_part(response: Any) -> str:
    """Say which part of an error's body was not read, and why; empty if all of it was."""
    return str(getattr(response, "extensions", {}).get(_LACK, ""))


def redirect_refused(response: Any) -> str:
    """Where a redirect led that was not followed, and why; empty if there was none."""
    return str(getattr(response, "extensions", {}).get(_AWAY, ""))


async def _refuse_redirect(response: httpx2.Response) -> None:
    """A hook: let a redirect to another server be an error, since it would get the request's headers and body."""
    import httpx2

    if _LIMIT.get() is None or not response.has_redirect_location:
        return
    here = response.request.url
    try:
        to = httpx2.URL(response.headers["location"])
        there = here.join(to.copy_with(host=here.host) if to.scheme and not to.host else to)  # as the client reads it
    except (httpx2.InvalidURL, ValueError):
        return  # refused by the client
    if there.origin == here.origin:
        return
    del response.headers["location"]
    response.extensions[_AWAY] = (
        f"{_server(here)} redirects to {_server(there)}; no redirect to another server is followed, since the request "
        "and its keys are meant for this one. If the other is right, pass it as base_url="
    )


def _server(url: httpx2.URL) -> str:
    return f"{url.scheme}://{url.netloc.decode('ascii')}"


async def _truncate_error_body(response: httpx2.Response) -> None:
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
        async with asyncio.timeout(WAIT), aclosing(decompress(whole)) as pieces:
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
