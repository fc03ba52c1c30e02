"""One element of a page by itself: its visibility, its visible text, a form's field as words.

lxml is loaded with this module: import it on first use.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias
from urllib.parse import urljoin

import lxml.etree as etree

from agentkit_tools.pages.page_writer import Writer

Element: TypeAlias = Any  # lxml's: it ships no types

MAX_BASE: Final = 2_048  # characters of a base; no longer address is found on the web. Source: sitemaps.org, <loc>
DROPPED: Final = frozenset(("script", "style", "template", "link", "meta", "colgroup", "datalist"))

_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)", re.IGNORECASE)
_LANGUAGE = re.compile(r"\b(?:language|lang|highlight-source|brush:)-?\s?([\w+#-]+)")


def one_line(text: str) -> str:
    """A text in one line, at most 300 characters."""
    return " ".join(text.split())[:300]


def absolute(base: str, target: str) -> str | None:
    """An absolute http, https or mailto URL; None for anything else."""
    target = "".join(target.split()) if "\n" in target else target.strip()
    if not target or target.startswith("#"):
        return None
    try:
        url = urljoin(base, target)
    except ValueError:
        return None
    url = url.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
    return url if re.match(r"(?i)(https?://|mailto:)[^\x00-\x1f<>]+$", url) else None


def hidden(element: Element) -> bool:
    """Return True if the element itself says that readers do not see it."""
    if element.get("hidden") is not None or _HIDDEN.search(element.get("style") or ""):
        return True
    if element.get("aria-hidden") != "true":
        return False
    previous = element.getprevious()  # of a formula: this is its drawn copy
    return previous is not None and previous.find(".//math") is not None


def titled(element: Element) -> bool:
    """Return True if a header contains the title of the page."""
    outermost = element.tag == "header" and next(element.iterancestors("header"), None) is None
    return outermost and element.find(".//h1") is not None


def visible(element: Element) -> str:
    """An element's text, its line breaks kept."""
    parts: list[str] = []
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, one in walk:
        if event == "end":
            parts.append(one.tail or "" if one is not element else "")
        elif one.tag in DROPPED or hidden(one):
            walk.skip_subtree()
        else:
            parts.append("\n" if one.tag == "br" else one.text or "")
    return "".join(parts)


_APART: Final = frozenset(("title", "desc", "text"))  # of a drawing
_BETWEEN: Final = {"mfrac": "/", "msup": "^", "msub": "_"}


def before(element: Element, out: Writer) -> None:
    """Write the sign or space that a formula's or a drawing's markup stands for."""
    parent, previous = element.getparent(), element.getprevious()
    if parent is not None and parent.tag in _BETWEEN and previous is not None and previous.getprevious() is None:
        out.raw(_BETWEEN[parent.tag])
    if element.tag in _APART:
        out.words(" ")
    if element.tag == "msqrt":
        out.raw("√")


def language(element: Element) -> str:
    """The language that a listing declares."""
    around = (element, *element.iterchildren("code"), element.getparent())
    classes = " ".join(one.get("class") or "" for one in around if one is not None)
    found = _LANGUAGE.search(classes)
    return found[1] if found else ""


def form_field(element: Element) -> str:
    """A form's field as words; nothing for a hidden one, and never a password."""
    name = one_line(element.get("name") or element.get("placeholder") or element.get("aria-label") or element.tag)
    kind = (element.get("type") or "text").lower()
    if element.tag == "select":
        options = [
            one_line(visible(one)) + (" (selected)" if one.get("selected") is not None else "")
            for one in element.iter("option")
        ]
        return f"[{name}: {' / '.join(options)}]"
    if element.tag == "textarea":
        return f"[{name}: {one_line(visible(element))}]"
    value = one_line(element.get("value") or "")
    match kind:
        case "hidden":
            return ""
        case "checkbox" | "radio":
            return "[x]" if element.get("checked") is not None else "[ ]"
        case "submit" | "button" | "reset":
            return f"[{value or kind}]"
        case "image":
            return f"[{one_line(element.get('alt') or '') or name}]"
        case "password":
            return f"[{name}: ]"
        case _:
            return f"[{name}: {value}]"
