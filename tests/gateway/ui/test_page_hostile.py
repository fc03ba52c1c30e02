"""Hostile text wherever it may stand: nothing runs, nothing is loaded, no link leads where it should not."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from page_driver import Tab, Tabs
from page_server import PageServer

HOSTILE: Final = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<img src=https://evil.example/1.png>",
    "<svg/onload=alert(1)>",
    "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
    "<style>@import url(https://evil.example/2.css);</style>",
    "<link rel=stylesheet href=https://evil.example/3.css>",
    "<base href=https://evil.example/>",
    "<meta http-equiv=refresh content='0;url=https://evil.example/4'>",
    "<details open ontoggle=alert(1)>",
    "<form action=https://evil.example/5><button>Approve</button></form>",
    "<object data=https://evil.example/6></object><embed src=https://evil.example/7>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=x onerror=alert(1)&gt;'>",
    "<a href='javascript:alert(1)'>one</a>",
    "</textarea></title></script><script>alert(1)</script>",
    "[two](javascript:alert(1))",
    "[three](JaVaScRiPt:alert(1))",
    "[four](java\tscript:alert(1))",
    "[five](&#106;avascript:alert(1))",
    "[six]( javascript:alert(1))",
    "[seven](data:text/html,<script>alert(1)</script>)",
    "[eight](vbscript:msgbox(1))",
    "[nine](//evil.example/8)",
    "[ten](/ui/api/threads)",
    '[eleven](https://evil.example/" onmouseover="alert(1))',
    "[twelve](blob:https://evil.example/9)",
    "[thirteen](file:///etc/passwd)",
    "![fourteen](https://evil.example/10.png)",
    "![fifteen](javascript:alert(1))",
    "![sixteen](data:image/svg+xml,<svg/onload=alert(1)>)",
    "[![seventeen](https://evil.example/11.png)](javascript:alert(1))",
    "[eighteen]: javascript:alert(1)\n[eighteen]",
    "<javascript:alert(1)>",
    "<https://evil.example/12>",
    "https://evil.example/13?<script>alert(1)</script>",
    "`<img src=x onerror=alert(1)>`",
    "```html\n<img src=x onerror=alert(1)>\n```",
    '```"><img src=x onerror=alert(1)>\ncode\n```',
    "| a |\n|---|\n| <img src=x onerror=alert(1)> [x](javascript:alert(1)) |",
    "# <img src=x onerror=alert(1)>",
    "> <img src=x onerror=alert(1)>",
    "1. <img src=x onerror=alert(1)>",
    "{{constructor.constructor('alert(1)')()}}${alert(1)}",
    "\u202eevil\u202c \u200b\u2066x\u2069 \x1b[31mred \x00 \ufeff",
    "__proto__ constructor toString",
)
EVERY: Final = "\n\n".join(HOSTILE)

LINKS: Final = "[...document.querySelectorAll('a[href]')].map(a => a.protocol)"
LOADED: Final = """[...document.querySelectorAll(
        'script, img, iframe, object, embed, link, style, base, meta[http-equiv]'
    )].map(e => e.outerHTML).filter(html => /evil|alert|srcdoc|<style|<base|<meta/.test(html))"""
HANDLERS: Final = """[...document.querySelectorAll('*')]
    .filter(e => [...e.attributes].some(({name}) => name.startsWith('on'))).map(e => e.outerHTML)"""

PLACES: Final[dict[str, list[Any]]] = {
    "text": [[EVERY]],
    "thinking": [[{"thinking": EVERY}, "Thought."]],
    "result": [[{"call": "show", "arguments": {"text": EVERY}}], ["Shown."]],
    "error": [[{"call": "fail", "arguments": {"why": EVERY}}], ["Failed."]],
    "path": [
        [
            {"call": "write_file", "arguments": {"path": one, "content": EVERY}}
            for one in ("<img src=x onerror=alert(1)>", EVERY)
        ]
    ],
    "edit": [[{"call": "edit_file", "arguments": {"path": "a.html", "old_str": EVERY, "new_str": f"{EVERY}!"}}]],
    "argument": [[{"call": "order", "arguments": {"item": EVERY, "amount": 1}}]],
    "name": [[{"call": one, "arguments": {one: one}} for one in HOSTILE[:5]], ["No such tools."]],
    "rows": [[{"call": "hostile_table", "arguments": {"cells": HOSTILE}}], ["A table."]],
}
"""By the place of the text, what the model writes."""


def inert(tab: Tab) -> None:
    """Check the page with all that can be unfolded open."""
    tab.is_drawn()
    folded = tab.page.locator("[aria-expanded=false]:visible, details:not([open]) > summary:visible")
    while folded.count():
        folded.first.click()
    assert "alert(1)" in tab.page.inner_text("main")
    tab.page.wait_for_timeout(200)
    assert set(tab.page.evaluate(LINKS)) <= {"http:", "https:", "mailto:"}
    assert tab.page.evaluate(LOADED) == []
    assert tab.page.evaluate(HANDLERS) == []
    assert tab.faults() == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.share(len(PLACES))
def test_hostile_text_from_the_model_is_inert_in(place: str, server: PageServer, tabs: Tabs) -> None:
    server.play("play", *PLACES[place])
    tab = tabs.new()
    tab.say("play")
    tab.is_at_rest()
    inert(tab)
    tab.reload()
    tab.is_at_rest()
    inert(tab)


@pytest.mark.soak
def test_hostile_text_of_the_user_is_inert(server: PageServer, tabs: Tabs) -> None:
    """It is also the thread's title."""
    tab = tabs.new()
    for one in HOSTILE[:3]:
        tab.open()
        tab.say(one)
        tab.is_idle()
    tab.say(EVERY)
    tab.is_idle()
    inert(tab)
    tab.reload()
    tab.is_idle()
    inert(tab)
    assert json.loads(tab.page.evaluate("JSON.stringify(document.title)")).count("alert") <= 1
