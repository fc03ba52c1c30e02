"""The conversation on the test page: cards, decisions, the reply as it was written, long threads, hostile text."""

# ruff: noqa: E501 - literal events and scripts: one a line

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from browser import CHROMIUM, in_browser
from static_page import TREE, Modules, modules
from thread_events import (
    Event,
    approval,
    call,
    custom,
    finished,
    result,
    snapshot,
    started,
    stored_call,
    stored_reply,
    stored_user,
    text,
    thread,
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: chromium)")

SETUP: Final = f"""async () => {{
  const {{ Conversation }} = await import("/conversation.js");
  const note = (...what) => void did.push(what);
  window.did = [];
  window.refuse = null;
  window.tree = {TREE};
  window.conversation = new Conversation(document.getElementById("conversation"), {{
    async decide(id, decision) {{
      note("decide", id, decision);
      if (refuse) throw refuse;
    }},
    outcome: async (id, outcome) => note("outcome", id, outcome),
    fork: (seq) => note("fork", seq),
    copy: async (text) => note("copy", text),
    highlight: async (language, code) => [["k", code.slice(0, 2)], ["", code.slice(2)]],
    schema: () => ({{
      type: "object",
      properties: {{ path: {{ type: "string" }}, count: {{ type: "integer" }}, how: {{ enum: ["soft", "hard"] }}, deep: {{ type: "boolean" }} }},
      required: ["path"],
    }}),
  }});
}}"""

GIVEN: Final = {"path": "a\u202etxt", "count": 3, "rest": {"x": [1]}}
EFFECT: Final = {
    "target": "a.txt",
    "note": "",
    "body": [" same", "-old", "+new"],
    "language": "",
    "edits": True,
    "rest": {"count": 3},
}
HOSTILE: Final = (
    "<img src=x onerror=alert(1)><script>alert(1)</script><svg/onload=alert(1)> [x](javascript:alert(1)) "
    "[y](java\tscript:alert(1)) [z](&#106;avascript:alert(1)) ![p](https://evil.example/p.png) <https://evil.example/> "
    "[v](vbscript:x) [d](data:text/html,<script>alert(1)</script>) [b](blob:https://evil.example/1) [r](//evil.example)"
    " <iframe srcdoc='<script>alert(1)</script>'></iframe> <base href=https://evil.example/> `<b onclick=alert(1)>`\n\n"
    "```html\n<img src=x onerror=alert(1)>\n```\n| <img src=x onerror=alert(1)> | b |\n|--|--|\n| [x](javascript:alert(1)) | c |"
)

SEEN: Final = """(id) => {
    conversation.focusCard(id);
    const buttons = document.querySelector(`[data-call="${id}"] .decide`);
    return new Promise((done) => {
        const look = () => (buttons.seen ? done() : setTimeout(look, 10));
        look();
    });
}"""
"""Goes to a decision, and waits until the page knows that it was on the screen."""


@pytest.fixture
def page() -> Iterator[Modules]:
    with modules(SETUP) as opened:
        yield opened


def waiting(*ids: str, **about: Any) -> list[Event]:
    """Calls that wait."""
    calls = [one for id in ids for one in call(id, "delete", "{}", end={"arguments": GIVEN, **about})]
    return [started(), *calls, *(approval(id, f"hash-{id}", **GIVEN) for id in ids), finished("r1", "interrupt")]


def alive(page: Modules) -> None:
    """Wait until buttons are no longer dead."""
    page.run("() => new Promise((done) => setTimeout(done, 550))")


def at_once(page: Modules, script: str, *events: Event) -> Any:
    """Give events to the conversation, and evaluate JavaScript once they are drawn: before any longer timer's end."""
    return page.run(
        f"""(events) => {{
            for (const event of events) conversation.apply(event);
            return new Promise((done) => requestAnimationFrame(() => setTimeout(() => done({script}), 0)));
        }}""",
        list(events),
    )


def did(page: Modules) -> Any:
    return page.run("() => did")


# ---------------------------------------------------------------- cards


