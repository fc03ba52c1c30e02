"""Whether an image's bytes are a file that providers accept."""

from __future__ import annotations

import importlib.util
import io
import struct
import time
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import ImagePart
from agentkit.checks.image_files import fault

needs_pillow = pytest.mark.skipif(
    importlib.util.find_spec("PIL") is None, reason="Pillow is not installed: it writes images"
)


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width: int, height: int, pixels: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def saved(kind: str, mode: str, size: tuple[int, int] = (7, 5), **options: object) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.effect_noise(size, 50).convert(mode).save(file, kind, **options)
    return file.getvalue()


@needs_pillow
@pytest.mark.parametrize(
    ("kind", "mode", "options"),
    [
        ("PNG", "1", {}),
        ("PNG", "L", {}),
        ("PNG", "P", {}),
        ("PNG", "RGB", {"optimize": True}),
        ("PNG", "RGBA", {}),
        ("PNG", "I;16", {}),
        ("JPEG", "RGB", {}),
        ("JPEG", "L", {"progressive": True}),
        ("JPEG", "CMYK", {}),
        ("GIF", "P", {}),
        ("GIF", "L", {"comment": b"x" * 600}),
        ("WEBP", "RGB", {}),
        ("WEBP", "RGBA", {"lossless": True}),
        ("WEBP", "RGBA", {}),
    ],
)
def test_a_whole_file_has_no_fault_and_a_part_of_it_has(kind: str, mode: str, options: dict[str, object]) -> None:
    data, media_type = saved(kind, mode, **options), f"image/{kind.lower()}"
    assert fault(data, media_type) is None
    for end in range(1, len(data) - 2, max(1, len(data) // 50)):
        assert fault(data[:end], media_type), end


@needs_pillow
def test_damage_in_an_additional_part_of_a_png_costs_that_part_and_in_any_other_the_image() -> None:
    from PIL import Image, PngImagePlugin

    extras = PngImagePlugin.PngInfo()
    extras.add_text("Comment", "x" * 40)
    whole = saved("PNG", "RGB", pnginfo=extras, icc_profile=b"p" * 300, dpi=(72, 72))
    assert ImagePart(whole, "image/png").repaired_image.data == whole
    assert ImagePart(whole + b"more", "image/png").repaired_image.data == whole + b"more"  # what is not damaged stays
    pixels, seen = Image.open(io.BytesIO(whole)).tobytes(), set()
    for at in range(8, len(whole)):
        image = ImagePart(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], "image/png")
        repaired = image.repaired_image
        seen.add(repaired is not image and repaired.fault is None)
        if repaired.fault is None and repaired.data:
            assert Image.open(io.BytesIO(repaired.data)).tobytes() == pixels
        if repaired is image:
            assert image.fault
    assert seen == {True, False}


@needs_pillow
def test_an_interlaced_and_an_animated_file_have_no_fault() -> None:
    from PIL import Image

    frames = [Image.new("L", (4, 4), shade) for shade in (0, 100, 200)]
    for kind in ("GIF", "WEBP", "PNG"):
        file = io.BytesIO()
        frames[0].save(file, kind, save_all=True, append_images=frames[1:])
        assert fault(file.getvalue(), f"image/{kind.lower()}") is None


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"<html>", "no PNG file"),
        (png(1, 1, b"no deflate"), "a damaged PNG file: Error -3 while decompressing data: incorrect header check"),
        (png(2, 2, zlib.compress(b"\0\0")), "a damaged PNG file: pixels are missing"),
        (png(2, 2, zlib.compress(bytes(2000))), "a damaged PNG file: more pixels than its size allows"),
        (png(0, 2, zlib.compress(b"")), "0 x 2 pixels, where models read 1 to 8000 on each side"),
        (png(9000, 1, b""), "9000 x 1 pixels, where models read 1 to 8000 on each side"),
        (png(1, 1, zlib.compress(b"\0\0"))[:-6] + b"D\0\0\0\0", "a damaged file: it ends too early"),
        (bytes(4_000_000), "larger than the 3,750,000 bytes that models read"),
    ],
)
def test_the_fault_is_named(data: bytes, why: str) -> None:
    assert fault(data, "image/png") == why


def test_an_image_says_what_is_wrong_with_it() -> None:
    assert ImagePart(png(2, 2, zlib.compress(bytes(6)))).fault is None
    assert ImagePart(b"II*\0", "image/tiff").fault == "of a type that models do not read"
    assert ImagePart(url="https://example.org/a.png").fault is None


@given(
    st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF\x20\0\0\0WEBPVP8 "]),
    st.binary(max_size=80),
    st.sampled_from(["png", "jpeg", "gif", "webp"]),
)
def test_any_bytes_are_judged(head: bytes, rest: bytes, kind: str) -> None:
    assert fault(head + rest, f"image/{kind}") is None or fault(head + rest, f"image/{kind}")


@pytest.mark.parametrize(
    ("head", "unit", "kind"),
    [
        (b"\xff\xd8", b"\xff", "jpeg"),
        (b"\xff\xd8\xff", b"\xff\xe0\0\2", "jpeg"),
        (b"GIF89a" + bytes(7), b"\x21\0\0", "gif"),
        (b"\x89PNG\r\n\x1a\n", chunk(b"tEXt", b""), "png"),
    ],
)
def test_many_small_parts_take_no_long(head: bytes, unit: bytes, kind: str) -> None:
    start = time.monotonic()
    assert fault(head + unit * (1_500_000 // len(unit)), f"image/{kind}")
    assert time.monotonic() - start < 10
