"""Schemas sent to a server that converts them to grammars: what it would refuse, and what is said when it refuses."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from streams import answer, events_of

from agentkit.models.servers import SERVERS
from agentkit.testing import Recording, Replay
from agentkit.toolspec import OutputSchema, ToolSpec

LOCAL = "http://127.0.0.1:8000/v1"
HI = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}
DATES = {
    "type": "object",
    "properties": {"date": {"type": "string", "pattern": r"^\d+$"}, "code": {"type": "string", "pattern": r"^a\b"}},
}
BOOK = ToolSpec("book", "", DATES)
DAY = OutputSchema("Day", DATES)
CODE = {"type": "string", "description": r'Must satisfy {"pattern": "^a\\b"}'}
REFUSAL = {"error": {"code": 400, "message": "Failed to initialize samplers: failed to parse grammar"}}


@pytest.mark.parametrize("server", [None, *SERVERS])
def test_only_servers_that_convert_get_other_schemas(server: str | None) -> None:
    tape = Replay([HI, HI])
    made = tape.model("openai:m", base_url=LOCAL, server=server)
    events_of(made, tools=[BOOK], stream=False)
    events_of(made, output_schema=DAY, stream=False)
    converts = server in ("llamacpp", "ollama", "lmstudio")
    sent = tape.requests[0]["tools"][0]["function"]["parameters"]
    assert sent["properties"] == (
        {"date": {"type": "string", "pattern": "^[0-9]+$"}, "code": CODE} if converts else DATES["properties"]
    )
    assert (r"\\d" in str(tape.requests[1]["response_format"])) == (not converts)


def test_what_is_left_out_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    made = Replay([HI, HI]).model("openai:m", base_url=LOCAL, server="llamacpp")
    with caplog.at_level(logging.WARNING, "agentkit.models"):
        for _ in range(2):
            events_of(made, tools=[BOOK], stream=False)
    (record,) = caplog.records
    assert record.message.startswith("openai:m: left out for llamacpp, and checked when it is read: tool 'book', ")
    assert record.message.endswith(r"parameters.properties.code.pattern: ^a\b has a word boundary")


@pytest.mark.parametrize("stream", [True, False])
def test_a_refusal_of_a_server_without_a_name_says_what_and_where(stream: bool) -> None:
    def ends(**request: Any) -> str:
        made = Replay([Recording(REFUSAL, status=400)]).model("openai:m", base_url=LOCAL)
        return str(answer(made, stream=stream, **request)[1])

    said = ends(tools=[BOOK])
    assert "the schemas in 'tools'" in said
    assert r"tool 'book', parameters.properties.date.pattern: ^\d+$ has \d" in said
    assert "server='llamacpp'" in said
    said = ends(output_schema=DAY)
    assert "the schemas in 'response_format'" in said
    assert r"output type 'Day', schema.properties.code.pattern: ^a\b has a word boundary" in said
    assert ends() == "127.0.0.1:8000 400 (400): Failed to initialize samplers: failed to parse grammar"


def test_a_refusal_without_a_known_reason_names_the_fields_and_the_tools() -> None:
    made = Replay([Recording(REFUSAL, status=400)]).model("openai:m", base_url=LOCAL, server="llamacpp")
    said = str(answer(made, tools=[BOOK])[1])
    assert "the schemas in 'tools', and refused one of them, of tool 'book'; nothing in them is known" in said
