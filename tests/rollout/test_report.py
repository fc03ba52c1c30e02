"""The report: what it shows, that it needs no network, and that nothing in it runs, in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rollout_records import NASTY, PNG, add, hostile, record

from agentkit.messages import ImagePart, UserMessage
from agentkit.rollout.report import Findings, charts, findings, write_png
from agentkit.rollout.report.page import page
from agentkit.rollout.report.series import Averages, SomeOf

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TWELVE = [
    record(f"s{n}#0", reward=n / 4, calls=(add(0), add(1, name="search", ran=0.3, error="timeout" if n == 3 else None)))
    for n in range(12)
]


@cache
def twelve() -> str:
    """Their page, whose charts take a second to draw."""
    return page(findings(TWELVE), title="run.jsonl")


@cache
def nasty() -> str:
    """The page of hostile texts."""
    return page(findings(hostile(text, n) for n, text in enumerate(NASTY)), title=NASTY[0])


class Read(HTMLParser):
    """The tags of a page, its attributes, and the text outside styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self._in = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._in = tag

    def handle_data(self, data: str) -> None:
        if self._in != "style":
            self.text += data


def read(html: str) -> Read:
    found = Read()
    found.feed(html)
    found.close()
    return found


# what it shows


def test_charts_a_table_and_the_trajectories() -> None:
    html = read(twelve())
    assert html.tags.count("svg") == 7  # one trajectory per sample: nothing to compare, and no pass@k
    for shown in (
        *("run.jsonl", "12", "mean reward", "1.375", "failed calls", "1 (4.2 %)"),
        *(
            "Reward per trajectory",
            "Calls per tool",
            "Time per call",
            "Why trajectories ended",
            "Failed calls over time",
        ),
        *("search", "timeout 1", "s11#0", "What is it?", "It is 0."),
    ):
        assert shown in html.text


def test_the_charts_take_their_colours_from_the_page() -> None:
    """So one page serves light and dark; a colour that the page does not know would stay as it is."""
    html = twelve()
    charts = "".join(re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL))
    assert re.findall(r"#[0-9a-f]{6}\b", charts) == []
    named = set(re.findall(r"var\((--\w+)\)", html))
    assert all(html.count(f"{name}: #") == 2 for name in named)


def test_nothing_at_all_is_a_page_too() -> None:
    assert read(page(Findings())).tags.count("svg") == 0


