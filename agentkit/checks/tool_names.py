"""A tool's name with decoration that models put around it: `functions.bash`, `functions_bash_2`, `bash<|channel|>x`."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

MODULES: Final = ("function", "functions", "tool", "tools", "default_api")
"""The modules that models put before a tool's name."""
FIND_TOOLS: Final = "find_tools"
"""The name of the tool with which a model finds others, if too many to offer all (`offered_tools`)."""
_BEFORE: Final = re.compile(rf"(?:{'|'.join(MODULES)})[._/:]+")
_AFTER: Final = re.compile(r"(?::\d{1,9}|<[|｜].*)\Z", re.DOTALL)
_NUMBER: Final = re.compile(r"[_.:]\d{1,9}\Z")


def intended_tool(name: str, offered: Container[str]) -> str | None:
    """The offered tool that a decorated name is for; None if none fits, or several do.

    Decoration is a module before the name, the name twice, a control token after it, white space, and the number of the
    call, after `_` only where a module is before it. Sources: exo#2281, sglang#21377, llama.cpp#24658.
    """
    name = name.strip()
    server, _, own = name.partition(".")
    found = {name, _AFTER.sub("", name), own if server == own else name}
    if before := _BEFORE.match(name):
        rest = name[before.end() :]
        found |= {rest, _AFTER.sub("", rest), _NUMBER.sub("", rest)}
    fits = [one for one in found if one in offered]
    return fits[0] if len(fits) == 1 else None
