"""The tasks of `real_models.py`: what is asked, the tools for it, and what a right run has done and said.

Knows no model and no toolkit. The tools are methods of one `World` for each run, so that runs can overlap. Tasks of one
kind offer the same tools in the same order, and five kinds share one set: a server reads that prompt once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from typing_extensions import TypedDict  # before Python 3.12, pydantic reads no other

SYSTEM: Final = "You are a helpful assistant. Use the tools where they are needed, then answer in one short sentence."


class Fault(ValueError):
    """What a tool raises: a message that the model can act on."""


class Address(TypedDict):
    """Where a customer lives."""

    street: str
    city: str
    zip: str


class Item(TypedDict):
    """One line of an invoice."""

    name: str
    quantity: int
    price: float


class Guest(TypedDict):
    """Who is invited."""

    name: str
    email: str


WORDS: Final = {
    "gnomon": "the part of a sundial that casts the shadow",
    "axiom": "a statement taken to be true without proof",
    "lemma": "a small proven statement used to prove a larger one",
    "tithe": "a tenth of one's income, given to the church",
    "木漏れ日": "sunlight that filters through the leaves of trees",
}
CONTACTS: Final = {
    "ines berg": "Ines Berg, email ines.berg@post.example, manager: Lea",
    "lea roth": "Lea Roth, email lea.roth@post.example, manager: Karl",
    "karl voss": "Karl Voss, email k.voss@post.example, manager: none",
    "bob stein": "Bob Stein, Berlin, email stein@post.example",
    "bob marlow": "Bob Marlow, Hamburg, email marlow@post.example",
}
STOCK: Final = {"printer paper": 4, "envelope": 120, "pen": 14, "notebook": 33, "printer ink": 0, "desk stapler": 17}
RATES: Final = {("chf", "usd"): 1.12, ("eur", "jpy"): 161.5}


def _log() -> str:
    lines = [f"02:{i:02}:07 INFO job sync-{100 + i} done in {20 + i * 7 % 50} ms" for i in range(40)]
    lines[23] = "02:23:07 ERROR job backup-nightly failed: code E4417, disk full"
    return "\n".join(lines)


def _hours() -> str:
    places = ("Museum", "Library", "Pool", "Archive", "Zoo", "Theatre", "Gallery", "Observatory", "Market", "Garden")
    rows = "\n".join(
        f'  <tr class="row"><td>{place}</td><td>{8 + i % 3}:30</td><td>{16 + i % 5}:{i % 4}5</td></tr>'
        for i, place in enumerate(places)
    )
    return (
        f"<html><body>\n<table>\n  <tr><th>place</th><th>opens</th><th>closes</th></tr>\n{rows}\n</table></body></html>"
    )


def _staff() -> str:
    names = (
        "Ada",
        "Ben",
        "Cleo",
        "Dov",
        "Eva",
        "Finn",
        "Gia",
        "Hugo",
        "Ivy",
        "Jan",
        "Kim",
        "Leo",
        "Mia",
        "Nils",
        "Ola",
    )
    rows = [{"name": n, "desk": 201 + 3 * i, "team": ("sales", "legal", "press")[i % 3]} for i, n in enumerate(names)]
    return json.dumps(rows, indent=1)


HANDBOOK: Final = """Handbook of the house

