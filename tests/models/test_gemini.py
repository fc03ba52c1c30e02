"""Gemini: what is sent, what comes back, and what becomes of signatures, calls without ids and Google's own parts."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from recordings import ABSENT, rows
from replay_server import Recorded, ReplayServer
from streams import answer, events_of
from wire_rules import check_gemini

from agentkit import Agent, openapi_schema
from agentkit.errors import ConfigError
from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallError,
    CallStart,
    Finish,
    ProviderBlock,
    Text,
    Thinking,
    UnreadCall,
    Usage,
)
from agentkit.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    Message,
    ProviderPart,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    user,
)
from agentkit.models import model
from agentkit.models.gemini import UNSIGNED, gemini_contents
from agentkit.models.messages_body import anthropic_messages
from agentkit.models.openai import chat_messages
from agentkit.models.responses import responses_input
from agentkit.testing import Recording, Replay
from agentkit.threads import SQLiteStore, ThreadManager
from agentkit.tool.registry import ToolRegistry
from agentkit.toolspec import OutputSchema, ToolSpec

ADD = ToolSpec("add", "Add two numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})
OK = OutputSchema("ok", {"type": "object", "properties": {"ok": {"type": "boolean"}}})
ROWS = [row for row in rows("wire_other.jsonl") if row["api"] == "gemini"]
SIGNED = {"thoughtSignature": "QUJD"}


def whole(*parts: dict[str, Any], **candidate: Any) -> dict[str, Any]:
    """A whole response with these parts."""
    given = {"finishReason": "STOP", **candidate}
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0, **given}]}


def sse(*pieces: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(piece)}\r\n\r\n" for piece in pieces)


def sent(
    messages: list[Message] | None = None,
    settings: dict[str, Any] | None = None,
    name: str = "gemini-3-x",
    **asked: Any,
) -> dict[str, Any]:
    """The body of the request that these messages become, as the SDK sends it."""
    tape = Replay([whole({"text": "Hi"})])
    events_of(tape.model(f"gemini:{name}", **(settings or {})), messages or [user("Hi")], stream=False, **asked)
    return tape.requests[0]


def read(*parts: dict[str, Any], tools: tuple[ToolSpec, ...] = (), **candidate: Any) -> list[Any]:
    """The events of a whole response."""
    return events_of(Replay([whole(*parts, **candidate)]).model("gemini:m"), stream=False, tools=tools)


# ---------------------------------------------------------------- requests


def test_a_conversation() -> None:
    said: list[Message] = [
        SystemMessage("Be brief."),
        user("Draw"),
        AssistantMessage((TextPart("I draw."), ToolCall("c1", "draw", {"size": 1}), ToolCall("c2", "ping"))),
        ToolMessage("c1", "draw", (TextPart("done"), ImagePart(b"png"))),
        ToolMessage("c2", "ping", (TextPart("no"),), "tool_error"),
        user("Thanks"),
    ]
    png = {"inlineData": {"mimeType": "image/png", "data": "cG5n"}}
    drawn = {"name": "draw", "response": {"output": "done"}}
    refused = {"functionResponse": {"name": "ping", "response": {"error": "no"}}}
    drawing = {"functionCall": {"name": "draw", "args": {"size": 1}}}
    pinging = {"functionCall": {"name": "ping", "args": {}}}
    before, thanks = {"role": "user", "parts": [{"text": "Draw"}]}, {"role": "user", "parts": [{"text": "Thanks"}]}
    signed = {"thoughtSignature": UNSIGNED, **drawing}
    assert sent(said) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            before,
            {"role": "model", "parts": [{"text": "I draw."}, signed, pinging]},
            {"role": "user", "parts": [{"functionResponse": {**drawn, "parts": [png]}}, refused]},
            thanks,
        ],
        "generationConfig": {},
    }
    assert sent(said, name="gemini-2.5-pro")["contents"] == [
        before,
        {"role": "model", "parts": [{"text": "I draw."}, drawing, pinging]},
        {"role": "user", "parts": [{"functionResponse": drawn}, png, refused]},
        thanks,
    ]


def test_the_sdk_changes_nothing_of_a_body() -> None:
    arguments = {"first_name": "Ada", "lastName": "L", "system_instruction": {"tool_config": [None, 1.5]}}
    said: list[Message] = [user("Hi"), AssistantMessage((ToolCall("c", "f", arguments),)), ToolMessage("c", "f", "1")]
    assert sent(said)["contents"][1]["parts"][0]["functionCall"]["args"] == arguments


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("add", {"mode": "ANY", "allowedFunctionNames": ["add"]}),
    ],
)
def test_tools_and_their_choice(choice: str, config: dict[str, Any]) -> None:
    body = sent(tools=(ADD,), tool_choice=choice)
    declared = {"name": "add", "description": "Add two numbers.", "parametersJsonSchema": dict(ADD.parameters)}
    assert body["tools"] == [{"functionDeclarations": [declared]}]
    assert body["toolConfig"] == {"functionCallingConfig": config}


def test_limits_and_further_fields() -> None:
    own = {"thinkingConfig": {"includeThoughts": True}, "temperature": 1}
    settings = {"max_tokens": 9, "extra": {"generationConfig": own}}
    body = sent(settings=settings, temperature=0.5, stop=("END",))
    assert body["generationConfig"] == {"stopSequences": ["END"], "maxOutputTokens": 9, **own}


def test_a_schema_for_the_reply() -> None:
    config = {"responseMimeType": "application/json", "responseJsonSchema": dict(OK.schema)}
    assert sent(output_schema=OK)["generationConfig"] == config
    assert sent(output_schema=OK, tools=(ADD,))["generationConfig"] == config
    assert sent(output_schema=OK, tools=(ADD,), name="gemini-flash-latest")["generationConfig"] == config


def test_before_gemini_3_a_schema_beside_tools_is_in_the_instructions() -> None:
    body = sent(output_schema=OK, tools=(ADD,), name="gemini-2.5-pro")
    assert body["generationConfig"] == {}
    assert "must be one JSON value that fits this JSON Schema" in body["systemInstruction"]["parts"][0]["text"]


@pytest.mark.parametrize(
    ("part", "as_sent"),
    [
        (ImagePart(b"png"), {"inlineData": {"mimeType": "image/png", "data": "cG5n"}}),
        (ImagePart(url="data:image/gif;base64,QQ=="), {"inlineData": {"mimeType": "image/gif", "data": "QQ=="}}),
        (
            ImagePart(url="https://x.y/a.jpg?size=1"),
            {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://x.y/a.jpg?size=1"}},
        ),
        (ImagePart(url="https://x.y/image"), {"fileData": {"fileUri": "https://x.y/image"}}),
        (FilePart(b"%PDF-1.7"), {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0xLjc="}}),
        (
            FilePart(url="gs://bucket/talk.mp4", media_type="video/mp4"),
            {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://bucket/talk.mp4"}},
        ),
    ],
)
def test_images_and_files(part: ImagePart | FilePart, as_sent: dict[str, Any]) -> None:
    assert sent([user("Look", part)])["contents"] == [{"role": "user", "parts": [{"text": "Look"}, as_sent]}]


def test_a_reply_that_was_cut_is_answered_again_unless_the_model_continues() -> None:
    cut: list[Message] = [user("Hi"), AssistantMessage("Hel")]
    assert sent(cut)["contents"] == [{"role": "user", "parts": [{"text": "Hi"}]}]
    assert sent(cut, {"continues": True})["contents"][1] == {"role": "model", "parts": [{"text": "Hel"}]}


def test_a_conversation_that_the_model_begins() -> None:
    begun = sent([AssistantMessage("Hello!"), user("Hi")])["contents"]
    assert begun[0] == {"role": "user", "parts": [{"text": "(the conversation continues)"}]}


# ---------------------------------------------------------------- responses


def test_thinking_text_and_usage() -> None:
    usage = {
        "promptTokenCount": 100,
        "toolUsePromptTokenCount": 20,
        "cachedContentTokenCount": 80,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 7,
        "totalTokenCount": 132,
    }
    response = {**whole({"text": "Hm.", "thought": True}, {"text": "Hi", **SIGNED}), "usageMetadata": usage}
    assert events_of(Replay([response]).model("gemini:m"), stream=False) == [
        Thinking("Hm."),
        ProviderBlock("gemini", SIGNED),
        Text("Hi"),
        Usage(120, 12, 80, 0, 7),
        Finish("stop", "STOP"),
    ]


def test_a_call_with_its_id_and_signature() -> None:
    assert read({"functionCall": {"name": "add", "args": {"a": 1}, "id": "c"}, **SIGNED}, tools=(ADD,)) == [
        CallStart(0, "add", "c"),
        ArgumentDelta(0, '{"a": 1}'),
        ProviderBlock("gemini", {**SIGNED, "id": "c"}, index=0),
        CallEnd(0, ToolCall("c", "add", {"a": 1}, None, '{"a": 1}')),
        Finish("tool_calls", "STOP"),
    ]


def test_a_call_without_arguments_has_none() -> None:
    assert read({"functionCall": {"name": "add"}}, tools=(ADD,))[1] == CallEnd(0, ToolCall("", "add"))


def test_arguments_in_pieces_do_not_run() -> None:
    piece = {"name": "add", "partialArgs": [{"jsonPath": "$.a", "numberValue": 1}], "willContinue": True}
    refused = read({"functionCall": piece}, tools=(ADD,))[-2]
    assert isinstance(refused, CallError)
    assert refused.code == "ambiguous_call"


@pytest.mark.parametrize(
    "part",
    [
        {"executableCode": {"language": "PYTHON", "code": "1"}, **SIGNED},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"inlineData": {"mimeType": "image/png", "data": "cG5n"}},
        {"somethingNew": {"a": [1]}},
    ],
)
def test_googles_own_parts_are_kept_and_sent_back(part: dict[str, Any]) -> None:
    assert read(part) == [ProviderBlock("gemini", part), Finish("stop", "STOP")]
    said = AssistantMessage((TextPart("a"), ProviderPart("gemini", part), TextPart("b")))
    assert gemini_contents([user("Hi"), said], "gemini")[1]["parts"] == [{"text": "a"}, part, {"text": "b"}]
    assert "QUJD" not in str(gemini_contents([user("Hi"), said], "proxy.example"))


def test_grounding_is_kept_and_not_sent_back() -> None:
    about = {"groundingMetadata": {"webSearchQueries": ["a"]}, "citationMetadata": {"citations": [{"uri": "b"}]}}
    tape = Replay([sse(whole({"text": "H"}, finishReason="", groundingMetadata={}), whole({"text": "i"}, **about))])
    assert events_of(tape.model("gemini:m")) == [Text("Hi"), ProviderBlock("gemini", about), Finish("stop", "STOP")]
    said = AssistantMessage((TextPart("Hi"), ProviderPart("gemini", about)))
    assert gemini_contents([said], "gemini")[1]["parts"] == [{"text": "Hi"}]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("CONTINUATION", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("BLOCKLIST", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("SPII", "content_filter"),
        ("IMAGE_SAFETY", "content_filter"),
        ("LANGUAGE", "unknown"),
        ("OTHER", "unknown"),
        ("MISSING_THOUGHT_SIGNATURE", "unknown"),
    ],
)
def test_why_a_response_ended(raw: str, reason: str) -> None:
    assert read({"text": "Hi"}, finishReason=raw) == [Text("Hi"), Finish(reason, raw)]  # type: ignore[arg-type]


@pytest.mark.parametrize("why", ["SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "OTHER", "JAILBREAK"])
def test_a_blocked_prompt(why: str) -> None:
    blocked = {"promptFeedback": {"blockReason": why}, "usageMetadata": {"promptTokenCount": 3}}
    for stream, body in ((False, json.dumps(blocked)), (True, sse(blocked))):
        events = events_of(Replay([body]).model("gemini:m"), stream=stream)
        assert events == [Usage(3, 0, 0, 0, 0), Finish("content_filter", why)]


def test_a_packed_response() -> None:
    packed = gzip.compress(sse(whole({"text": "Hi"})).encode())
    tape = Replay([Recording(packed, headers={"content-encoding": "gzip", "content-type": "text/event-stream"})])
    assert events_of(tape.model("gemini:m")) == [Text("Hi"), Finish("stop", "STOP")]


def test_a_response_without_an_end_is_interrupted() -> None:
    tape = Replay([sse(whole({"text": "Hel"}, finishReason=""))])
    events, error = answer(tape.model("gemini:m"))
    assert events == [Text("Hel")]
    assert error is not None
    assert (error.kind, "the stream ended before the response did" in str(error)) == ("connection", True)


def test_words_after_an_end_need_an_end_too() -> None:
    stamped, cut = whole({"text": "Hel"}), whole({"text": "lo"}, finishReason="")
    events, error = answer(Replay([sse(stamped, cut)]).model("gemini:m"))
    assert (events, error and error.kind) == ([Text("Hello")], "connection")


def test_a_call_after_an_end() -> None:
    tape = Replay([sse(whole({"text": "I add."}), whole({"functionCall": {"name": "add", "args": {"a": 1}}}))])
    call = ToolCall("", "add", {"a": 1}, None, '{"a": 1}')
    assert events_of(tape.model("gemini:m"))[-2:] == [CallEnd(0, call), Finish("tool_calls", "STOP")]


def test_the_end_of_a_whole_response_ends_it() -> None:
    assert read({"text": "Hi"}, finishReason=None) == [Text("Hi"), Finish("unknown", None)]
    _, error = answer(Replay([{"usageMetadata": {"promptTokenCount": 5}}]).model("gemini:m", max_retries=0))
    assert error is not None
    assert error.kind == "connection"


class Adder:
    """Adds."""

    @openapi_schema
    def add(self, a: int) -> str:
        """Add one.

        Args:
            a: a number.
        """
        return str(a + 1)


def test_a_call_that_google_could_not_read_is_asked_for_again() -> None:
    said = "Malformed function call: print(default_api.add(a=1"
    malformed = whole(finishReason="MALFORMED_FUNCTION_CALL", finishMessage=said)
    events = events_of(Replay([malformed]).model("gemini:m"), stream=False)
    assert events == [UnreadCall(said, ""), Finish("unknown", "MALFORMED_FUNCTION_CALL")]
    tape = Replay([sse(malformed), sse(whole({"text": "Two."}))])
    assert Agent(tape.model("gemini:m"), Adder()).run_sync("1 + 1?").output == "Two."
    tape.assert_finished()


@pytest.mark.parametrize("part", [{"text": "", **SIGNED}, SIGNED])
def test_a_signature_alone_is_encrypted_thinking_and_goes_back(part: dict[str, Any]) -> None:
    assert read(part) == [ProviderBlock("gemini", part, thinking=True), Finish("stop", "STOP")]
    said = AssistantMessage((TextPart("a"), ThinkingPart("", "gemini", part)))
    assert gemini_contents([user("Hi"), said], "gemini")[1]["parts"] == [{"text": "a"}, {"text": "", **SIGNED}]


def test_a_reply_of_a_signature_and_ratings_is_empty() -> None:
    """Gemini 3 ends its replies with such a part."""
    empty = whole({"text": "", **SIGNED}, safetyRatings=[{"category": "HARM", "probability": "LOW"}])
    tape = Replay([sse(empty), sse(whole({"text": "Two."}))])
    assert Agent(tape.model("gemini:gemini-3-x")).run_sync("1 + 1?").output == "Two."
    assert tape.requests[1]["contents"][-1]["parts"] == [{"text": "Your reply was empty. Answer, or call a tool."}]


def test_only_the_first_candidate_is_read() -> None:
    both = {"candidates": [*whole({"text": "a"})["candidates"], {**whole({"text": "b"})["candidates"][0], "index": 1}]}
    assert events_of(Replay([both]).model("gemini:m"), stream=False) == [Text("a"), Finish("stop", "STOP")]


# ---------------------------------------------------------------- signatures


def test_signatures_go_back_to_the_part_that_they_came_with(tmp_path: Path) -> None:
    """Also after the thread was stored and read again; to nobody else."""
    parts = [
        {"text": "I think.", "thought": True, "thoughtSignature": "AAAA"},
        {"text": "I call.", "thoughtSignature": "BBB/"},
        {"functionCall": {"name": "add", "args": {"a": 1}}, "thoughtSignature": "CC+C"},
        {"functionCall": {"name": "add", "args": {"a": 2}}},
        {"text": "", "thoughtSignature": "DD_-"},
    ]
    results = [{"functionResponse": {"name": "add", "response": {"output": n}}} for n in ("2", "3")]
    answers = [whole({"text": "Done."}), whole({"text": "Bye."})]
    tape = Replay([sse(whole(*parts)), *map(sse, answers)])

    async def talk(path: Path) -> list[Message]:
        async with ThreadManager(SQLiteStore(path), ToolRegistry(Adder())) as threads:
            await threads.say("t", "Add", model=tape.model("gemini:gemini-3-x"))
        async with ThreadManager(SQLiteStore(path), ToolRegistry(Adder())) as threads:
            await threads.say("t", "Bye", model=tape.model("gemini:gemini-3-x"))
            return await threads.get_llm_messages("t")

    stored = asyncio.run(talk(tmp_path / "chat.db"))
    for request in tape.requests[1:]:
        assert request["contents"][1] == {"role": "model", "parts": parts}
        assert request["contents"][2] == {"role": "user", "parts": results}
    for render, name in ((chat_messages, "openai"), (responses_input, "responses"), (anthropic_messages, "anthropic")):
        others = json.dumps(render(stored, name))
        assert not any(value in others for value in ("AAAA", "BBB/", "CC+C", "DD_-"))


def test_streamed_text_after_its_signature_stays_one_part() -> None:
    first, rest = whole({"text": "Hel", **SIGNED}, finishReason=""), whole({"text": "lo"})
    tape = Replay([sse(first, rest), sse(whole({"text": "Bye."}))])
    agent = Agent(tape.model("gemini:gemini-3-x"))
    begun = agent.run_sync("Hi")
    assert begun.output == "Hello"
    agent.run_sync([*begun.messages, user("Bye")])
    assert tape.requests[1]["contents"][1]["parts"] == [{"text": "Hello", **SIGNED}]


def test_a_signature_whose_text_is_gone_stays() -> None:
    said = AssistantMessage((ProviderPart("gemini", SIGNED), ToolCall("c", "f"), ProviderPart("gemini", SIGNED)))
    parts = gemini_contents([user("Hi"), said], "gemini")[1]["parts"]
    assert [part.get("text") for part in parts] == ["", None, ""]
    assert [part["thoughtSignature"] for part in parts] == ["QUJD", UNSIGNED, "QUJD"]


def test_thinking_of_others_is_not_sent() -> None:
    said = AssistantMessage(
        (ThinkingPart("Hm.", "anthropic", {"type": "thinking"}), ThinkingPart("Hm."), TextPart("a"))
    )
    assert gemini_contents([user("Hi"), said], "gemini")[1]["parts"] == [{"text": "a"}]


# ---------------------------------------------------------------- the server, the keys, the errors


@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
def test_rows_over_real_connections(row: dict[str, Any]) -> None:
    """The same events as from a replay, through the default connections of the SDK's client."""
    response, stream = row["response"], "sse" in row["response"]
    body = response["sse"].encode() if stream else json.dumps(response["body"]).encode()
    with ReplayServer([Recorded(body)]) as server:
        url = server.url.removesuffix("/v1")
        events = events_of(model("gemini:gemini-3-x", api_key="a-key", base_url=url), stream=stream)
    [asked] = server.requests
    assert asked.path.endswith(f"/models/gemini-3-x:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}")
    assert asked.headers["x-goog-api-key"] == "a-key"
    replayed = events_of(Replay([body]).model("gemini:m", base_url=url), stream=stream)
    assert events == replayed
    assert isinstance(events[-1], Finish)


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("GOOGLE_", "GEMINI_"))]:
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("no_keys")
def test_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="needs an API key, but none was found: set the environment variable GEMINI_"):
        model("gemini:m")
    monkeypatch.setenv("GEMINI_API_KEY", "gemini-key")
    tape = Replay([whole(), whole(), whole()])
    for url in ("https://generativelanguage.googleapis.com", "https://proxy.example/a?tenant=b"):
        events_of(tape.model("gemini:m", api_key=None, base_url=url), stream=False)
    monkeypatch.setenv("GOOGLE_API_KEY", "google-key")
    events_of(tape.model("gemini:m", api_key=None), stream=False)
    assert [h["x-goog-api-key"] for h in tape.headers] == ["gemini-key", "gemini-key", "google-key"]


