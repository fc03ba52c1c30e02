"""Twelve short tasks with six harmless tools, and what makes an answer right. The tools change nothing but memory.

A tool's answer cannot be guessed: a model that has not called it, or has not read its result, fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict

from agentkit.tool import ToolResult, openapi_schema, xml_schema

MadeCall = tuple[str, Mapping[str, Any]]
"""A tool's name, and its arguments."""

_PARTS: Final = {"hex bolt": "B-204", "rubber seal": "S-318", "copper wire": "C-977"}
_STOCK: Final = {"B-204": 37, "S-318": 52, "C-977": 164, "0042": 811}


class Traveller(TypedDict):
    """Who travels."""

    name: str
    age: int


class Storeroom:
    """The tools; each trial has its own.

    Attributes:
        ran: the calls so far, in order.
    """

    def __init__(self) -> None:
        self.ran: list[MadeCall] = []
        self._jams = True

    @xml_schema
    @openapi_schema
    def find_part(self, name: str) -> str:
        """Find the part number of a part.

        Args:
            name: what the part is called, such as "hinge"
        """
        name = name.lower().removesuffix("s")
        self.ran.append(("find_part", {"name": name}))
        found = _PARTS.get(name)
        return found or f"there is no part called {name!r}; there are {', '.join(_PARTS)}"

    @xml_schema
    @openapi_schema
    def count_stock(self, part: str) -> str:
        """Count how many pieces of a part are in stock.

        Args:
            part: the part number, such as "H-550"
        """
        self.ran.append(("count_stock", {"part": part}))
        return f"{_STOCK[part]} pieces" if part in _STOCK else f"there is no part number {part!r}"

    @xml_schema
    @openapi_schema
    def set_lamp(self, room: Literal["hall", "kitchen", "porch"], percent: int) -> str:
        """Set how bright the lamp of a room is.

        Args:
            room: where the lamp is
            percent: from 0 to 100
        """
        self.ran.append(("set_lamp", {"room": room, "percent": percent}))
        return f"the lamp now uses {3 * percent + 7} milliwatts"

    @xml_schema
    @openapi_schema
    def book_trip(self, city: str, days: int, traveller: Traveller, stops: list[str]) -> str:
        """Book a trip.

        Args:
            city: where it ends
            days: how long it takes
            traveller: who travels
            stops: the cities on the way, in order
        """
        booked = {"city": city, "days": days, "traveller": dict(traveller), "stops": list(stops)}
        self.ran.append(("book_trip", booked))
        return "booked; the booking code is T7719"

    @xml_schema
    @openapi_schema
    def save_note(self, title: str, text: str) -> str:
        """Save a note.

        Args:
            title: its title
            text: its whole text, exactly as it is to be kept
        """
        self.ran.append(("save_note", {"title": title, "text": text.strip("\n")}))
        return f"saved as note {400 + sum(name == 'save_note' for name, _ in self.ran)}"

    @xml_schema
    @openapi_schema
    def open_box(self, colour: str) -> ToolResult:
        """Open a box and see what is inside.

        Args:
            colour: the colour of the box
        """
        self.ran.append(("open_box", {"colour": colour.lower()}))
        if self._jams:
            self._jams = False
            return ToolResult(error="the lid jammed this time; try the same call again")
        return ToolResult(output="inside is a brass compass")


CHANGES: Final = frozenset(("set_lamp", "book_trip", "save_note"))
"""The tools of which a call that nobody asked for is a mistake; the others only look."""


