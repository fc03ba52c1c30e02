"""Checks that image bytes are a file that providers accept. Reads headers and structure; decodes no pixels.

A provider refuses a whole request because of one image that it cannot read, and so every later request of the
conversation. A tool's image is therefore checked before it becomes part of one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

MAX_BYTES: Final = 3_750_000  # 5 MB in base64. Source: Anthropic, "Vision", limits of an image
MAX_SIDE: Final = 8000  # pixels. Source: the same
MAX_UNPACKED: Final = 256 << 20  # bytes of a PNG's pixels: all of it is unpacked to see whether it can be
Size = tuple[int, int]


class DamagedImage(ValueError):
    """The bytes are not a whole file of their type."""


def fault(data: bytes, media_type: str) -> str | None:
    """Return why a provider cannot read these bytes, in words for a model; None if no fault was found.

    >>> fault(b"<html>", "image/png"), fault(b"", "image/tiff")
    ('no PNG file', 'of a type that models do not read')

    Args:
        data: the file.
        media_type: the declared type.
    """
    if media_type not in READERS:
        return "of a type that models do not read"
    if len(data) > MAX_BYTES:
        return f"larger than the {MAX_BYTES:,} bytes that models read"
    try:
        width, height = READERS[media_type](data)
    except (DamagedImage, zlib.error) as e:
        return str(e) if isinstance(e, DamagedImage) else f"a damaged PNG file: {e}"
    except IndexError:
        return "a damaged file: it ends too early"
    if not (1 <= width <= MAX_SIDE and 1 <= height <= MAX_SIDE):
        return f"{width} x {height} pixels, where models read 1 to {MAX_SIDE} on each side"
    return None


def without_damaged_extras(data: bytes) -> bytes:
    """A PNG without the additional parts (colour profile, comments) whose checksum is wrong; any other file as it is.

    Browsers show such a file, some libraries refuse it. Source: PNG 3rd edition, 13.2: these parts may be ignored.

    Args:
        data: the file.
    """
    try:
        chunks = [*_chunks(data)]
    except (DamagedImage, IndexError):
        return data
    kept = [part for part, kind, _, whole in chunks if whole or not kind[0] & 0x20]
    return _PNG + b"".join(kept) + data[len(_PNG) + sum(len(part) for part, *_ in chunks) :]


_PNG: Final = b"\x89PNG\r\n\x1a\n"


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes, bytes, bool]]:
    """Each part of a PNG: all of it, its kind, its content, and whether its checksum is right."""
    _begins(data, _PNG, "PNG")
    at, kind = len(_PNG), b""
    while kind != b"IEND":
        end = at + _number(data, at, 4) + 12
        kind, content = data[at + 4 : at + 8], data[at + 8 : end - 4]
        yield data[at:end], kind, content, _number(data, end - 4, 4) == zlib.crc32(kind + content)
        at = end


def _png(data: bytes) -> Size:
    """Source: PNG 3rd edition, 5 and 11.2."""
    chunks = []
    for _, kind, content, whole in _chunks(data):
        if not whole:
            raise DamagedImage("a damaged PNG file: a checksum is wrong")
        chunks.append((kind, content))
    kind, header = chunks[0]
    if kind != b"IHDR" or len(header) != 13:
        raise DamagedImage("a damaged PNG file: it has no header")
    size, depth, colour = (_number(header, 0, 4), _number(header, 4, 4)), header[8], header[9]
    if min(size) >= 1 and max(size) <= MAX_SIDE:
        rows = size[1] * (1 + (size[0] * depth * {2: 3, 4: 2, 6: 4}.get(colour, 1) + 7) // 8)
        if rows > MAX_UNPACKED:
            raise DamagedImage(f"{rows:,} bytes of pixels, more than the {MAX_UNPACKED:,} that are read")
        found = _unpacked_size(b"".join(content for kind, content in chunks if kind == b"IDAT"), most=2 * rows + 1024)
        if not header[12] and found < rows:  # an interlaced one has further rows
            raise DamagedImage("a damaged PNG file: pixels are missing")
    return size


def _unpacked_size(packed: bytes, most: int) -> int:
    """Return the number of bytes after unpacking."""
    stream, found = zlib.decompressobj(), 0
    while not stream.eof:
        part = stream.decompress(packed, 1 << 16)
        found, packed = found + len(part), stream.unconsumed_tail
        if not part and not packed:
            break
        if found > most:
            raise DamagedImage("a damaged PNG file: more pixels than its size allows")
    return found


_NO_FRAME: Final = {0xC4, 0xC8, 0xCC}  # among the markers C0 to CF
_ALONE: Final = {0x01, *range(0xD0, 0xD8)}


def _jpeg(data: bytes) -> Size:
    """Source: JPEG, B.1 and B.2."""
    _begins(data, b"\xff\xd8\xff", "JPEG")
    at, size = 2, None
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF or marker in _ALONE:
            at += 1 if marker == 0xFF else 2
            continue
        if 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME:
            size = _number(data, at + 7, 2), _number(data, at + 5, 2)
        if marker in (0xDA, 0xD9):
            break
        at += 2 + _number(data, at + 2, 2)
    if size is None or data[at] != 0xFF or data[at + 1] != 0xDA or b"\xff\xd9" not in data[at:]:
        raise DamagedImage("a damaged JPEG file: it has no complete picture")
    return size


def _gif(data: bytes) -> Size:
    """Source: GIF 89a, 17 to 27."""
    _begins(data, b"GIF8", "GIF")

    def table(flags: int) -> int:
        return 3 << ((flags & 7) + 1) if flags & 0x80 else 0

    at, pictures = 13 + table(data[10]), 0
    while data[at] != 0x3B:
        if data[at] == 0x2C:
            pictures, at = pictures + 1, at + 11 + table(data[at + 9])
        elif data[at] == 0x21:
            at += 2
        else:
            raise DamagedImage("a damaged GIF file: an unknown block")
        while data[at]:  # parts of up to 255 bytes
            at += 1 + data[at]
        at += 1
    if not pictures:
        raise DamagedImage("a damaged GIF file: it has no picture")
    return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")


def _webp(data: bytes) -> Size:
    """Source: RFC 9649, 2.3 to 2.7."""
    _begins(data, b"RIFF", "WebP")
    if data[8:12] != b"WEBP" or len(data) < 8 + int.from_bytes(data[4:8], "little") or len(data) < 30:
        raise DamagedImage("a damaged WebP file: it is incomplete")
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    raise DamagedImage("a damaged WebP file: it has no picture")


READERS: Final[Mapping[str, Callable[[bytes], Size]]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
}


def _begins(data: bytes, signature: bytes, kind: str) -> None:
    if not data.startswith(signature):
        raise DamagedImage(f"no {kind} file")


def _number(data: bytes, at: int, length: int) -> int:
    if at + length > len(data):
        raise IndexError(at)
    return int.from_bytes(data[at : at + length], "big")
