"""What a program prints: blocks with the title "output" get the class `printed`, so that the style sheet can wrap them.

mkdocs calls `on_page_content`.
"""

from __future__ import annotations

from typing import Any

BLOCK = '<div class="highlight"><span class="filename">output</span>'
PRINTED = BLOCK.replace('class="', 'class="printed ', 1)


def on_page_content(html: str, **_: Any) -> str:
    """Mark the blocks of a page."""
    return html.replace(BLOCK, PRINTED)
