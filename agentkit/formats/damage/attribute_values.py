"""The rest of a tag that cannot be read, of which an attribute quotes a call: what is quoted is not a call.

Knows the reader; knows nothing of calls.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final

from agentkit.formats.damage.listed import REACH, later
from agentkit.formats.reader import Delimiter, Reader

_FEW: Final = 64  # characters that are searched again with each new one
_STRING: Final = r"(?:\"[^\"]*+\"|'[^']*+')"
_BEGUN: Final = r"(?:\"[^\"]*+|'[^']*+)"
_MORE: Final = rf"(?:\s{{1,64}}+[\w.-]{{1,128}}+={_STRING}){{0,16}}+"
_OVER: Final = rf"{_MORE}\s{{0,64}}/?>"
_OVER_BEGUN: Final = rf"{_MORE}(?:\s{{0,64}}/?|\s{{1,64}}+[\w.-]{{1,128}}+(?:=(?:{_BEGUN})?)?)"
_LINE: Final = r"[^<>\n]{0,512}?"
_CLOSED: Final = r"<[^\"']*+"
REST: Final = Delimiter(
    rf"(?:{_LINE}{_STRING}|{_CLOSED}[\"']){_OVER}",
    rf"{_LINE}(?:{_BEGUN}|{_STRING}{_OVER_BEGUN})?|{_CLOSED}(?:[\"']{_OVER_BEGUN})?",
)
"""The rest of a tag that is damaged here, whose last attributes are whole; or another tag is here, in one of them."""
VALUES: Final = Delimiter(f"={_STRING}{_OVER}", f"=(?:{_BEGUN}|{_STRING}{_OVER_BEGUN})?")
"""The same from the value of an attribute on."""


def quoting_rest(r: Reader, rest: Delimiter, opens: Callable[[str], bool]) -> Generator[None, None, int]:
    """How long the rest of a tag is that is here, if a call opens in one of its attributes; 0 if there is none.

    Args:
        r: is inside of the tag; nothing is consumed.
        rest: what is to be here.
        opens: whether a call opens in a text.
    """
    enough = 0
    while True:
        text = r.buf[r.at : r.at + REACH]
        whole = r.all_here or len(text) == REACH
        if whole or len(text) >= enough:
            if found := rest.match(text):
                return found.end() if opens(found[0]) else 0
            if whole or not rest.part.match(text):
                return 0
            enough = later(len(text)) if len(text) > _FEW else 0
        yield
