"""The reference: a page for each public class and function, made from the section pages at each build.

A section page, docs/reference/*/index.md, lists what is public, as mkdocstrings' directives
(`::: agentkit.agent.Agent`). Each directive becomes a page; those below a heading `### Title` share one.
`## Title` starts a group of the navigation. What remains of the section page is its introduction and a table of all
names with their first sentences.

mkdocs calls `on_config`, `on_files` and `on_page_markdown`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
SECTIONS = DOCS / "reference"
PIECE = re.compile(r"^(?:(?P<level>###?) (?P<title>.+)|::: (?P<name>\S+)(?P<options>(?:\n {4}.*)*))$", re.MULTILINE)
MEMBERS = re.compile(r"\n {6}members:((?: \[.+\])|(?:\n +- \w+)+)")
OPTIONS = "\n    options:"
BOOST = 0.5  # in the search a guide comes before the reference
HEAD = f"---\nsearch:\n  boost: {BOOST}\n---\n\n"


@dataclass
class ReferencePage:
    """A page below a section: its title, its group in the navigation, and its directives."""

    title: str
    group: str
    shared: bool
    directives: list[tuple[str, str]] = field(default_factory=list)

    @property
    def stem(self) -> str:
        """Return the page's file name."""
        return re.sub(r"\W+", "_", self.title.lower()) if self.shared else self.title

    def markdown(self) -> str:
        """Return the page's source. A page of one name has this name as its heading."""
        if not self.shared:
            ((name, options),) = self.directives
            return f"{HEAD}::: {name}{options or OPTIONS}\n      heading_level: 1\n"
        texts = [f"::: {name}{options}" for directive in self.directives for name, options in _by_member(*directive)]
        return HEAD + "\n\n".join([f"# {self.title}", *texts]) + "\n"


def members_of(options: str) -> list[str]:
    """Return the names that a directive lists of a module."""
    found = MEMBERS.search(options)
    return re.findall(r"\w+", found[1]) if found else []


def _by_member(name: str, options: str) -> list[tuple[str, str]]:
    """Return a directive for each member that one lists, so that a page shows them in this order; or the one."""
    members, rest = members_of(options), MEMBERS.sub("", options)
    return [(f"{name}.{member}", rest if rest != OPTIONS else "") for member in members] or [(name, options)]


def pages_of(markdown: str) -> tuple[str, list[ReferencePage]]:
    """Return a section page's introduction and the pages that its directives make."""
    first = PIECE.search(markdown)
    pages: list[ReferencePage] = []
    group, shared = "", None
    for piece in PIECE.finditer(markdown):
        if piece["level"] == "##":
            group, shared = piece["title"], None
        elif piece["level"] == "###":
            shared = ReferencePage(piece["title"], group, shared=True)
            pages.append(shared)
        else:
            page = shared or ReferencePage(piece["name"].rpartition(".")[2], group, shared=False)
            page.directives.append((piece["name"], piece["options"]))
            if page is not shared:
                pages.append(page)
    return markdown[: first.start()] if first and pages else markdown, [page for page in pages if page.directives]


@functools.cache
def sections() -> dict[str, list[ReferencePage]]:
    """Return the pages of each section page, by its path below docs/."""
    files = sorted(SECTIONS.glob("*/index.md"))
    return {f"reference/{file.parent.name}/index.md": pages_of(file.read_text(encoding="utf-8"))[1] for file in files}


def places() -> Iterator[tuple[str, ReferencePage]]:
    """Yield each page with its path below docs/. No two differ only in capitals, for file systems that ignore these."""
    for path, pages in sections().items():
        taken: set[str] = set()
        for page in pages:
            stem = page.stem if page.stem.casefold() not in taken else f"{page.stem}_class"
            taken.add(stem.casefold())
            yield f"{path.removesuffix('index.md')}{stem}.md", page


def below(section: str) -> Iterator[tuple[str, ReferencePage]]:
    """Yield the pages below a section page, with their paths."""
    return ((path, page) for path, page in places() if path.startswith(section.removesuffix("index.md")))


def on_config(config: Any) -> Any:
    """Put the pages into the navigation: a section page that is the first of its list is followed by those below it."""
    config.nav = _with_pages(config.nav)
    return config


def _with_pages(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {title: _with_pages(target) for title, target in entry.items()}
    if not isinstance(entry, list):
        return entry
    section = entry[0]
    if not isinstance(section, str) or section not in sections():
        return [_with_pages(each) for each in entry]
    groups: dict[str, list[Any]] = {"": []}
    for path, page in below(section):
        groups.setdefault(page.group, []).append({page.title: path})
    ungrouped = groups.pop("")
    return [entry[0], *entry[1:], *ungrouped, *({group: pages} for group, pages in groups.items())]


def on_files(files: Any, config: Any) -> Any:
    """Add the pages."""
    from mkdocs.structure.files import File

    for path, page in places():
        files.append(File.generated(config, path, content=page.markdown()))
    return files


@functools.cache
def _loader() -> Any:
    import griffe

    loader = griffe.GriffeLoader(search_paths=[DOCS.parent, DOCS.parent / "tools"])
    for package in ("agentkit", "agentkit_tools"):
        loader.load(package)
    loader.resolve_aliases()
    return loader


def documented(name: str, options: str) -> Iterator[tuple[str, Any]]:
    """Yield each object that a directive documents, with its full name: a module's members, or the one object."""
    found = _loader().modules_collection[name]
    if not found.is_module:
        yield name, found
        return
    for member in members_of(options) or _public(found):
        yield f"{name}.{member}", found[member]


def _public(module: Any) -> list[str]:
    """Return the names that mkdocstrings shows of a module without a list of members."""
    exported = set(map(str, module.exports or ()))
    return [
        name
        for name, member in module.members.items()
        if not name.startswith("_") and member.has_docstring and not member.is_module
        if not member.is_alias or name in exported
    ]


def first_sentence(text: str) -> str:
    """Return the beginning of a docstring, as it fits in a table."""
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s", paragraph)[0].rstrip(":").replace("|", "\\|")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace the directives of a section page by a table of what they document."""
    path = page.file.src_uri
    if path not in sections():
        return markdown
    page.meta["search"] = {"boost": BOOST}
    lines, group = [pages_of(markdown)[0]], ""
    header = "| name | what it is |\n|---|---|"
    rows: list[str] = []
    for place, listed in below(path):
        if listed.group != group:
            lines += ["\n".join([header, *rows]), f"## {listed.group}"] if rows else [f"## {listed.group}"]
            group, rows = listed.group, []
        rows += [_row(place, *each) for directive in listed.directives for each in documented(*directive)]
    return "\n\n".join([*lines, "\n".join([header, *rows])]) + "\n"


def _row(place: str, name: str, found: Any) -> str:
    """Return the row of a section's table for an object, with a link to its page."""
    text = first_sentence(found.docstring.value) if found.docstring else ""
    return f"| [`{name.rpartition('.')[2]}`]({place.rpartition('/')[2]}#{name}) | {text} |"
