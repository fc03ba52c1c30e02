"""One request to the page's API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentkit.gateway.request_fields import flag, invalid, mapping_at, text_at
from agentkit.gateway.ui.thread_settings import LONGEST_TITLE, ThreadSettings


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request; its fields are checked when they are read.

    Args:
        id: the thread that its path names; empty for none.
        query: the parameters of its URL.
        body: its JSON object; empty without one.
        headers: with lower-case names.
    """

    id: str
    query: Mapping[str, str]
    body: Mapping[str, Any]
    headers: Mapping[bytes, bytes]

    def text(self, name: str) -> str:
        """A string of the body; empty if it is missing."""
        return text_at(self.body.get(name), name)

    def flag(self, name: str) -> bool:
        """True or false, which must be there."""
        if (found := flag(self.body, name)) is None:
            raise invalid(name, "expected true or false, found nothing")
        return found

    def mapping(self, name: str) -> Mapping[str, Any] | None:
        """An object; None if it is missing."""
        return None if (found := self.body.get(name)) is None else mapping_at(found, name)

    def patterns(self, name: str) -> Mapping[str, Any] | bool:
        """Patterns of arguments, or true or false; False if it is missing."""
        found = self.body.get(name)
        return mapping_at(found, name) if isinstance(found, dict) else flag(self.body, name) or False

    def settings(self, before: ThreadSettings) -> ThreadSettings:
        """A thread's settings with the changes of this request."""
        given = {"title": before.title, "model": before.model, "format": before.format}
        given |= {name: self.text(name) for name in given if self.body.get(name) is not None}
        title = " ".join(given["title"].split())[:LONGEST_TITLE]
        return replace(before, title=title, model=given["model"], format=given["format"])
