"""One request to the page's API, and its fields, checked when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.ui.thread_settings import LONGEST_TITLE, ThreadSettings


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request.

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

    def text(self, name: str, default: str | None = None) -> str:
        """A string of the body.

        Raises:
            RequestRefused: it is another value, or missing without a default.
        """
        value = self.body.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise wrong(name, "a string", value)
        return value

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """True or false.

        Raises:
            RequestRefused: as `text`.
        """
        value = self.body.get(name, default)
        if not isinstance(value, bool):
            raise wrong(name, "true or false", value)
        return value

    def mapping(self, name: str) -> Mapping[str, Any] | None:
        """An object; None if it is missing.

        Raises:
            RequestRefused: it is another value.
        """
        value = self.body.get(name)
        if value is not None and not isinstance(value, dict):
            raise wrong(name, "an object", value)
        return value

    def settings(self, before: ThreadSettings) -> ThreadSettings:
        """A thread's settings with the changes of this request."""
        title = " ".join(self.text("title", before.title).split())[:LONGEST_TITLE]
        format = self.text("format", before.format or "") or None
        return replace(before, title=title, model=self.text("model", before.model), format=format)


def wrong(name: str, expected: str, found: Any) -> RequestRefused:
    """Return why a field is refused."""
    return RequestRefused(400, f"{name}: expected {expected}, found {found!r:.60}", "invalid_request", param=name)
