"""The body of an HTTP answer, decompressed in bounded steps."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator

import httpx2
import pytest

from agentkit.models import decompress
from agentkit.models.decompression import MEMBERS, OUTPUT

TEXT = b"one two " * 20_000
RAW = zlib.compressobj(wbits=-zlib.MAX_WBITS)
BODIES = {
    "gzip": [gzip.compress(TEXT, mtime=0), gzip.compress(TEXT[:9], mtime=0) + gzip.compress(TEXT[9:], mtime=0)],
    "deflate": [zlib.compress(TEXT), RAW.compress(TEXT) + RAW.flush()],
    "": [TEXT],
    "identity": [TEXT],
}


class Body(httpx2.AsyncByteStream):
    """A body as a server sends it."""

    def __init__(self, body: bytes, size: int) -> None:
        self._pieces = [body[at : at + size] for at in range(0, len(body), size)]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def read(coding: str, body: bytes, size: int = 1 << 30) -> tuple[list[bytes], int]:
    """The pieces of a body that comes in pieces of this size, and how often another task ran meanwhile."""

    async def run() -> tuple[list[bytes], int]:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        response = httpx2.Response(200, headers={"Content-Encoding": coding}, stream=Body(body, size))
        pieces = [piece async for piece in decompress(response)]
        task.cancel()
        return pieces, turns

    return asyncio.run(run())


@pytest.mark.parametrize(("coding", "body"), [(coding, body) for coding in BODIES for body in BODIES[coding]])
@pytest.mark.parametrize("size", [7, 1_000, 1 << 30])
def test_any_cut_gives_the_same_body(coding: str, body: bytes, size: int) -> None:
    assert b"".join(read(coding, body, size)[0]) == TEXT


def test_a_body_that_unpacks_to_much_comes_in_small_pieces_between_which_others_run() -> None:
    pieces, turns = read("gzip", gzip.compress(b"\0" * 20_000_000))
    assert max(map(len, pieces)) == OUTPUT
    assert turns >= len(pieces) >= 20_000_000 / OUTPUT


@pytest.mark.parametrize("coding", ["gzip, gzip", "gzip, identity, deflate", "br", "x-gzip", ",".join(["gzip"] * 999)])
def test_a_coding_that_was_not_asked_for_is_refused(coding: str) -> None:
    with pytest.raises(httpx2.DecodingError, match="unsupported content encoding"):
        read(coding, b"x")


def test_the_members_of_a_body_are_counted() -> None:
    empty = gzip.compress(b"", mtime=0)
    assert b"".join(read("gzip", empty * MEMBERS)[0]) == b""
    with pytest.raises(httpx2.DecodingError, match="more than 1,000 members"):
        read("gzip", empty * 400_000)


def test_empty_blocks_cost_no_more_than_they_weigh() -> None:
    """They unpack to nothing: no bound on the output stops them."""
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    body = packer.compress(b"a") + b"".join(packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2)) + packer.flush()
    assert b"".join(read("gzip", body)[0]) == b"a"
    pieces, turns = read("deflate", b"\x78\x9c" + b"\x00\x00\x00\xff\xff" * 200_000 + zlib.compress(b"ab")[2:])
    assert (b"".join(pieces), turns > 50) == (b"ab", True)


@pytest.mark.parametrize("body", [BODIES["gzip"][0][:-9], BODIES["gzip"][1][:-9]], ids=["one", "two"])
def test_a_body_that_breaks_off_is_no_body(body: bytes) -> None:
    with pytest.raises(httpx2.RemoteProtocolError, match="is incomplete"):
        read("gzip", body)
