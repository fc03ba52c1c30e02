"""What a person approves, and edits, is what runs: numbers of 64 bits, and names that JavaScript objects have too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from browser import CHROMIUM, in_browser
from page_driver import Tabs
from page_server import PageServer
from static_page import Modules, modules

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: chromium)")

LARGE: Final = 1234567890123456789
NAMES: Final = '{"__proto__":{"x":1},"constructor":2,"toString":"three","a":4}'


@pytest.fixture(scope="module")
def page() -> Iterator[Modules]:
    with modules("() => 0") as opened:
        yield opened


def run(page: Modules, script: str) -> object:
    found: object = in_browser(lambda: page.page.evaluate(script))
    return found


def test_a_large_number_is_shown_and_sent_exactly(server: PageServer, tabs: Tabs) -> None:
    server.play("play", [{"call": "order", "arguments": {"item": "tea", "amount": LARGE}}], ["Done."])
    tab = tabs.new()
    tab.say("play")
    card = tab.card("order")
    card.says(str(LARGE))
    card.edit(item="milk")
    tab.sees("Done.")
    (effect,) = server.effects
    assert (effect["item"], effect["amount"]) == ("milk", LARGE)
    tab.reload()
    card.unfold()
    card.says(str(LARGE))


def test_numbers_of_json_are_read_and_written_exactly(page: Modules) -> None:
    text = '{"a":[9007199254740993,-9007199254740993,9007199254740991],"b":"9007199254740993","c":0.12345678901234566}'
    assert run(page, f"import('/json.js').then(({{readJson, writeJson}}) => writeJson(readJson('{text}')))") == text


def test_a_form_keeps_all_names(page: Modules) -> None:
    form = f"new ArgumentForm(JSON.parse('{NAMES}'), {{ properties: {{ a: {{ type: 'integer' }} }} }})"
    assert run(page, f"import('/form.js').then(({{ArgumentForm}}) => JSON.stringify({form}.read()))") == NAMES


@pytest.mark.parametrize(
    ("typed", "read"),
    [("12345678901234567", '{"n":12345678901234567}'), (" -2.5e3", '{"n":-2500}')]
    + [(text, "null") for text in ("0x10", "1e400", "1,5", '"1"', "true")],
)
def test_a_number_is_read_as_it_was_typed_or_refused(page: Modules, typed: str, read: str) -> None:
    script = f"""Promise.all([import('/form.js'), import('/json.js')]).then(([{{ArgumentForm}}, {{writeJson}}]) => {{
        const form = new ArgumentForm({{n: 1}}, {{properties: {{n: {{type: 'number'}}}}}});
        form.fields[0].input.value = '{typed}';
        form.fields[0].input.dispatchEvent(new Event('input'));
        return writeJson(form.read());
    }})"""
    assert run(page, script) == read


def test_a_table_has_only_the_cells_of_its_rows(page: Modules) -> None:
    rows = f'[{NAMES},{{"b":5}}]'
    cells = "[...shown.querySelectorAll('td')].map((cell) => cell.textContent)"
    script = (
        f"import('/values.js').then(({{resultView}}) => {{ const [shown] = resultView('{rows}'); return {cells}; }})"
    )
    assert run(page, script) == ['{"x":1}', "2", "three", "4", "", "", "", "", "", "5"]
