"""Images of data sets and other systems' tools as `ImagePart`s. Knows no tool and no sample."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agentkit.errors import ConfigError, show_value
from agentkit.messages import ImagePart
from agentkit.tool.result import png

_HEADS: Final = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_ADDRESS: Final = re.compile(r"data:image/|https?://", re.IGNORECASE)
_KEYS: Final = ("bytes", "image", "path", "url", "image_url")
"""Where a dict has its image. Source: the `Image` feature of Hugging Face's datasets, qwen-vl-utils, OpenAI's API."""


def image_part(value: Any, where: str) -> ImagePart:
    """An image in any of its usual forms.

    Args:
        value: an `ImagePart`; the bytes of a file; an image of PIL; a numpy array; a URL, a data URL or a path; or a
            dict with one of these under `bytes`, `image`, `path`, `url` or `image_url`.
        where: for messages.

    Raises:
        ConfigError: it is something else, or cannot be read.
    """
    match value:
        case ImagePart():
            return value
        case bytes() | bytearray() | memoryview():
            return _from_bytes(bytes(value), where)
        case str() if _ADDRESS.match(value):
            return ImagePart(url=value)
        case str() | Path():
            return _from_file(Path(str(value).removeprefix("file://")), where)
        case Mapping():
            held = next((value[key] for key in _KEYS if value.get(key) is not None), None)
            if held is None:
                raise ConfigError(
                    f"{where}: expected an image under one of {', '.join(_KEYS)}, found {show_value(value)}"
                )
            return image_part(held, where)
    if callable(getattr(value, "save", None)):
        return _png(value, where)
    if hasattr(value, "__array_interface__"):
        return _png(_pil(where).fromarray(value), where)
    raise ConfigError(f"{where}: expected an image: bytes, a URL, a path or an image of PIL; found {show_value(value)}")


def image_parts(values: Any, where: str) -> tuple[ImagePart, ...]:
    """One image, several, or none (None)."""
    if values is None:
        return ()
    several = isinstance(values, list | tuple)
    return tuple(image_part(one, f"{where}[{at}]") for at, one in enumerate(values if several else [values]))


def _from_file(path: Path, where: str) -> ImagePart:
    try:
        return _from_bytes(path.expanduser().read_bytes(), where)
    except OSError as e:
        raise ConfigError(f"{where}: the image cannot be read: {e}") from e


def _from_bytes(data: bytes, where: str) -> ImagePart:
    for head, media_type in _HEADS:
        if data.startswith(head):
            return ImagePart(data, media_type)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ImagePart(data, "image/webp")
    try:
        return _png(_pil(where).open(io.BytesIO(data)), where)  # a kind of file that models do not take
    except OSError as e:
        raise ConfigError(f"{where}: {len(data)} bytes that are not an image: {e}") from e


def _png(image: Any, where: str) -> ImagePart:
    """An image of PIL, as a file without loss."""
    try:
        return ImagePart(png(image))
    except ValueError as e:
        raise ConfigError(f"{where}: {e}") from e


def _pil(where: str) -> Any:
    try:
        from PIL import Image
    except ImportError as e:
        raise ConfigError(f"{where}: this image needs pillow: pip install pillow") from e
    return Image