1. Doors. The front door is open from 7 to 19. After that the bell at the side entrance is answered by the guard.
2. Keys. Every key has a number. A lost key is reported on the same day, and a new one costs 35 euros.
3. Bicycles. They stand in the yard, not in the hall. The pump hangs next to the gate and goes back there.
4. Kitchen. Whoever takes the last coffee makes the next. The fridge is emptied on Fridays at 15.
5. Rooms. The large room is booked at the desk, the small ones are free for everybody. Chairs stay in their room.
6. Visitors. A visitor signs the book and wears the yellow badge. Badges are returned in the evening.
7. Fire. Leave by the stairs and meet under the clock. Do not use the lift. The drill is on the first Monday of May.
8. Post. Letters are collected at 11 and at 16. Parcels above 20 kilograms go to the ramp.
9. Lights. They turn off at 22. The switch for the night is on the left of the entrance.
10. Parking. Guests park on level 2. The code of the barrier is 7730, and changes every year.
11. Complaints. They are written on the green form and answered within ten days."""

DOCUMENTS: Final = {
    "server.log": _log(),
    "hours.html": _hours(),
    "staff.json": _staff(),
    "handbook.txt": HANDBOOK,
    "page.html": "<h1>Shop</h1>\n<p>Our <b>Old</b> prices.</p>",
}


@dataclass
class Call:
    """One call that reached a tool: its name, its arguments, and whether the tool did it."""

    name: str
    arguments: dict[str, Any]
    done: bool = True


@dataclass
class World:
    """What the tools act on. `busy` names the tools that fail at their first call."""

    busy: set[str] = field(default_factory=set)
    log: list[Call] = field(default_factory=list)

    def _called(self, name: str, arguments: dict[str, Any], fault: str = "") -> None:
        if name in self.busy:
            self.busy.remove(name)
            fault = f"{name} is busy for a moment: call it again"
        self.log.append(Call(name, arguments, done=not fault))
        if fault:
            raise Fault(fault)

    def define_word(self, word: str) -> str:
        """Look up the meaning of a word in the dictionary.

        Args:
            word: the word
        """
        self._called("define_word", {"word": word})
        return f"{word}: {WORDS.get(word.strip().casefold(), 'not in this dictionary')}"

    def start_timer(self, minutes: int) -> str:
        """Start a timer.

        Args:
            minutes: how long it runs
        """
        self._called("start_timer", {"minutes": minutes})
        return f"timer started: {minutes} minutes"

    def set_heating(self, room: str, degrees: float) -> str:
        """Set the heating of a room.

        Args:
            room: the room
            degrees: degrees Celsius
        """
        self._called("set_heating", {"room": room, "degrees": degrees})
        return f"heating of {room} set to {degrees} degrees"

    def switch_lamp(self, room: str, on: bool) -> str:
        """Switch the lamp of a room on or off.

        Args:
            room: the room
            on: true for on, false for off
        """
        self._called("switch_lamp", {"room": room, "on": on})
        return f"lamp in {room} is {'on' if on else 'off'}"

    def play_music(self, genre: Literal["classical", "jazz", "pop", "rock"]) -> str:
        """Play music.

        Args:
            genre: what kind of music
        """
        self._called("play_music", {"genre": genre})
        return f"playing {genre}"

    def add_to_list(self, items: list[str]) -> str:
        """Add items to the shopping list.

        Args:
            items: what to buy
        """
        self._called("add_to_list", {"items": items})
        return f"added {len(items)} items"

    def find_contact(self, name: str) -> str:
        """Find a person in the address book.

        Args:
            name: the person's name
        """
        wanted = _plain(name)
        found = [CONTACTS[wanted]] if wanted in CONTACTS else _named(wanted)
        several = " and ".join(one.split(", email")[0].replace(", ", " from ") for one in found)
        fault = f"{name!r} is ambiguous: {several}" if several else f"nobody is called {name!r}"
        fault = "" if len(found) == 1 else f"{fault}; call find_contact with the full name"
        self._called("find_contact", {"name": name}, fault)
        return found[0]

    def send_email(self, to: str, subject: str, body: str) -> str:
        """Send an email.

        Args:
            to: the email address
            subject: the subject
            body: the text
        """
        fault = "" if "@" in to else f"{to!r} is not an email address"
        self._called("send_email", {"to": to, "subject": subject, "body": body}, fault)
        return f"sent to {to}"

    def check_stock(self, product: str) -> str:
        """Say how many pieces of a product are in stock.

        Args:
            product: the product's name
        """
        name = _product(product)
        self._called("check_stock", {"product": product}, "" if name in STOCK else _unknown(product))
        return f"{name}: {STOCK[name]} in stock"

    def order_goods(self, product: str, quantity: int) -> str:
        """Order more of a product.

        Args:
            product: the product's name
            quantity: how many pieces
        """
        name = _product(product)
        fault = "" if name in STOCK else _unknown(product)
        if name == "printer ink" and quantity % 6:
            fault = f"printer ink is sold in boxes of 6: quantity must be a multiple of 6, found {quantity}"
        self._called("order_goods", {"product": product, "quantity": quantity}, fault)
        return f"ordered {quantity} pieces of {name}"

    def exchange_rate(self, base: str, target: str) -> str:
        """Say how much of one currency another costs.

        Args:
            base: code of the currency to sell, such as GBP
            target: code of the currency to buy, such as SEK
        """
        rate = RATES.get((_plain(base), _plain(target)))
        self._called("exchange_rate", {"base": base, "target": target}, "" if rate else "no rate for these two codes")
        return f"1 {base} = {rate} {target}"

    def create_invoice(self, customer: str, address: Address, items: list[Item]) -> str:
        """Create an invoice.

        Args:
            customer: the customer's name
            address: where it is sent
            items: what was sold; price is for one piece
        """
        self._called("create_invoice", {"customer": customer, "address": address, "items": items})
        return f"invoice R-508 for {customer}: {sum(one['quantity'] * one['price'] for one in items):g} euros"

    def book_meeting(self, title: str, day: str, guests: list[Guest]) -> str:
        """Book a meeting and invite the guests.

        Args:
            title: what it is about
            day: the day of the week
            guests: who is invited
        """
        self._called("book_meeting", {"title": title, "day": day, "guests": guests})
        return f"booked {title} on {day} with {len(guests)} guests"

    def plot_points(self, points: list[list[int]]) -> str:
        """Draw points into the diagram.

        Args:
            points: each point as [x, y]
        """
        self._called("plot_points", {"points": points})
        return f"drew {len(points)} points"

    def read_document(self, name: str) -> str:
        """Read a document.

        Args:
            name: the document's name
        """
        fault = "" if name in DOCUMENTS else f"no document {name!r}; there are {', '.join(DOCUMENTS)}"
        self._called("read_document", {"name": name}, fault)
        return DOCUMENTS[name]

    def replace_text(self, document: str, old: str, new: str) -> str:
        """Replace a piece of a document.

        Args:
            document: the document's name
            old: the text to be replaced
            new: the text to put there
        """
        found = DOCUMENTS.get(document, "").count(old) if old else 0
        fault = "" if found else f"{old!r} is not in {document!r}"
        self._called("replace_text", {"document": document, "old": old, "new": new}, fault)
        return f"replaced {found}"

    def save_snippet(self, name: str, language: Literal["bash", "html", "json", "python"], code: str) -> str:
        """Save a piece of code.

        Args:
            name: a name for it
            language: the language
            code: the code, exactly as it is to be saved
        """
        self._called("save_snippet", {"name": name, "language": language, "code": code})
        return f"saved {name}"

    def run_sql(self, query: str) -> str:
        """Run a query on the database of users.

        Args:
            query: one SQL query
        """
        self._called("run_sql", {"query": query})
        return "name\nAnna\nOmar"


def _plain(text: str) -> str:
    return text.strip().casefold().removeprefix("the ")


def _named(words: str) -> list[str]:
    """The contacts that have one of the words in their name."""
    return [contact for name, contact in CONTACTS.items() if set(words.split()) & set(name.split())]


def _product(name: str) -> str:
    """A product by its name; the plural is understood."""
    plain = _plain(name)
    return next((one for one in STOCK if plain in (one, f"{one}s")), plain)


def _unknown(product: str) -> str:
    return f"unknown product {product!r}; the products are {', '.join(STOCK)}"


HOME: Final = ("define_word", "start_timer", "set_heating", "switch_lamp", "play_music", "add_to_list")
TRADE: Final = ("find_contact", "send_email", "check_stock", "order_goods", "exchange_rate")
OFFICE: Final = ("create_invoice", "book_meeting", "plot_points")
DESK: Final = ("read_document", "replace_text", "save_snippet", "run_sql")

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "types": HOME,
    "several": HOME,
    "none": HOME,
    "languages": HOME,
    "turns": HOME,
    "depends": TRADE,
    "fails": TRADE,
    "nested": OFFICE,
    "code": DESK,
    "long": DESK,
}
"""The tools of each kind of task."""

READERS: Final = frozenset(("define_word", "find_contact", "check_stock", "exchange_rate", "read_document", "run_sql"))
"""The tools that change nothing: further calls of them are not wrong."""

ONCE: Final = frozenset(("send_email", "order_goods", "create_invoice", "book_meeting"))
"""The tools that must not be called twice for one request."""

Expected = Any | Callable[[Any], bool]
"""A value, compared without case and outer space, or a condition."""


@dataclass(frozen=True)
class Task:
    """One task.

    Args:
        key: its name.
        kind: one of `KINDS`.
        turns: what the user says, one after the other.
        calls: the calls that must have been done, in any order; parameters that are not named may have any value.
        says: what the last answer must contain; of a tuple, one.
        busy: the tools that fail at their first call.
    """

    key: str
    kind: str
    turns: tuple[str, ...]
    calls: tuple[tuple[str, Mapping[str, Expected]], ...] = ()
    says: tuple[str | tuple[str, ...], ...] = ()
    busy: frozenset[str] = frozenset()

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the offered tools."""
        return KINDS[self.kind]


