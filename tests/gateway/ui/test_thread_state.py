"""The page's state: each sequence of events gives one state, and gives it again when it is fed again."""

# ruff: noqa: E501 - literal events and scripts: one a line

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from browser import CHROMIUM
from static_page import Modules, modules
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
    thinking,
    thread,
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: chromium)")

SETUP: Final = """async () => {
  const state = await import("/state.js");
  const of = (now) => {
    const part = (one) => (one.kind === "call" ? callOf(now.calls.get(one.id)) : `${one.kind} ${state.textOf(one)}`);
    const callOf = (c) => `${c.name} ${c.status}${c.inside.map((i) => ` [${i.name} ${i.decided?.decision ?? "waits"}]`).join("")}`;
    const shown = ({ role, parts, content, open, queued, state, problem }) =>
      [role, ...(role === "user" ? [content] : parts.map(part)), open && "open", queued && "queued", state !== "complete" && state, problem]
        .filter(Boolean);
    return now.order.map((id) => shown(now.messages.get(id))).filter((one) => one.length > 1);
  };
  window.feed = (events, times = 1) => {
    const now = state.emptyState();
    for (let n = 0; n < times; n++) for (const event of events) [...state.reduce(now, event)];
    return { messages: of(now), waiting: state.waitingCalls(now).map(({ id }) => id), running: now.run };
  };
}"""

CALL: Final = call("c1", "delete", '{"path": "a"}', end={"arguments": {"path": "a"}})
WAIT: Final = [started(), *CALL, approval("c1"), finished("r1", "interrupt", {"id": "c1:h", "toolCallId": "c1"})]
DECIDED: Final = custom("decided", toolCallId="c1", decision="approved", by="eve", reason="", arguments=None)
AGAIN: Final = [started("r2"), custom("started", toolCallId="c1", at=1.5), result("c1", "gone")]
INSIDE: Final = [
    started(),
    *CALL,
    approval("c1/x", name="one"),
    approval("c1/y", name="two"),
    finished("r1", "interrupt"),
]

