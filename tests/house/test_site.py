"""The site: every page stands in one part of it, every link leads somewhere, every diagram is drawn."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from agentkit.formats import CATALOG

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
SITE: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
CODE = re.compile(r"^(```+).*?^\1$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
MOST_ENTRIES = 12  # in the side navigation of a tab, of which some open
LINK = re.compile(r"\]\(([^)\s]+)\)")


def named(pages: list[Path]) -> list[Any]:
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages]


def prose(page: Path) -> str:
    """A page without its code."""
    return CODE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """What a page's headings can be linked by."""
    text = re.sub(CODE.pattern.split("|")[0], "", page.read_text(encoding="utf-8"), flags=CODE.flags)
    titles = [title.replace("`", "") for title in re.findall(r"^#+ (.+?)(?: \{[^}]*\})?$", text, re.MULTILINE)]
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


def entries(nav: Any) -> Iterator[str]:
    """The pages below an entry of the site's navigation."""
    if isinstance(nav, str):
        yield nav
    for item in nav if isinstance(nav, list) else nav.values() if isinstance(nav, dict) else ():
        yield from entries(item)


def test_every_page_is_once_in_one_of_the_tabs() -> None:
    tabs = {name: part for tab in SITE["nav"] for name, part in tab.items()}
    assert list(tabs) == ["Learn", "Build", "Models & formats", "Gateway", "Run in production", "Train", "Reference"]
    apart = SITE["not_in_nav"].split()
    assert sorted([*entries(SITE["nav"]), *apart]) == sorted(str(page.relative_to(DOCS)) for page in PAGES)
    assert {name: len(part) for name, part in tabs.items() if len(part) > MOST_ENTRIES} == {}


@pytest.mark.parametrize("page", named([ROOT / "README.md", *PAGES]))
def test_each_link_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        target, _, anchor = link.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        there = Path(os.path.normpath(page.parent / target)) if target else page
        assert there.exists(), (page.name, link)
        if anchor and not anchor.startswith("agentkit"):  # the reference's anchors are the names in the code
            assert anchor in anchors(there), (page.name, link)


@pytest.fixture(scope="module")
def diagrams() -> ModuleType:
    spec = importlib.util.spec_from_file_location("diagrams", DOCS / "diagrams.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_diagram_is_drawn_and_no_picture_is_unused(diagrams: ModuleType) -> None:
    assert [*diagrams.missing(), *diagrams.unused()] == [], "run: python docs/diagrams.py --write …/mermaid.min.js"
    assert diagrams.diagrams()


@pytest.mark.parametrize("page", named([page for page in PAGES if "```mermaid" in page.read_text(encoding="utf-8")]))
def test_the_site_shows_a_diagram_as_a_picture(page: Path, diagrams: ModuleType) -> None:
    class Site:
        class file:  # as mkdocs names it
            src_uri = str(page.relative_to(DOCS))

    shown = diagrams.on_page_markdown(page.read_text(encoding="utf-8"), Site)
    assert "```mermaid" not in shown
    pictures = re.findall(r"^!\[[^\]]{20,}\]\(([^)#]+)#only-(?:light|dark)\)$", shown, re.MULTILINE)
    assert pictures
    assert [path for path in pictures if not (page.parent / path).exists()] == []


def test_a_heading_that_quotes_a_message_is_printed_below_it() -> None:
    """In "Troubleshooting", a heading in lower case is a message, with … for what varies, or several after commas."""
    sections = re.split(r"^### (.+)\n", (DOCS / "troubleshooting.md").read_text(), flags=re.MULTILINE)[1:]
    for heading, text in zip(sections[::2], sections[1::2], strict=True):
        printed = "".join(re.findall(r'^```text title="output"\n(.*?)^```$', text, re.DOTALL | re.MULTILINE))
        if not heading[0].isupper() and not heading[0].isdigit():
            assert [word for word in re.split(r"…,?", heading) if word.strip() not in printed] == [], heading


def test_the_number_of_formats_is_that_of_the_catalogue() -> None:
    for page in ("index.md", "why.md"):
        assert set(re.findall(r"(\d+) formats", (DOCS / page).read_text())) == {str(len(CATALOG))}


@pytest.mark.soak
def test_the_comparison_is_fresh() -> None:
    script = DOCS / "comparison.py"
    ran = subprocess.run([sys.executable, "-W", "ignore", script], capture_output=True, text=True, check=True)
    assert ran.stdout in (DOCS / "why.md").read_text(), "run: python docs/comparison.py --write"


def test_the_site_asks_no_other_server_for_its_parts() -> None:
    """Fonts, the search from disk and the diagrams come with the site."""
    assert SITE["theme"]["font"] is False
    assert "offline" in SITE["plugins"]
    assert [path for path in SITE["extra"]["polyfills"] if not (DOCS / path).exists()] == []
