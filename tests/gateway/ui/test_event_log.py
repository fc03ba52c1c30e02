"""The numbered events of a thread: positions, joined deltas, what is forgotten."""

from __future__ import annotations

import pytest

from agentkit.gateway.ui.event_log import EventLog


def text(delta: str, id: str = "m") -> dict[str, str]:
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta}


def log_of(*events: dict[str, str]) -> EventLog:
    log = EventLog("e")
    for event in events:
        log.add(event)
    return log


def test_a_client_continues_after_any_event() -> None:
    log = log_of(text("a"), text("b"))
    assert log.after(0) == [(1, text("a")), (2, text("b"))]
    assert log.after(1) == [(2, text("b"))]
    assert log.after(2) == []


@pytest.mark.parametrize("number", [-1, 3, 10**12])
def test_a_number_that_was_never_sent(number: int) -> None:
    assert log_of(text("a"), text("b")).after(number) is None


@pytest.mark.parametrize("id", ["", "e", "e.", ".1", "x.1", "e.1.1", "e.-1", "e.a", "e." + "9" * 30])
def test_an_id_that_is_no_position(id: str) -> None:
    assert log_of(text("a")).position(id) is None


def test_deltas_of_one_message_are_joined_under_the_last_number() -> None:
    log = log_of(text("a"), text("b"), {"type": "X"}, text("c"), text("d", "n"), text("e", "n"))
    log.join(0)
    assert log.after(0) == [(2, text("ab")), (3, {"type": "X"}), (4, text("c")), (6, text("de", "n"))]
    assert log.after(1) is None
    assert log.after(5) is None
    assert log.after(2) is not None


def test_deltas_before_a_number_are_not_joined() -> None:
    log = log_of(text("a"), text("b"), text("c"))
    log.join(2)
    assert log.after(0) == [(1, text("a")), (2, text("b")), (3, text("c"))]


def test_forgotten_events() -> None:
    log = log_of(text("a"), text("b"), text("c"))
    log.forget(2)
    assert log.after(2) == [(3, text("c"))]
    assert log.after(1) is None
    log.forget(3)
    assert log.after(3) == []


def test_nobody_continues_after_a_restart_of_the_log() -> None:
    log = log_of(text("a"))
    log.restart()
    assert log.after(1) is None
    assert log.after(log.last) == []
    log.add(text("b"))
    assert log.after(2) == [(3, text("b"))]