def test_a_call_from_its_first_character_to_its_result(page: Modules) -> None:
    start, first, second, end = call(
        "c1", "write", '{"path": "a.txt", "text": "one\\ntwo\\u00e9"}', end={"arguments": {}}
    )
    page.apply(started(), start, first)
    assert page.text(".call-word") == ["writing"]
    page.apply(second)
    assert page.text(".live") == ["path: a.txt\ntext: one\ntwoé"]
    page.apply(end, custom("started", toolCallId="c1", at=0))
    assert (page.text(".call-word"), page.text(".live")) == (["running"], [])
    page.apply(result("c1", "ok", seconds=1.234), finished())
    assert (page.text(".call-word"), page.text(".call-time")) == (["done"], ["1.2 s"])
    assert page.run("() => document.querySelector('.call-body').childElementCount") == 0
    in_browser(lambda: page.page.locator(".call-head").click())
    assert page.text(".output") == ["ok"]


def test_results_that_are_lists_of_objects_are_tables_and_pictures_are_shown(page: Modules) -> None:
    picture = {"type": "image", "source": {"type": "data", "value": "iVBORw0KGgo=", "mimeType": "image/png"}}
    elsewhere = {"type": "image", "source": {"type": "url", "value": "https://evil.example/1.png"}}
    page.apply(started(), *call("c1", "f", "{}"), *call("c2", "g", "{}"))
    page.apply(result("c1", '[{"a": 1, "b": "x"}, {"a": 2}]'), result("c2", [picture, elsewhere]))
    in_browser(lambda: [head.click() for head in page.page.locator(".call-head").all()])
    assert page.text(".call .table td") == ["1", "x", "2", ""]
    assert page.run("() => [...document.images].map((image) => image.src)") == ["data:image/png;base64,iVBORw0KGgo="]


def test_finished_calls_in_a_row_become_one_line(page: Modules) -> None:
    calls = [
        one
        for n in range(4)
        for one in (
            *call(f"c{n}", "f", "{}"),
            custom("started", toolCallId=f"c{n}", at=1),
            result(f"c{n}", "ok", "failed" if n == 0 else "done"),
        )
    ]
    page.apply(started(), *calls)
    assert page.text(".fold summary") == []
    page.apply(*text("so"), finished())
    assert page.text(".fold summary") == ["3 calls · 1.5 s"]
    page.run("() => conversation.focusCard('c2')")
    assert page.run("() => document.activeElement.closest('.call').dataset.call") == "c2"
    assert page.run("() => document.querySelector('.call:not(details *)').dataset.call") == "c0"


# ---------------------------------------------------------------- decisions


def test_a_decision_shows_the_effect_then_the_arguments_then_the_reason(page: Modules) -> None:
    page.apply(*waiting("c1", effect=EFFECT))
    (shown,) = page.text(".approval")
    places = [
        shown.index(part) for part in ("Run delete?", "a.txt", "-old", "+new", "count", "Why it asks: it deletes")
    ]
    assert places == sorted(places)
    assert page.run("() => document.activeElement === document.body")


def test_the_whole_argument_is_shown_with_invisible_characters(page: Modules) -> None:
    page.apply(*waiting("c1"))
    assert page.text(".approval dd") == ["a⟨U+202E⟩txt", "3", '{\n  "x": [\n    1\n  ]\n}']
    long = "x" * 100000
    page.apply(
        started("r2"), *call("c2", "f", "{}", message="r2-1", end={"arguments": {"a": long}}), approval("c2", a=long)
    )
    assert page.run("() => [...document.querySelectorAll('.approval dd')].at(-1).textContent.length") == 100000


def test_the_buttons_are_dead_at_first(page: Modules) -> None:
    at_once(page, "document.querySelector('.decide button').click()", *waiting("c1"))
    assert did(page) == []
    alive(page)
    page.run("() => document.querySelector('.decide button').click()")
    assert did(page) == [["decide", "c1", {"hash": "hash-c1", "approved": True}]]


def test_keys_on_a_focused_decision(page: Modules) -> None:
    page.apply(*waiting("c1"))
    alive(page)
    page.run("() => conversation.focusCard('c1')")
    in_browser(lambda: page.page.keyboard.press("a"))
    assert did(page) == [["decide", "c1", {"hash": "hash-c1", "approved": True, "always": True}]]


