"""RSS and Atom feeds as Markdown. Knows XML trees; lxml is loaded with this module: import it on first use."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import lxml.etree as etree

from agentkit_tools.pages.page_elements import absolute
from agentkit_tools.pages.page_source import parsed_xml
from agentkit_tools.pages.page_text import Late, PageText, never, page_text
from agentkit_tools.pages.page_writer import Addresses

Element: TypeAlias = Any  # lxml's: it ships no types

ENTRIES = frozenset(("item", "entry"))
FEEDS = frozenset(("rss", "feed", "RDF"))


def feed_text(xml: str, url: str, late: Late = never) -> PageText | None:
    """Read a feed; None if it is not one.

    Args:
        xml: the feed.
        url: where it came from; links are relative to it.
        late: asked at each entry; when it returns True, reading stops with the text so far.
    """
    tree = parsed_xml(xml)
    if tree is None or _name(tree) not in FEEDS:
        return None
    channel = next((one for one in tree if _name(one) == "channel"), tree)
    blocks = [_words(channel, "description", "subtitle")]
    addresses = Addresses()
    for one in tree.iter():
        if late():
            break
        if _name(one) in ENTRIES:
            blocks.append(_entry(one, url, late, addresses))
    text = "\n\n".join(block for block in blocks if block) + "\n"
    return PageText(_words(channel, "title"), text, stopped=late(), unlinked=addresses.omitted)


def _entry(entry: Element, url: str, late: Late, addresses: Addresses) -> str:
    link = absolute(url, _link(entry))
    title = _words(entry, "title") or "(no title)"
    date = _words(entry, "pubDate", "published", "updated", "date")
    html = _content(entry, "encoded", "content", "summary", "description")
    head = f"## [{title}{addresses.end(link)}" if link else f"## {title}"
    if re.search(r"[<&]", html):
        html = page_text(html, link or url, whole=True, late=late, addresses=addresses).text
    return "\n\n".join(part for part in (head, date, html.strip()) if part)


def _content(entry: Element, *names: str) -> str:
    found = {_name(child): "".join(child.itertext()) for child in reversed(entry) if _name(child) in names}
    return next((found[name] for name in names if found.get(name, "").strip()), "")


def _words(entry: Element, *names: str) -> str:
    return " ".join(_content(entry, *names).split())


def _link(entry: Element) -> str:
    links = [one for one in entry if _name(one) == "link"]
    chosen = next((one for one in links if one.get("rel") in (None, "alternate")), None)
    return "" if chosen is None else (chosen.get("href") or chosen.text or "").strip()


def _name(element: Element) -> str:
    """An element's name without its namespace."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""
