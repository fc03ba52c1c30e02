"""Pictures of the built site, for the page "How the site looks": three pages, in light and in dark colours.

make docs
python docs/screenshots.py      writes docs/images/site/ (needs chromium, and pip install pillow)
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from browser import Browser  # noqa: E402 - found by the line above

PICTURES = ROOT / "docs" / "images" / "site"
PAGES = {"landing": "index.html", "tutorial": "tutorial.html", "guide": "tools-running.html"}
WIDE, PHONE = (1280, 1000), (390, 1000)
"""Two windows, in CSS pixels; a picture shows both next to each other."""
COLOURS = 96
LIMIT = 250_000
"""Bytes of one picture."""


def shot(page: str, size: tuple[int, int], *, dark: bool) -> Image.Image:
    """One page of the built site in a window of a size."""
    with Browser(*size, dark=dark) as browser:
        browser.open((ROOT / "site" / page).as_uri())
        browser.until("document.fonts.status === 'loaded' && [...document.images].every(image => image.complete)")
        return Image.open(io.BytesIO(browser.picture())).convert("RGB")


def write(name: str, page: str, *, dark: bool) -> None:
    """The page as on a desk and as on a phone, in one picture with few colours."""
    desk, phone = (shot(page, size, dark=dark) for size in (WIDE, PHONE))
    both = Image.new("RGB", (desk.width + 24 + phone.width, desk.height), "#808080")
    both.paste(desk, (0, 0))
    both.paste(phone, (desk.width + 24, 0))
    path = PICTURES / f"{name}_{'dark' if dark else 'light'}.png"
    both.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    sys.stdout.write(f"{path.relative_to(ROOT)}: {size:,} bytes\n")
    if size > LIMIT:
        raise SystemExit(f"{path.name} has more than {LIMIT:,} bytes: use fewer colours")


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        for dark in (False, True):
            write(name, page, dark=dark)