def test_the_picture(tmp_path: Path) -> None:
    write_png(findings(TWELVE), tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_long_texts_many_messages_and_large_images_are_cut() -> None:
    images = UserMessage((ImagePart(PNG + b"x" * 200_000), ImagePart(PNG)))
    one = record(messages=(images, *[UserMessage("y" * 50_000)] * 300), calls=tuple(add(n) for n in range(500)))
    html = page(findings([one]))
    assert len(html) < 2_000_000
    for shown in ("an image of 200,", "… (46,000 more characters)", "241 more messages", "440 more calls"):
        assert shown in html


def test_few_trajectories_of_many_are_kept() -> None:
    picked = findings(record(f"s{n}#0", reward=n % 100 / 100) for n in range(3_000)).selection()
    ids = [one.id for _, trajectories in picked for one, _ in trajectories]
    assert len(ids) == len(set(ids)) <= 20
    assert [one.id for one, _ in dict(picked)["Highest reward"]] == ["s99#0", "s199#0", "s299#0"]


def test_a_trajectory_is_shown_once_and_says_where_else_it_belongs() -> None:
    slow = record("s1#0", reward=9.0, seconds=99.0, calls=(add(0, error="timeout"),))
    picked = findings([record("s0#0", calls=()), slow]).selection()
    assert [(title, [(one.id, also) for one, also in shown]) for title, shown in picked] == [
        ("Highest reward", [("s1#0", "lowest reward, most failed calls, slowest, first"),
                            ("s0#0", "lowest reward, slowest, first")]),
    ]  # fmt: skip


def test_a_curve_of_any_length_has_few_points() -> None:
    curve = Averages(4)
    for n in range(9):
        curve.add(1, {"reward": n})
    assert list(curve.of("reward")) == [(1.5, 1.5), (5.5, 5.5), (8.0, 8.0)]


def test_rewards_per_sample_and_pass_at_k() -> None:
    """Of four trajectories one, then none, then all are a success: pass@k is 1 - C(n-c, k) / C(n, k)."""
    groups = findings(
        record(f"s{sample}#{n}", reward=float(n < successes))
        for sample, successes in enumerate((1, 0, 4))
        for n in range(4)
    ).groups
    none, one, every = groups.several()
    assert (none.mean, one.mean, every.mean) == (0, 0.25, 1)
    assert (none.deviation, one.deviation, every.deviation) == (0, 0.5, 0)
    assert [(found.k, pytest.approx(found.rate)) for found in groups.pass_rates()] == [
        (1, (0.25 + 0 + 1) / 3),
        (2, (0.5 + 0 + 1) / 3),
        (4, (1 + 0 + 1) / 3),
    ]


def test_a_success_is_a_reward_that_the_reader_chooses() -> None:
    found = findings([record("s#0", reward=0.4), record("s#1", reward=0.6)], success=0.5)
    assert [one.rate for one in found.groups.pass_rates()] == [0.5, 1.0]


def test_failed_calls_over_time() -> None:
    """Two blocks of two trajectories: none of two calls failed, then one of four."""
    shares = Averages(2)
    for calls, errors in ((1, {}), (1, {}), (2, {"timeout": 1}), (2, {})):
        shares.add(calls, errors)
    assert list(shares.of("timeout")) == [(0.5, 0.0), (2.5, 0.25)]


def test_some_of_many_points_have_equal_distances() -> None:
    some: SomeOf[int] = SomeOf(4)
    for n in range(20):
        some.add(n)
    assert some.kept == [0, 8, 16]


def test_what_a_limit_cut_is_counted_and_what_a_success_is_said() -> None:
    ends = [record("s#0"), record("s#1", end="deadline"), record("s#2", end="response_length")]
    found = findings(ends, success=0.5)
    assert found.truncated_trajectories == 2
    text = read(page(found)).text
    assert "2 (66.7 %)" in text
    assert "success: reward ≥ 0.5" in text


def test_what_the_run_was_stands_at_the_top_and_nothing_else_differs() -> None:
    """The same records give the same page."""
    runs = [{"model": "openai:old", "date": "2026-01-01"}, {"model": "openai:<new>", "format": "xml"}]
    html = page(findings(TWELVE), title="run.jsonl", runs=runs)
    assert re.findall(r"<svg.*?</svg>", html, re.DOTALL) == re.findall(r"<svg.*?</svg>", twelve(), re.DOTALL)
    text = read(html).text
    assert text.index("openai:<new>") < text.index("An earlier run, 2026-01-01") < text.index("mean reward")


def test_a_bar_over_a_whole_number_is_no_block() -> None:
    """All trajectories have two responses: the axis has room for at least three bars."""
    from matplotlib.figure import Figure

    for draw in (charts._turns, charts._rewards):
        axes = Figure().subplots()
        draw(axes, findings([record("s0#0", reward=1.0), record("s1#0", reward=1.0)]))
        low, high = axes.get_xlim()
        assert high - low >= 3
        assert axes.patches[0].get_width() == pytest.approx(0.8)


# hostile


def test_hostile_texts_are_only_text() -> None:
    """The page has no other tags and attributes than the page of a harmless run."""
    harmless = read(twelve())
    html = nasty()
    found = read(html)
    assert set(found.tags) <= set(harmless.tags)
    assert {name for name, _ in found.attributes} <= {name for name, _ in harmless.attributes}
    assert "<script" not in html
    assert "{{ 7*7 }}" in found.text
    assert "\\u202egnp.exe" in found.text
    assert "\x1b" not in html


def test_the_page_asks_for_nothing() -> None:
    html = nasty()
    assert [value for name, value in read(html).attributes if name in ("src", "href", "xlink:href", "srcset")
            and not (value or "").startswith(("data:image/", "#"))] == []  # fmt: skip
    assert "an image at https://example.org/tracker.png" in html
    assert "default-src 'none'" in html


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: chromium)")
def test_in_a_real_browser_no_text_runs(tmp_path: Path) -> None:
    """Each hostile text would set the page's title. As a control, one does so in a page without defences."""
    (tmp_path / "run.html").write_text(nasty())
    (tmp_path / "control.html").write_text(f"<title>before</title><body>{NASTY[0]}")
    assert "<title>HACKED" in browsed(tmp_path / "control.html")
    dom = browsed(tmp_path / "run.html")
    assert f"<title>{escape(NASTY[0], quote=False)}" in dom
    assert "<script" not in dom


def browsed(html: Path) -> str:
    """The page as Chromium has it after it ran whatever runs."""
    offline = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic")
    return subprocess.run(
        [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", *offline,
         f"--user-data-dir={html.parent / 'profile'}", "--dump-dom", html.as_uri()],
        capture_output=True, text=True, timeout=110, check=True,
    ).stdout  # fmt: skip


def test_names_that_matplotlib_could_read_as_mathematics() -> None:
    one = record(calls=(add(0, name="$\\frac{1}$"), add(1, name="日本語"), add(2, name="a" * 300)))
    text = read(page(findings([replace(one, end="answered")]))).text
    assert "$\\frac{1}$" in text
    assert "日本語" in text
