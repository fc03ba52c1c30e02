"""The events of a run as lines of JSON, for programs. Knows events and results; runs nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from agentkit.cli.screen import Screen
from agentkit.cli.terminal import as_json
from agentkit.events import Event
from agentkit.messages import ImagePart, TextPart, ToolCall
from agentkit.tool.result import ToolResult
from agentkit.unicode import clean_json

if TYPE_CHECKING:
    from agentkit.agent import RunResult


class EventLines(Screen):
    """Writes each event as one line of JSON, and all else to where complaints go.

    Args:
        lines: where the events go.
        out: where all else goes.
    """

    def __init__(self, lines: TextIO, out: TextIO) -> None:
        super().__init__(out)
        self._lines = lines

    def show(self, event: Event) -> None:
        """Write one event."""
        self._others()
        self._json(as_line(event))

    def ended(self, result: RunResult) -> None:
        """Write why the run ended, its answer and its tokens."""
        usage = result.usage._asdict()
        self._json({"event": "run_ended", "finish": result.finish, "text": result.text, "usage": usage})

    def broken_off(self, result: RunResult) -> None:
        """Write the same of a run that was stopped or failed."""
        self.ended(result)

    def failed(self, error: Exception) -> None:
        """Write what went wrong, here and as a complaint."""
        self._json({"event": "error", "message": str(error)})
        super().failed(error)

    def retrying(self, why: str, seconds: float) -> None:
        """Write that a request is made again."""
        self._json({"event": "retry", "message": why, "seconds": seconds})

    def _json(self, line: Mapping[str, Any]) -> None:
        self._lines.write(as_json(clean_json(line)) + "\n")
        self._lines.flush()


def as_line(event: Event) -> dict[str, Any]:
    """An event as a JSON object: its name, and its fields.

    >>> from agentkit.events import Text
    >>> as_line(Text("Hi"))
    {'event': 'text', 'text': 'Hi'}
    """
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
    return {"event": name, **{key: _value(value) for key, value in event._asdict().items()}}


def _value(value: Any) -> Any:
    match value:
        case ToolCall(id, name, arguments, format, raw):
            said = {"id": id, "name": name, "arguments": dict(arguments)}
            return said if format is None else {**said, "format": format, "raw": raw}
        case ToolResult():
            images = [_image(part) for part in value.content if isinstance(part, ImagePart)]
            about: dict[str, Any] = {"ok": value.ok, "text": value.text}
            about |= {} if value.ok else {"code": value.code}
            return {**about, "images": images} if images else about
        case TextPart(text):
            return text
        case tuple():
            return [_value(one) for one in value]
        case _:
            return value


def _image(part: ImagePart) -> dict[str, Any]:
    return {"url": part.url} if part.data is None else {"media_type": part.media_type, "data": part.base64}