CASES: Final[dict[str, tuple[list[Event], list[list[str]]]]] = {
    "streaming": ([started(), *thinking("h", "m"), *text("a", "b")], [["assistant", "thinking hm", "text ab", "open"]]),
    "a reply": ([started(), *text("a"), finished()], [["assistant", "text a"]]),
    "two turns": (
        [started(), *text("a"), {"type": "STEP_FINISHED", "stepName": "turn 1"}, *text("b", message="r1-2"), finished()],
        [["assistant", "text a"], ["assistant", "text b"]],
    ),
    "writing": ([started(), *call("c1", "f", '{"a"', end={})], [["assistant", "f writing", "open"]]),
    "written": ([started(), *CALL], [["assistant", "delete planned", "open"]]),
    "running": ([started(), *CALL, custom("started", toolCallId="c1", at=1)], [["assistant", "delete running", "open"]]),
    "done": ([started(), *CALL, *AGAIN[1:], finished()], [["assistant", "delete done"]]),
    "failed": ([started(), *CALL, result("c1", "no", "failed"), finished()], [["assistant", "delete failed"]]),
    "waiting": (WAIT, [["assistant", "delete waiting"]]),
    "approved": ([*WAIT, DECIDED], [["assistant", "delete approved"]]),
    "approved while the reply is written": (
        [started(), *CALL, approval("c1"), DECIDED, *text("b"), approval("c1"), finished("r1", "interrupt")],
        [["assistant", "delete approved", "text b"]],
    ),
    "resumed": ([*WAIT, DECIDED, *AGAIN, finished("r2")], [["assistant", "delete done"]]),
    "denied": (
        [*WAIT, {**DECIDED, "value": {**DECIDED["value"], "decision": "denied"}}, result("c1", "no", "denied")],
        [["assistant", "delete denied"]],
    ),
    "an approval of an answered call": ([*WAIT, *AGAIN, approval("c1")], [["assistant", "delete done"]]),
    "inside": (INSIDE, [["assistant", "delete waiting [one waits] [two waits]"]]),
    "one inside decided": (
        [*INSIDE, custom("decided", toolCallId="c1/x", decision="denied", by="eve")],
        [["assistant", "delete waiting [one denied] [two waits]"]],
    ),
    "stopped": (
        [started(), *text("a"), *call("c1", "f", '{"a"', end={}), finished("r1", "cancelled")],
        [["assistant", "text a", "f stopped", "stopped"]],
    ),
    "an error": (
        [started(), *text("a"), {"type": "RUN_ERROR", "message": "model unreachable", "code": "x"}],
        [["assistant", "text a", "error", "model unreachable"]],
    ),
    "an error before any text": (
        [started(), {"type": "RUN_ERROR", "message": "no", "code": "x"}],
        [["assistant", "error", "no"]],
    ),
    "a queued message": (
        [started(), *text("a"), custom("user", id="u", seq=3, content="next", queued=True), *text("b", message="r1-2")],
        [["assistant", "text a", "open"], ["assistant", "text b", "open"], ["user", "next", "queued"]],
    ),
    "it is sent": (
        [
            *(started(), *text("a"), custom("user", id="u", seq=3, content="next", queued=True), finished()),
            *(custom("user", id="u", seq=3, content="next", queued=False), started("r2"), *text("b", message="r2-1")),
        ],
        [["assistant", "text a"], ["user", "next"], ["assistant", "text b", "open"]],
    ),
    "odd texts": (
        [
            started(),
            custom("invented", messageId="r1-1", text="Result: 4"),
            custom("unread", messageId="r1-1", text="<f", name="f"),
        ],
        [["assistant", "invented Result: 4", "unread <f", "open"]],
    ),
    "a snapshot": (
        [
            snapshot(
                stored_user("u", "hi"),
                stored_reply("m2", "ok", stored_call("c1", "f"), stored_call("c2", "g", "unknown")),
                {"id": "c1-result", "role": "tool", "toolCallId": "c1", "content": "no", "metadata": result("c1", "no", "failed")["metadata"]},
            )
        ],
        [["user", "hi"], ["assistant", "text ok", "f failed", "g unknown"]],
    ),
    "a snapshot that waits inside": (
        [snapshot(stored_reply("m1", "", stored_call("c1", "f", "running", inside=[{"id": "c1/x", "name": "g", "hash": "h"}])))],
        [["assistant", "text ", "f waiting [g waits]"]],
    ),
    "the server died": (
        [started(), *text("a"), snapshot(stored_reply("m1", "a", state="partial")), thread("interrupted")],
        [["assistant", "text a", "partial"]],
    ),
    "events of other protocols": (
        [{"type": "STATE_DELTA", "delta": []}, custom("new", x=1), result("unknown", "x"), started(), *text("a"), finished()],
        [["assistant", "text a"]],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def page() -> Iterator[Modules]:
    with modules(SETUP) as opened:
        yield opened


def fed(page: Modules, events: list[Event], times: int = 1) -> Any:
    return page.run("([events, times]) => feed(events, times)", [events, times])


@pytest.mark.parametrize("case", CASES)
def test_events_become_a_state(page: Modules, case: str) -> None:
    events, messages = CASES[case]
    assert fed(page, events)["messages"] == messages


@pytest.mark.parametrize("case", CASES)
def test_the_same_events_again_change_nothing(page: Modules, case: str) -> None:
    events, _ = CASES[case]
    assert fed(page, events, 2) == fed(page, events)


@pytest.mark.parametrize("case", CASES)
def test_a_stream_that_is_cut_anywhere_and_sent_again_gives_the_same_state(page: Modules, case: str) -> None:
    events, _ = CASES[case]
    whole = fed(page, events)
    assert [n for n in range(len(events)) if fed(page, [*events[:n], *events]) != whole] == []


def test_what_waits(page: Modules) -> None:
    assert fed(page, WAIT)["waiting"] == ["c1"]
    assert fed(page, INSIDE)["waiting"] == ["c1/x", "c1/y"]
    assert fed(page, [*WAIT, DECIDED])["waiting"] == []
