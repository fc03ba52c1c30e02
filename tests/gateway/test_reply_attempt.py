"""A bug in agentkit while it reads a reply: nothing is lost, and no half of a call looks complete."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from agentkit.events import ArgumentDelta, CallEnd, Finish, SourceEvent, Text
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.reply_attempt import HOLD, Attempt
from agentkit.messages import user
from agentkit.models.base import ModelRequest
from agentkit.processor import ProcessorConfig
from agentkit.processor.reply_readers import ReplyReaders
from agentkit.processor.response import ResponseReader
from agentkit.processor.response_record import CallIds
from agentkit.toolspec import ToolSpec

WRITE = ToolSpec("write_file", "Write.", {"type": "object", "properties": {"text": {"type": "string"}}})


class Says:
    """A model that writes these pieces, in XML."""

    name, format = "says", "xml"

    def __init__(self, pieces: list[str]) -> None:
        self.pieces = pieces

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        for piece in self.pieces:
            yield Text(piece)
        yield Finish("stop")


class FailingReader(ResponseReader):
    """A reader with a bug in one of its pieces."""

    at = 0

    def feed(self, event: SourceEvent) -> Iterable[SourceEvent]:
        self.at -= 1
        if self.at == 0:
            raise ZeroDivisionError
        return super().feed(event)


def attempt(pieces: list[str], fails_at: int) -> Attempt:
    readers = ReplyReaders(ProcessorConfig(formats="xml"), CallIds(lambda: "call_1"), taught=True)
    reader: Any = readers.new([WRITE])
    reader.__class__ = FailingReader
    reader.at = fails_at
    return Attempt(Says(pieces), ModelRequest([user("Hi")], (WRITE,)), reader, "openai", 0)


def read(one: Attempt) -> list[SourceEvent]:
    async def events() -> list[SourceEvent]:
        return [event async for event in one.events()]

    return asyncio.run(events())


def test_text_is_passed_on_whole() -> None:
    pieces = ["a < b, ", "<wri", "ter> and ", "<write-file><text>x", "</text></write-file>"]
    for fails_at in range(1, len(pieces) + 1):
        one = attempt(pieces, fails_at)
        said = "".join(event.text for event in read(one) if isinstance(event, Text))
        assert (said, one.faults, one.finish.reason, one.lacks()) == ("".join(pieces), 1, "stop", "")


def test_a_call_of_which_the_client_has_a_part_is_an_error() -> None:
    long = ["<write-file><text>", *["some words "] * (HOLD // 10), "the end</text></write-file>"]
    one = attempt(long, len(long))
    events = read(one)
    assert any(isinstance(event, ArgumentDelta) for event in events)
    assert not any(isinstance(event, CallEnd) for event in events)
    with pytest.raises(RequestRefused, match="write_file is damaged: the reply ended inside it") as refused:
        _ = one.finish
    assert refused.value.code == "broken_call"