@dataclass(frozen=True, slots=True)
class FitTask:
    """One task.

    Args:
        name: what is tried.
        prompt: what the user says.
        calls: what must be called.
        says: what the answer must contain, as regular expressions; case is ignored.
        own: whether its tool is the user's, which is never run.
    """

    name: str
    prompt: str
    calls: tuple[MadeCall, ...] = ()
    says: tuple[str, ...] = ()
    own: bool = False

    def mistake(self, ran: Sequence[MadeCall], answer: str) -> str:
        """Return the mistake in words; empty if there is none.

        Args:
            ran: the calls that were run, in order.
            answer: the last reply.
        """
        for name, arguments in self.calls:
            if (name, arguments) not in ran:
                found = next((given for called, given in ran if called == name), None)
                return f"no call {call_text(name, arguments)}" + (f", but {call_text(name, found)}" if found else "")
        for name, given in ran:
            if (not self.calls or name in CHANGES) and (name, given) not in self.calls:
                return f"nobody asked for {call_text(name, given)}"
        missing = next((text for text in self.says if not re.search(text, answer, re.IGNORECASE)), None)
        return "" if missing is None else f"the answer does not say {missing.replace(_EDGE, '')}: {answer[:80]!r}"


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """A call in words.

    >>> call_text("count_stock", {"part": "0042"})
    "count_stock(part='0042')"
    """
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


_EDGE: Final = r"\b"
_word: Callable[[str], str] = f"{_EDGE}{{}}{_EDGE}".format
_CODE: Final = "def greet(name):\n    print(f\"Hello, {name}!\")\n    return 'done'"
_MARKUP: Final = '<b>5 > 3 && "yes"</b>'

TASKS: Final = (
    FitTask(
        "one value",
        "How many pieces of part B-204 are in stock?",
        (("count_stock", {"part": "B-204"}),),
        (_word("37"),),
    ),
    FitTask(
        "enum and integer",
        "Set the lamp on the porch to 40 percent. How many milliwatts does it use then?",
        (("set_lamp", {"room": "porch", "percent": 40}),),
        (_word("127"),),
    ),
    FitTask(
        "dependent calls",
        "Find the part number of the rubber seal, and tell me how many pieces of it are in stock.",
        (("find_part", {"name": "rubber seal"}), ("count_stock", {"part": "S-318"})),
        (_word("52"),),
    ),
    FitTask(
        "code",
        f"Save a note with the title greet.py and exactly this text:\n\n{_CODE}\n\nWhich number does the note get?",
        (("save_note", {"title": "greet.py", "text": _CODE}),),
        (_word("401"),),
    ),
    FitTask(
        "nested values",
        "Book a trip to Lisbon of 3 days for Ana Silva, who is 34, with stops in Porto and Coimbra. "
        "What is the booking code?",
        (
            (
                "book_trip",
                {
                    "city": "Lisbon",
                    "days": 3,
                    "traveller": {"name": "Ana Silva", "age": 34},
                    "stops": ["Porto", "Coimbra"],
                },
            ),
        ),
        ("T7719",),
    ),
    FitTask(
        "two calls",
        "Set the lamp in the hall to 10 percent and the lamp in the kitchen to 75 percent. How many milliwatts does "
        "each of them use then?",
        (("set_lamp", {"room": "hall", "percent": 10}), ("set_lamp", {"room": "kitchen", "percent": 75})),
        (_word("37"), _word("232")),
    ),
    FitTask(
        "a tool that fails first",
        "What is inside the blue box? If its lid jams, try once more.",
        (("open_box", {"colour": "blue"}),),
        ("compass",),
    ),
    FitTask("no tool needed", "What is the capital of France? No tool knows that: just say it.", (), ("Paris",)),
    FitTask(
        "comparison",
        "Count the stock of part C-977 and of part S-318. Of which part are there more pieces, and how many?",
        (("count_stock", {"part": "C-977"}), ("count_stock", {"part": "S-318"})),
        ("C-977", _word("164")),
    ),
    FitTask(
        "a string of digits",
        "How many pieces of part 0042 are in stock?",
        (("count_stock", {"part": "0042"}),),
        (_word("811"),),
    ),
    FitTask(
        "markup",
        f"Save a note with the title bold and exactly this text: {_MARKUP}\nWhich number does the note get?",
        (("save_note", {"title": "bold", "text": _MARKUP}),),
        (_word("401"),),
    ),
    FitTask(
        "a result passed on",
        "Find the part number of the copper wire, then save a note with the title order and nothing but that part "
        "number as its text. Which number does the note get?",
        (("find_part", {"name": "copper wire"}), ("save_note", {"title": "order", "text": "C-977"})),
        (_word("401"),),
    ),
)
"""The tasks; the first four tell most about a mode."""