def test_patterns_begin_as_the_call_itself(page: Modules) -> None:
    given = {"path": "*.txt", "count": 3, "tags": ["a*"]}
    asked = approval("c1", "hash-c1", **given)
    page.apply(started(), *call("c1", "delete", "{}", end={"arguments": given}), asked, finished("r1", "interrupt"))
    alive(page)
    page.click("Always allow like this…")
    page.click("Approve, and always allow these")
    patterns = {**given, "path": "\\*.txt"}
    assert did(page) == [["decide", "c1", {"hash": "hash-c1", "approved": True, "always": patterns}]]


def test_arguments_are_edited_in_a_form(page: Modules) -> None:
    page.apply(*waiting("c1"))
    alive(page)
    page.click("Edit")
    page.fill("count", "four")
    page.click("Approve with these arguments")
    assert (page.text(".fault:not(:empty)"), did(page)) == (["This is not a number."], [])
    page.fill("count", "4")
    page.run(
        "() => { refuse = { status: 422, message: 'no', fields: { 'path': 'is hidden', '/count': 'at most 3' } }; }"
    )
    page.click("Approve with these arguments")
    assert page.text(".field .fault:not(:empty)") == ["is hidden", "at most 3"]
    assert page.text(".field del") == ["", "3", "", "", ""] or page.text(".field del:visible") == ["3"]
    page.run("() => { refuse = null; }")
    in_browser(lambda: page.page.get_by_label("how").select_option("hard"))
    page.click("Approve with these arguments")
    assert did(page)[-1] == [
        "decide",
        "c1",
        {"hash": "hash-c1", "approved": True, "arguments": {**GIVEN, "count": 4, "how": "hard"}},
    ]


def test_a_call_is_denied_with_a_reason(page: Modules) -> None:
    page.apply(*waiting("c1"))
    alive(page)
    page.click("Deny…")
    page.click("Not now")
    page.click("Deny")
    assert did(page) == [["decide", "c1", {"hash": "hash-c1", "approved": False, "reason": "Not now"}]]
    page.apply(custom("decided", toolCallId="c1", decision="denied", by="eve", reason="Not now"))
    page.apply(result("c1", "denied: Not now", "denied"))
    assert (page.text(".call-word"), page.text(".approval")) == (["denied"], [])
    in_browser(lambda: page.page.locator(".call-head").click())
    assert page.text(".decided") == ["denied by eve: Not now"]


def test_a_decision_taken_elsewhere(page: Modules) -> None:
    page.apply(*waiting("c1"))
    alive(page)
    page.run("() => { refuse = { status: 409, message: 'It no longer waits.' }; }")
    page.click("Approve")
    assert page.text(".fault:not(:empty)") == ["It was decided elsewhere, or it changed. It no longer waits."]
    page.apply(custom("decided", toolCallId="c1", decision="approved", by="another tab", arguments={"path": "b"}))
    assert (page.text(".call-word"), page.text(".approval")) == (["approved"], [])
    in_browser(lambda: page.page.locator(".call-head").click())
    assert page.text(".decided") == ["approved by another tab, arguments edited"]


def test_several_are_approved_at_once_after_each_was_seen(page: Modules) -> None:
    tall = {f"argument {n}": "x\n" * 40 for n in range(3)}
    page.apply(*waiting("c1", "c2", "c3", effect={**EFFECT, "rest": tall}))
    alive(page)
    assert page.text(".count") == ["1 of 3", "2 of 3", "3 of 3"]
    page.run("() => document.querySelector('.decide button:last-child:not([hidden])').click()")
    assert did(page) == []
    for id in ("c1", "c2", "c3"):
        page.run(SEEN, id)
    page.click("Edit")
    page.run(
        "() => [...document.querySelectorAll('button')].find((one) => one.textContent === 'Approve all 3').click()"
    )
    assert did(page) == []  # one of them is being edited
    page.click("Cancel")
    page.click("Approve all 3")
    assert [what[1:] for what in did(page)] == [
        [id, {"hash": f"hash-{id}", "approved": True}] for id in ("c1", "c2", "c3")
    ]