def exactly(text: str) -> Callable[[Any], bool]:
    """The same text, with the same case; only white space around it and at the ends of its lines may differ."""
    return lambda value: isinstance(value, str) and _lines(value) == _lines(text)


def _lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def containing(*words: str) -> Callable[[Any], bool]:
    """A text that contains all the words, in any case."""
    return lambda value: isinstance(value, str) and all(word in value.casefold() for word in words)


def either(*values: Any) -> Callable[[Any], bool]:
    """One of the values, in any case."""
    return lambda value: (_plain(value) if isinstance(value, str) else value) in values


def query(text: str) -> Callable[[Any], bool]:
    """The same query, however it is spaced and ended."""
    return lambda value: isinstance(value, str) and " ".join(value.rstrip("; \n").split()) == text


def _bought(*items: str) -> tuple[tuple[str, Mapping[str, Expected]], ...]:
    return tuple(("add_to_list", {"items": item}) for item in items)


def _lamp(room: Expected, on: bool) -> tuple[str, Mapping[str, Expected]]:
    return "switch_lamp", {"room": room, "on": on}


def _heat(room: Expected, degrees: float) -> tuple[str, Mapping[str, Expected]]:
    return "set_heating", {"room": room, "degrees": degrees}


def _saved(name: str, language: str, code: str) -> tuple[tuple[str, Mapping[str, Expected]], ...]:
    return (("save_snippet", {"name": name, "language": language, "code": exactly(code)}),)


