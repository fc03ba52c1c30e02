"""Images of results as PIL images, as trainers' processors expect them."""

from __future__ import annotations

import io
from typing import Any

from agentkit.errors import ConfigError
from agentkit.messages import ImagePart


def picture(part: ImagePart) -> Any:
    """An image as PIL's.

    Raises:
        ConfigError: pillow is not installed, or the image is an address, which nothing here fetches.
    """
    try:
        from PIL import Image
    except ImportError as e:
        raise ConfigError("a tool returned an image: the trainer takes images of PIL: pip install pillow") from e
    if part.data is None:
        raise ConfigError(
            f"a tool returned the address of an image, {part.url!r:.80}: the trainer takes images only; load it"
        )
    return Image.open(io.BytesIO(part.data))