def test_the_first_call_that_waits_is_on_the_screen(page: Modules) -> None:
    page.run("() => { const { style } = conversation.root; style.height = '400px'; style.overflow = 'auto'; }")
    page.apply(started(), *text("word " * 900))
    page.apply(*waiting("c1", "c2", effect={**EFFECT, "rest": {"long": "x\n" * 30}})[1:])
    alive(page)
    top = "() => document.querySelector('.call').getBoundingClientRect().top - conversation.root.getBoundingClientRect().top"
    assert -1 <= page.run(top) < 50
    page.run("() => { conversation.root.scrollTop += 200; }")
    page.apply(custom("usage", messageId="r1-1"))
    alive(page)
    assert page.run(top) < -150


@pytest.mark.soak
def test_what_is_unfolded_stays_on_the_screen(page: Modules) -> None:
    page.run("() => { const { style } = conversation.root; style.height = '400px'; style.overflow = 'auto'; }")
    page.apply(started(), *text("word " * 900), *call("c1", "f", "{}"), result("c1", "line\n" * 100), finished())
    in_browser(lambda: page.page.locator(".call-head").click())
    alive(page)
    top = "() => document.querySelector('.call').getBoundingClientRect().top - conversation.root.getBoundingClientRect().top"
    assert page.run(top) > 0


def test_after_a_decision_the_focus_is_on_the_next_one(page: Modules) -> None:
    page.run("() => document.body.append(Object.assign(document.createElement('textarea'), { id: 'text' }))")
    page.apply(*waiting("c1", "c2"))
    alive(page)
    page.run("() => conversation.focusCard('c1')")
    in_browser(lambda: page.page.keyboard.press("y"))
    second_key = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'n', bubbles: true }))"
    at_once(page, second_key, custom("decided", toolCallId="c1", decision="approved", by="page"))
    assert page.run("() => document.activeElement.closest('.call').dataset.call") == "c2"
    assert page.text("textarea") == [""]  # the second key came too soon: nothing is opened
    alive(page)
    in_browser(lambda: page.page.keyboard.press("n"))
    in_browser(lambda: page.page.keyboard.type("no"))
    in_browser(lambda: page.page.keyboard.press("Control+Enter"))
    page.apply(custom("decided", toolCallId="c2", decision="denied", by="page", reason="no"))
    assert page.run("() => document.activeElement.id") == "text"
    assert [what[2].get("reason") for what in did(page)] == [None, "no"]


def test_an_edit_without_a_change_says_so(page: Modules) -> None:
    page.apply(*waiting("c1", effect={**EFFECT, "body": [" same"]}))
    (shown,) = page.text(".approval")
    assert "No change." in shown


def test_calls_inside_a_call_wait_in_its_card(page: Modules) -> None:
    page.apply(started(), *call("c1", "helper", "{}"), approval("c1/x", "h1", "one"), approval("c1/y", "h2", "two"))
    alive(page)
    assert page.text(".call .approval .ask b") == ["Run one?", "Run two?"]
    page.click("Approve", 1)
    assert did(page) == [["decide", "c1/y", {"hash": "h2", "approved": True}]]
    page.apply(custom("decided", toolCallId="c1/y", decision="approved", by="eve"))
    assert page.text(".call .approval .ask b") == ["Run one?"]


def test_an_unknown_outcome_is_asked_for(page: Modules) -> None:
    page.apply(thread("interrupted"), snapshot(stored_reply("m1", "", stored_call("c1", "send", "unknown"))))
    assert page.text(".outcome p:first-child") == [
        "It was running when the server stopped; its effect may have happened."
    ]
    page.click("It happened…")
    page.fill("What happened, as the model shall read it", "It was sent.")
    page.click("Save")
    assert did(page) == [["outcome", "c1", {"happened": True, "text": "It was sent."}]]


# ---------------------------------------------------------------- replies


@pytest.mark.soak
def test_a_reply_as_it_was_written(page: Modules) -> None:
    repaired = [{"code": "missing_close", "text": "the end tag was missing"}]
    one = stored_call("c1", "f", raw="<f>1</f>", repairs=repaired)
    two = stored_call("c2", "g", raw=None, format=None)
    page.apply(snapshot(stored_reply("m1", "Hi **x**", one, two, written="Hi **x**\n<f>1</f>")))
    page.run("() => conversation.toggleRaw()")
    assert page.text(".raw pre") == [
        "Hi **x**\n<f>1</f>",
        '{\n  "name": "g",\n  "arguments": {\n    "path": "a.txt"\n  }\n}',
    ]
    assert page.text(".repair") == ["Repaired (missing_close): the end tag was missing"]
    page.click("<f>1</f>")
    assert page.run("() => document.activeElement.closest('.call').dataset.call") == "c1"


