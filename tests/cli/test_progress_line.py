"""The progress of long work: what a terminal shows, and what a log gets. And a rollout's figures in narrow windows."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from rollout_records import add, record

from agentkit.cli import progress_line
from agentkit.cli.progress_line import ProgressLine
from agentkit.cli.rollout_figures import _tables, show_figures
from agentkit.cli.terminal import cells
from agentkit.rollout import Measures


class Clock:
    """A clock that the tests set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def shown(capsys: pytest.CaptureFixture[str], *notes: str) -> str:
    """What is shown at 4 s, when 332 of 480 are done, after 0 at the beginning."""
    clock = Clock()
    line = ProgressLine("rollout", clock)
    line.count(0, 480)
    clock.now = 4.0
    line.count(332, 480, *notes)
    return capsys.readouterr().err


def test_a_log_gets_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "reward 1.1") == "rollout: 332/480 · 69 % · 83/s · ETA 1.8 s · reward 1.1\n"


@pytest.mark.parametrize(("columns", "bar"), [(60, 0), (70, 11), (80, 21), (100, 30)])
def test_a_terminal_gets_a_bar_if_there_is_room(
    columns: int, bar: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(progress_line, "capable", lambda out: True)
    seen = shown(capsys, "reward 1.1", "failed 3 %").removeprefix("\r\x1b[K")
    for colour in ("\x1b[34m", "\x1b[2m", "\x1b[0m"):
        seen = seen.replace(colour, "")
    assert cells(seen) < columns
    assert (seen.count("━"), seen.count("━") + seen.count("─")) == (bar * 332 // 480, bar)
    assert seen.startswith("332/480 ")
    assert "69 % · 83/s · ETA 1.8 s · reward 1.1" in seen


def test_what_was_done_before_is_not_counted_as_fast(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    line = ProgressLine("rollout", clock)
    line.count(100, 480)
    clock.now = 10.0
    line.count(120, 480)
    assert capsys.readouterr().err == "rollout: 120/480 · 25 % · 2/s · ETA 3 min 0 s\n"


def test_a_line_that_stays_is_above_the_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_line, "capable", lambda out: True)
    clock = Clock()
    line = ProgressLine("reading", clock)
    for now, done in ((0.0, 0), (2.0, 3_000), (3.0, 6_000)):
        clock.now = now
        line.count(done)
        line.say("a tool failed")
    assert capsys.readouterr().err == (
        "a tool failed\n\r\x1b[Kreading: 3,000 · 1,500/s\r\x1b[Ka tool failed\n"
        "\r\x1b[Kreading: 6,000 · 2,000/s\r\x1b[Ka tool failed\n"
    )


# figures


def measured(tools: int) -> Measures:
    measures = Measures()
    calls = tuple(
        replace(add(0, n), name=f"tool_number_{n}", error="timeout" if n == 1 else None) for n in range(tools)
    )
    measures.add(record(calls=calls, final_rewards={}))
    return measures


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_a_window_shows_all_tools_in_as_many_tables_as_it_takes(columns: int) -> None:
    figures = measured(6).figures()
    lines = list(_tables(figures, columns))
    assert max(map(cells, lines)) <= columns
    heads = [line.split()[1:] for line in lines if line.startswith("tool ")]
    assert [name for head in heads for name in head] == [f"tool_number_{n}" for n in range(6)]
    assert len(heads) == {40: 6, 60: 2, 100: 2}[columns]


def test_failures_are_red_in_a_terminal_and_zeros_are_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    show_figures(measured(2))
    red = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("\x1b[31;1m")]
    assert red == ["\x1b[31;1mfailed", "\x1b[31;1mtimeouts", "\x1b[31;1mfailed:"]
    show_figures(measured(1))
    assert "\x1b[31" not in capsys.readouterr().out
