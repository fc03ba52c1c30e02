"""The report: what it shows, that it needs no network, and that nothing in it runs, in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rollout_records import NASTY, PNG, add, hostile, record

from agentkit.messages import ImagePart, UserMessage
from agentkit.rollout.report import Findings, findings, write_page, write_png
from agentkit.rollout.report.findings import Curve
from agentkit.rollout.report.page import page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TWELVE = [
    record(f"s{n}#0", reward=n / 4, calls=(add(0), add(1, name="search", ran=0.3, error="timeout" if n == 3 else None)))
    for n in range(12)
]


@cache
def twelve() -> str:
    """Their page, whose charts take a second to draw."""
    return page(findings(TWELVE), title="run.jsonl")


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


def test_six_charts_a_table_and_the_trajectories() -> None:
    html = read(twelve())
    assert html.tags.count("svg") == 6
    for shown in (
        *("run.jsonl", "12", "mean reward", "1.375", "failed calls", "1 (4.2 %)"),
        *("Reward per trajectory", "Calls per tool", "Time per call", "Why trajectories ended"),
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


def test_the_same_records_give_the_same_page() -> None:
    assert page(findings(TWELVE), title="run.jsonl") == twelve()


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
    found = findings(record(f"s{n}#0", reward=n % 100 / 100) for n in range(3_000))
    assert sum(len(pick.trajectories) for pick in found.picks) <= 20
    assert found.picks[1].title == "Highest reward"
    assert [one.id for one in found.picks[1].trajectories] == ["s99#0", "s199#0", "s299#0"]


def test_a_curve_of_any_length_has_few_points() -> None:
    curve = Curve(points=4)
    for n in range(9):
        curve.add(n)
    assert list(curve.means()) == [(1.5, 1.5), (5.5, 5.5), (8.0, 8.0)]


# hostile


def test_hostile_texts_are_only_text() -> None:
    """The page has no other tags and attributes than the page of a harmless run."""
    harmless = read(twelve())
    html = page(findings(hostile(text, n) for n, text in enumerate(NASTY)), title=NASTY[0])
    found = read(html)
    assert set(found.tags) <= set(harmless.tags)
    assert {name for name, _ in found.attributes} <= {name for name, _ in harmless.attributes}
    assert "<script" not in html
    assert "{{ 7*7 }}" in found.text
    assert "\\u202egnp.exe" in found.text
    assert "\x1b" not in html


def test_the_page_asks_for_nothing() -> None:
    html = page(findings([*TWELVE, hostile("x")]))
    assert [value for name, value in read(html).attributes if name in ("src", "href", "xlink:href", "srcset")
            and not (value or "").startswith(("data:image/", "#"))] == []  # fmt: skip
    assert "an image at https://example.org/tracker.png" in html
    assert "default-src 'none'" in html


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: chromium)")
def test_in_a_real_browser_no_text_runs(tmp_path: Path) -> None:
    """Each hostile text would set the page's title. As a control, one does so in a page without defences."""
    write_page(findings(hostile(text, n) for n, text in enumerate(NASTY)), tmp_path / "run.html", title="run.jsonl")
    (tmp_path / "control.html").write_text(f"<title>before</title><body>{NASTY[0]}")
    assert "<title>HACKED" in browsed(tmp_path / "control.html")
    dom = browsed(tmp_path / "run.html")
    assert "<title>run.jsonl</title>" in dom
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