def test_unfinished_replies_say_so(page: Modules) -> None:
    page.apply(started(), *text("a"), finished("r1", "cancelled"))
    page.apply(started("r2"), *text("b", message="r2-1"), {"type": "RUN_ERROR", "message": "The model is unreachable."})
    assert page.text(".end:not([hidden])") == ["Stopped: this reply is unfinished.", "The model is unreachable."]


def test_the_footer(page: Modules) -> None:
    usage = {"inputTokens": 1200, "outputTokens": 34}
    page.apply(snapshot(stored_reply("m1", "Hi *you*", model="m", seconds=2.5, usage=usage, cost=0.001)))
    assert page.text(".answer footer span")[0].partition(" · ")[2] == "m · 2.5 s · 1.2k tokens in, 34 out · $0.0010"
    page.click("Copy the message")
    page.click("Fork the thread after this message")
    assert did(page) == [["copy", "Hi *you*"], ["fork", 2]]


def test_finished_code_is_highlighted(page: Modules) -> None:
    page.apply(started(), *text("```python\ndef f"))
    assert page.run("() => document.querySelectorAll('[class^=tok]').length") == 0
    page.apply(*text("(): 1\n```\n"))
    assert page.text(".tok-k") == ["de"]


def test_the_status_line(page: Modules) -> None:
    said = []
    for events in (
        [started()],
        call("c1", "f", "{}"),
        [custom("started", toolCallId="c1", at=1)],
        waiting("c1"),
        [thread("idle")],
    ):
        page.apply(*events)
        said += page.text("#status")
    page.apply(custom("decided", toolCallId="c1", decision="denied"), result("c1", "no", "denied"))
    assert [*said, *page.text("#status")] == [
        "answering",
        "answering",
        "running f",
        *["waiting for you: delete"] * 2,
        "done",
    ]


# ---------------------------------------------------------------- long threads, place


def long_thread(pairs: int) -> Event:
    """A snapshot."""
    words = "Some **words** here.\n\n- one\n- two\n\n```python\nx = 1\n```\n" * 12
    messages = [(stored_user(f"u{n}", f"question {n}"), stored_reply(f"a{n}", words, seq=2 * n)) for n in range(pairs)]
    return snapshot(*(message for pair in messages for message in pair))


@pytest.mark.soak  # `benchmarks/page.py` measures it
def test_two_thousand_messages(page: Modules) -> None:
    """The last ones are there at once; the others are built above them without moving what is read."""
    seconds, apart, moved, built = page.run(
        """async (event) => {
          const start = performance.now();
          conversation.apply(event);
          await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
          const seconds = (performance.now() - start) / 1000;
          const apart = () => conversation.root.scrollHeight - conversation.root.scrollTop - conversation.root.clientHeight;
          const first = apart();
          conversation.root.scrollTop -= 500;
          await new Promise((done) => setTimeout(done, 100));
          const mark = [...document.querySelectorAll("article")].at(-4);
          const place = mark.getBoundingClientRect().top;
          const count = () => document.querySelectorAll("article").length;
          while (count() < 2000) await new Promise((done) => setTimeout(done, 50));
          return [seconds, first, mark.getBoundingClientRect().top - place, count()];
        }""",
        long_thread(1000),
    )
    print(f"interactive after {seconds:.2f} s")
    assert (apart, round(moved), built) == (0, 0, 2000)
    assert seconds < 3  # a busy machine; alone it takes 0.1


