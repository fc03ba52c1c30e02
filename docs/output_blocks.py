"""What a program prints: blocks with a title get it as a class, so that the style sheet can wrap output and recordings.

mkdocs calls `on_page_content`.
"""

from __future__ import annotations

import re
from typing import Any

BLOCK = re.compile(r'<div class="highlight">(?=<span class="filename">(output|recording)</span>)')


def on_page_content(html: str, **_: Any) -> str:
    """Mark the blocks of a page."""
    return BLOCK.sub(r'<div class="\1 highlight">', html)