@pytest.mark.usefixtures("no_keys")
def test_vertex_by_the_settings_of_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_API_KEY", "express-key")
    tape = Replay([sse(whole({"text": "Hi"}))])
    made = model("gemini:gemini-3-x", http_client=tape.client())
    assert repr(made) == "<gemini:gemini-3-x>"
    assert events_of(made) == [Text("Hi"), Finish("stop", "STOP")]
    assert tape.headers[0]["host"] == "aiplatform.googleapis.com"
    assert tape.headers[0]["x-goog-api-key"] == "express-key"


@pytest.mark.usefixtures("no_keys")
def test_vertex_without_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "1")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(ConfigError, match=r"gemini:m: File .*none\.json was not found"):
        events_of(model("gemini:m"))


INFO = "type.googleapis.com/google.rpc"
WAITS = [{"@type": f"{INFO}.QuotaFailure"}, {"@type": f"{INFO}.RetryInfo", "retryDelay": "34.074824224s"}]
NO_KEY = [{"@type": f"{INFO}.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}]


@pytest.mark.parametrize(
    ("status", "said", "message", "details", "kind", "wait"),
    [
        (400, "INVALID_ARGUMENT", "Unable to process input image.", [], "bad_request", None),
        (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", NO_KEY, "authentication", None),
        (400, "INVALID_ARGUMENT", "The input token count (2) exceeds the maximum number (1).", [], "too_long", None),
        (401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", [], "authentication", None),
        (403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers.", [], "permission", None),
        (404, "NOT_FOUND", "models/m is not found for API version v1beta.", [], "not_found", None),
        (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", WAITS, "rate_limit", 34.074824224),
        (500, "INTERNAL", "An internal error has occurred.", [], "server", None),
        (503, "UNAVAILABLE", "The model is overloaded. Please try again later.", [], "overloaded", None),
        (504, "DEADLINE_EXCEEDED", "The request timed out.", [], "timeout", None),
    ],
)
def test_errors(
    status: int, said: str, message: str, details: list[dict[str, Any]], kind: str, wait: float | None
) -> None:
    body = {"error": {"code": status, "message": message, "status": said, "details": details}}
    code = "API_KEY_INVALID" if details is NO_KEY else said
    for stream in (True, False):
        events, error = answer(Replay([Recording(body, status)]).model("gemini:m"), stream=stream)
        assert events == []
        assert error is not None
        assert (error.kind, error.status, error.code, error.retry_after) == (kind, status, code, wait)
        assert str(error) == f"gemini {status} ({code}): {message}"


def test_an_error_in_the_stream() -> None:
    said = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    events, error = answer(Replay([sse(whole({"text": "Hel"}, finishReason=""), said)]).model("gemini:m"))
    assert events == [Text("Hel")]
    assert error is not None
    assert (error.kind, "The model is overloaded." in str(error)) == ("overloaded", True)


def test_an_error_in_the_stream_says_how_long_to_wait() -> None:
    said = {"error": {"code": 429, "message": "Quota.", "status": "RESOURCE_EXHAUSTED", "details": WAITS}}
    _, error = answer(Replay([sse(said)]).model("gemini:m", max_retries=0))
    assert error is not None
    assert (error.kind, error.code, error.retry_after) == ("rate_limit", "RESOURCE_EXHAUSTED", 34.074824224)


def test_a_key_is_in_no_error() -> None:
    key = "canary-0123456789"
    said = {"error": {"code": 400, "message": f"Bad key {key}", "status": "INVALID_ARGUMENT"}}
    _, error = answer(Replay([Recording(said, 400)]).model("gemini:m", api_key=key))
    shown: BaseException | None = error
    while shown is not None:
        assert key not in f"{shown!r}{vars(shown)}"
        shown = shown.__cause__ or shown.__context__


# ---------------------------------------------------------------- runs


def test_parallel_calls_without_ids() -> None:
    calls = [{"functionCall": {"name": "add", "args": {"a": n}}} for n in (1, 2)]
    tape = Replay([sse(whole(*calls)), sse(whole({"text": "2 and 3"}))])
    result = Agent(tape.model("gemini:gemini-2.5-pro"), Adder()).run_sync("Add")
    assert result.output == "2 and 3"
    check_gemini(tape.requests[1]["contents"])
    answered = [part["functionResponse"] for part in tape.requests[1]["contents"][2]["parts"]]
    assert answered == [{"name": "add", "response": {"output": n}} for n in ("2", "3")]


def test_calls_as_text() -> None:
    tape = Replay([sse(whole({"text": "<add><a>1</a></add>"})), sse(whole({"text": "Two."}))])
    result = Agent(tape.model("gemini:m", format="xml"), Adder()).run_sync("1 + 1?")
    assert result.output == "Two."
    assert "tools" not in tape.requests[0]
    assert "2" in tape.requests[1]["contents"][2]["parts"][0]["text"]