@pytest.mark.soak
def test_it_scrolls_only_while_it_is_at_the_end(page: Modules) -> None:
    page.apply(long_thread(10))
    at = "() => [Math.round(conversation.root.scrollHeight - conversation.root.scrollTop - conversation.root.clientHeight), document.querySelector('.newer').hidden]"
    page.apply(started(), *text("more\n\n" * 20))
    alive(page)
    assert page.run(at) == [0, True]
    page.run("() => { conversation.root.scrollTop -= 400; }")
    alive(page)
    page.apply(*text("and more\n\n" * 20))
    alive(page)
    apart, hidden = page.run(at)
    assert (apart > 300, hidden) == (True, False)
    page.click("↓ new")
    alive(page)
    assert page.run(at) == [0, True]


def test_events_again_draw_the_same(page: Modules) -> None:
    events = [long_thread(3), *waiting("c1", "c2"), custom("user", id="u", seq=9, content="x", queued=True)]
    page.apply(*events)
    before = page.run("() => tree(conversation.list)")
    page.apply(*events)
    assert page.run("() => tree(conversation.list)") == before


def test_a_snapshot_right_after_other_events_is_drawn(page: Modules) -> None:
    """Both in one frame: what the first events changed no longer exists."""
    page.apply(started(), *text("a"))
    page.apply(*text("b"), snapshot(stored_reply("m1", "new")))
    assert page.text(".markdown") == ["new"]


def test_a_message_is_queued_until_it_is_read_or_its_run_is_gone(page: Modules) -> None:
    page.apply(started(), *text("a"), custom("user", id="u", seq=3, content="next", queued=True))
    assert page.run("() => conversation.queued") == 1
    page.apply(snapshot(stored_user("u", "next")))
    assert page.run("() => conversation.queued") == 0


def test_next_and_previous_message(page: Modules) -> None:
    page.apply(long_thread(4))
    alive(page)
    page.run(
        "() => { conversation.root.scrollTop = 0; conversation.move(1); conversation.move(1); conversation.move(-1); }"
    )
    assert page.run("() => [...document.querySelectorAll('article')].indexOf(document.activeElement)") == 0


# ---------------------------------------------------------------- hostile


def test_hostile_text_is_inert_everywhere(page: Modules) -> None:
    """No script runs, nothing is requested, no link leads to a script: `modules` checks the first two."""
    arguments = {HOSTILE: HOSTILE, "path": HOSTILE}
    effect = {
        "target": HOSTILE,
        "note": HOSTILE,
        "body": [f"+{HOSTILE}"],
        "language": HOSTILE,
        "edits": True,
        "rest": arguments,
    }
    repairs = [{"code": HOSTILE, "text": HOSTILE}]
    odd = {
        "raw": HOSTILE,
        "format": HOSTILE,
        "repairs": repairs,
        "effect": effect,
        "error": {"code": HOSTILE, "message": HOSTILE},
    }
    page.apply(
        snapshot(stored_user("u", HOSTILE), stored_reply("m", HOSTILE, stored_call(HOSTILE, HOSTILE, "unknown", **odd), model=HOSTILE)),
        *(started(), *text(HOSTILE), *call("c", HOSTILE, HOSTILE, end={"arguments": arguments, **odd})),
        *(approval("c", HOSTILE, HOSTILE), *call("d", HOSTILE, "{}"), result("d", HOSTILE, HOSTILE)),
        *call("e", HOSTILE, "{}"),
        result("e", [{"type": "text", "text": HOSTILE}, {"type": HOSTILE}, {"type": "image", "source": {"type": "data", "value": HOSTILE, "mimeType": "text/html"}}]),
        *(custom("unread", messageId="r1-1", text=HOSTILE, name=HOSTILE), custom("invented", messageId="r1-1", text=HOSTILE)),
        custom("decided", toolCallId="d", decision=HOSTILE, by=HOSTILE, reason=HOSTILE, arguments=arguments),
        {"type": "RUN_ERROR", "message": HOSTILE},
    )  # fmt: skip
    alive(page)
    in_browser(lambda: [head.click() for head in page.page.locator(".call-head").all()])
    page.run("() => conversation.toggleRaw()")
    alive(page)
    links = page.run("() => [...document.querySelectorAll('a')].map((a) => a.href)")
    assert set(links) == {"https://evil.example/", "https://evil.example/p.png"}
    made = "script, iframe, img, svg, base, style, link:not([rel]), object, embed, form"
    assert page.run("(made) => document.body.querySelectorAll(made).length", made) == 0
