"""The findings about a model, and the setting that gives its clients native calls. Pure values and a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from agentkit.fit.calling_modes import CallingMode
from agentkit.gateway.stream_faults import HARMLESS
from agentkit.models.servers import SERVERS, UNKNOWN

CallsSeen = Literal["native", "text", "broken", "unread", "cut out", "none", "refused", "failed"]
"""How a reply called the tool.

- `native`: in the wire's own form; `broken`: so, but damaged.
- `text`: in its text, in a format that is read; `unread`: in its text, in a way that cannot be read.
- `cut out`: the model wrote more than arrived, so the server has removed the call.
- `none`: not at all.
- `refused`: the server refused the request; `failed`: it failed otherwise.
"""

AUTO: Final = "--format auto"


@dataclass(frozen=True, slots=True)
class ReplyFinding:
    """How one reply called the tool.

    Args:
        calls: how.
        format: the text format, if it is `text`.
        faults: of the wire.
        error: what the server or the reader said.
    """

    calls: CallsSeen
    format: str = ""
    faults: tuple[str, ...] = ()
    error: str = ""

    @property
    def right(self) -> bool:
        """Return whether every client gets the calls with `--format auto`, which makes those in text native."""
        return self.calls == "text" or (self.calls == "native" and HARMLESS.issuperset(self.faults))

    def __str__(self) -> str:
        """In words, such as `in text (hermes)`."""
        words = {"text": f"in text ({self.format})", "none": "no call"}.get(self.calls, self.calls)
        return words if HARMLESS.issuperset(self.faults) else f"{words}, bad wire"


@dataclass(frozen=True, slots=True)
class ModelFinding:
    """The findings about one model of a server.

    Args:
        model: its name.
        server: the kind of server; None if it is unknown.
        whole: a whole reply to a native request.
        streamed: a streamed one.
        format: the text format in which it was also asked.
        text: the reply to that; None if it was not needed.
        grammar: whether the server enforces grammars; None if that is unknown.
        grammar_error: why not.
        fit: the mode that `agentkit.fit` recommends; empty if it was not asked.
        fitted: how well that mode did.
        fit_error: why there is no recommendation.
    """

    model: str
    server: str | None
    whole: ReplyFinding
    streamed: ReplyFinding
    format: str
    text: ReplyFinding | None = None
    grammar: bool | None = None
    grammar_error: str = ""
    fit: str = ""
    fitted: str = ""
    fit_error: str = ""

    @property
    def works(self) -> bool:
        """Return whether `setting` gives clients native calls."""
        return self.setting.startswith("--format")

    @property
    def setting(self) -> str:
        """The options of `agentkit serve` for this model, or in words what to do."""
        if self.fit:
            return _options(CallingMode.from_name(self.fit))
        both, text = {self.whole.calls, self.streamed.calls}, None if self.text is None else self.text.calls
        if self.whole.right and self.streamed.right:
            return AUTO
        if text == "text":
            return _options(CallingMode(self.format, constrained=self.grammar is True))
        if "native" in both:
            return AUTO
        if text == "cut out":
            return UNKNOWN if self.server is None else SERVERS[self.server].advice
        if self.grammar:
            return _options(CallingMode(self.format, constrained=True))
        return "it answers no request" if text == "failed" else "let --fit try more formats"

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the table has no room for."""
        found = [
            f"{name}: {', '.join(filter(None, (*reply.faults, reply.error)))}"
            for name, reply in (("whole", self.whole), ("streamed", self.streamed), (self.format, self.text))
            if reply is not None and (reply.faults or reply.error)
        ]
        found += [f"grammar: {self.grammar_error}"] if self.grammar_error else []
        found += [f"fit: {self.fit}, {self.fitted}"] if self.fit else []
        found += [f"fit: {self.fit_error}"] if self.fit_error else []
        return tuple(dict.fromkeys(found))


def _options(mode: CallingMode) -> str:
    return AUTO if mode.format is None else f"--format {mode.format}{' --constrained' if mode.constrained else ''}"