GREET: Final = 'def greet(name):\n    """Say hello."""\n    print(f"Hello, {name}!")'
LOOP: Final = 'for f in *.txt; do\n  echo "$f" && wc -l < "$f"\ndone'
LINK: Final = "<a href=\"/home?x=1&y=2\" title='start'>Home &amp; more</a>"
CONFIG: Final = '{"debug": true, "path": "C:\\\\temp", "tags": ["a", "b"]}'
USERS: Final = "SELECT name FROM users WHERE city = 'Bonn' AND age >= 30"


def _ask(key: str, kind: str, *turns: str, calls: Sequence[Any] = (), says: Sequence[Any] = (), busy: str = "") -> Task:
    return Task(key, kind, turns, tuple(calls), tuple(says), frozenset(busy.split()))


TASKS: Final = (
    _ask(
        "string",
        "types",
        "What does the word 'gnomon' mean? Look it up in the dictionary.",
        calls=[("define_word", {"word": "gnomon"})],
        says=[("sundial", "shadow")],
    ),
    _ask("integer", "types", "Start a timer of 25 minutes.", calls=[("start_timer", {"minutes": 25})]),
    _ask("number", "types", "Set the heating in the bedroom to 19.5 degrees.", calls=[_heat("bedroom", 19.5)]),
    _ask("boolean", "types", "Turn off the lamp in the kitchen.", calls=[_lamp("kitchen", False)]),
    _ask("choice", "types", "Play some jazz.", calls=[("play_music", {"genre": "jazz"})]),
    _ask("list", "types", "Put milk, eggs and bread on the shopping list.", calls=_bought("milk", "eggs", "bread")),
    _ask(
        "two_lamps",
        "several",
        "Turn on the lamp in the hall and the lamp in the garage.",
        calls=[_lamp("hall", True), _lamp("garage", True)],
    ),
    _ask(
        "two_words",
        "several",
        "Look up the words 'axiom' and 'lemma' in the dictionary.",
        calls=[("define_word", {"word": "axiom"}), ("define_word", {"word": "lemma"})],
        says=["axiom", "lemma"],
    ),
    _ask(
        "two_rooms",
        "several",
        "Set the heating to 20 degrees in the bedroom and to 23 degrees in the bathroom.",
        calls=[_heat("bedroom", 20), _heat("bathroom", 23)],
    ),
    _ask(
        "three_tools",
        "several",
        "Turn off the lamp in the study, start a timer of 45 minutes and play rock.",
        calls=[_lamp("study", False), ("start_timer", {"minutes": 45}), ("play_music", {"genre": "rock"})],
    ),
    _ask("capital", "none", "Which city is the capital of Italy? You know it without a tool.", says=[("rome", "roma")]),
    _ask("greeting", "none", "How does one say 'good morning' in Spanish?", says=["buenos d"]),
    _ask("thanks", "none", "Thank you, that was all. Goodbye!"),
    _ask("sum", "none", "How much is 6 plus 7?", says=[("13", "thirteen")]),
    _ask(
        "german",
        "languages",
        "Setze Brötchen, Käse und Äpfel auf die Einkaufsliste.",
        calls=_bought("brötchen", "käse", "äpfel"),
    ),
    _ask(
        "japanese",
        "languages",
        "「木漏れ日」という言葉を辞書で調べてください。",
        calls=[("define_word", {"word": "木漏れ日"})],
    ),
    _ask("french", "languages", "Lance un minuteur de 12 minutes.", calls=[("start_timer", {"minutes": 12})]),
    _ask(
        "spanish",
        "languages",
        "Enciende la lámpara de la cocina.",
        calls=[_lamp(either("cocina", "la cocina", "kitchen"), True)],
    ),
    _ask("russian", "languages", "Добавь в список покупок хлеб и молоко.", calls=_bought("хлеб", "молоко")),
    _ask(
        "another_lamp",
        "turns",
        "Turn on the lamp in the attic.",
        "Now the one in the cellar, too.",
        calls=[_lamp("attic", True), _lamp("cellar", True)],
    ),
    _ask(
        "warmer",
        "turns",
        "Set the heating in the office to 18 degrees.",
        "Make it two degrees warmer.",
        calls=[_heat("office", 18), _heat("office", 20)],
    ),
    _ask(
        "remembered",
        "turns",
        "My name is Yara, and I like classical music best.",
        "Play the music that I like.",
        calls=[("play_music", {"genre": "classical"})],
    ),
    _ask(
        "what_was_it",
        "turns",
        "Put rice on the shopping list.",
        "What does 'tithe' mean? Use the dictionary.",
        "Which item did I ask you to put on the list?",
        calls=[*_bought("rice"), ("define_word", {"word": "tithe"})],
        says=["rice"],
    ),
    _ask(
        "email_to_name",
        "depends",
        "Find the address of Ines and send her an email that lunch is at noon.",
        calls=[
            ("find_contact", {"name": containing("ines")}),
            ("send_email", {"to": "ines.berg@post.example", "body": containing("lunch", "noon")}),
        ],
    ),
    _ask(
        "low_stock",
        "depends",
        "Check the stock of printer paper. If it is below 10, order 50.",
        calls=[
            ("check_stock", {"product": "printer paper"}),
            ("order_goods", {"product": "printer paper", "quantity": 50}),
        ],
    ),
    _ask(
        "enough_stock",
        "depends",
        "Check the stock of envelopes. Only if it is below 10, order 50.",
        calls=[("check_stock", {"product": either("envelope", "envelopes")})],
        says=["120"],
    ),
    _ask(
        "manager",
        "depends",
        "Who is the manager of Lea? Find that person's email address, too.",
        calls=[("find_contact", {"name": containing("lea")}), ("find_contact", {"name": containing("karl")})],
        says=["k.voss@post.example"],
    ),
    _ask(
        "same_number",
        "depends",
        "See how many pens are in stock, then order the same number of notebooks.",
        calls=[
            ("check_stock", {"product": either("pen", "pens")}),
            ("order_goods", {"product": either("notebook", "notebooks"), "quantity": 14}),
        ],
    ),
    _ask(
        "busy_rate",
        "fails",
        "How many USD do I get for one CHF?",
        calls=[("exchange_rate", {"base": "chf", "target": "usd"})],
        says=["1.12"],
        busy="exchange_rate",
    ),
    _ask(
        "busy_email",
        "fails",
        "Send an email to lea.roth@post.example: the train is late.",
        calls=[("send_email", {"to": "lea.roth@post.example", "body": containing("train", "late")})],
        busy="send_email",
    ),
    _ask(
        "boxes",
        "fails",
        "Order 10 pieces of printer ink. If that is refused, order the next larger number that is allowed.",
        calls=[("order_goods", {"product": "printer ink", "quantity": 12})],
        says=["12"],
    ),
    _ask(
        "two_bobs",
        "fails",
        "What is the email address of Bob in Hamburg?",
        calls=[("find_contact", {"name": containing("marlow")})],
        says=["marlow@post.example"],
    ),
    _ask(
        "other_name",
        "fails",
        "How many staplers are in stock?",
        calls=[("check_stock", {"product": either("desk stapler", "desk staplers")})],
        says=["17"],
    ),
    _ask(
        "invoice",
        "nested",
        "Create an invoice for Nora Lind, 5 Mill Lane, 48143 Munster: 2 chairs at 45 euros each, 1 table at 120 euros.",
        calls=[
            (
                "create_invoice",
                {
                    "customer": "nora lind",
                    "address": {"street": either("5 mill lane", "mill lane 5"), "city": "munster", "zip": "48143"},
                    "items": [
                        {"name": either("chair", "chairs"), "quantity": 2, "price": 45},
                        {"name": either("table", "tables"), "quantity": 1, "price": 120},
                    ],
                },
            )
        ],
        says=[("210", "r-508")],
    ),
    _ask(
        "one_line",
        "nested",
        "Create an invoice for Tom Hale, 12 Park Road, 10115 Berlin: 3 lamps at 19.5 euros each.",
        calls=[
            (
                "create_invoice",
                {
                    "customer": "tom hale",
                    "address": {"street": either("12 park road", "park road 12"), "city": "berlin", "zip": "10115"},
                    "items": [{"name": either("lamp", "lamps"), "quantity": 3, "price": 19.5}],
                },
            )
        ],
        says=[("58.5", "r-508")],
    ),
    _ask(
        "guests",
        "nested",
        "Book a meeting about the budget on Friday with Ada (ada@post.example) and Finn (finn@post.example).",
        calls=[
            (
                "book_meeting",
                {
                    "title": containing("budget"),
                    "day": containing("friday"),
                    "guests": [
                        {"name": "ada", "email": "ada@post.example"},
                        {"name": "finn", "email": "finn@post.example"},
                    ],
                },
            )
        ],
    ),
    _ask(
        "points",
        "nested",
        "Draw the points (1, 2), (3, 4) and (5, 0) into the diagram.",
        calls=[("plot_points", {"points": [[1, 2], [3, 4], [5, 0]]})],
    ),
    _ask(
        "python",
        "code",
        f"Save this Python code under the name greet:\n\n{GREET}",
        calls=_saved("greet", "python", GREET),
    ),
    _ask(
        "html",
        "code",
        f"Save this HTML under the name link, exactly as it is:\n\n{LINK}",
        calls=_saved("link", "html", LINK),
    ),
    _ask(
        "sql",
        "code",
        f"Run this query and tell me the names: {USERS}",
        calls=[("run_sql", {"query": query(USERS)})],
        says=["anna", "omar"],
    ),
    _ask(
        "replace",
        "code",
        "In the document page.html, replace <b>Old</b> by <strong>New</strong>.",
        calls=[
            (
                "replace_text",
                {"document": "page.html", "old": exactly("<b>Old</b>"), "new": exactly("<strong>New</strong>")},
            )
        ],
    ),
    _ask(
        "bash",
        "code",
        f"Save this bash code under the name loop:\n\n{LOOP}",
        calls=_saved("loop", "bash", LOOP),
    ),
    _ask(
        "json",
        "code",
        f"Save this JSON under the name config, exactly as it is:\n\n{CONFIG}",
        calls=_saved("config", "json", CONFIG),
    ),
    _ask(
        "log",
        "long",
        "Which job failed according to the document server.log, and with which code?",
        calls=[("read_document", {"name": "server.log"})],
        says=["backup-nightly", "e4417"],
    ),
    _ask(
        "page",
        "long",
        "When does the Observatory open according to the document hours.html?",
        calls=[("read_document", {"name": "hours.html"})],
        says=["9:30"],
    ),
    _ask(
        "rows",
        "long",
        "At which desk does Hugo sit? It is in the document staff.json.",
        calls=[("read_document", {"name": "staff.json"})],
        says=["222"],
    ),
    _ask(
        "handbook",
        "long",
        "What is the code of the parking barrier? It is in the document handbook.txt.",
        calls=[("read_document", {"name": "handbook.txt"})],
        says=["7730"],
    ),
)
"""All tasks, those of one kind together."""


def spread(tasks: Sequence[Task], limit: int | None) -> list[Task]:
    """At most `limit` of the tasks, evenly over their kinds; a smaller limit selects some of the same."""
    if limit is None or limit >= len(tasks):
        return list(tasks)
    ranks: dict[str, int] = {}
    order = []
    for at, task in enumerate(tasks):
        ranks[task.kind] = ranks.get(task.kind, 0) + 1
        order.append((ranks[task.kind], at))
    return [tasks[at] for at in sorted(at for _, at in sorted(order)[:limit])]
