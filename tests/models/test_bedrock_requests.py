"""The requests to Bedrock: what botocore's own validator accepts, and the rules of the API that it does not know."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator
from conversations import MESSAGES
from converse_server import CLAUDE
from hypothesis import given
from wire_rules import check_converse

from agentkit.errors import ConfigError
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
    UserMessage,
    user,
)
from agentkit.models import ModelRequest, model
from agentkit.models.bedrock import BedrockModel
from agentkit.models.bedrock_body import content_of, converse_messages
from agentkit.models.messages_body import anthropic_messages
from agentkit.models.model_options import ModelSettings
from agentkit.toolspec import OutputSchema, ToolSpec

ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
PING = ToolSpec("ping", "", {"type": "object", "properties": {}})

CALLED: list[Message] = [
    user("Add 1."),
    AssistantMessage((TextPart("I add."), ToolCall("t", "add", {"a": 1}))),
    ToolMessage("t", "add", (TextPart("2"),)),
]


@functools.cache
def shape() -> Any:
    return botocore.session.get_session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape


def check_params(body: dict[str, Any]) -> None:
    report = ParamValidator().validate({key: value for key, value in body.items() if key != "stream"}, shape())
    assert not report.has_errors(), report.generate_report()


def asked(messages: Sequence[Message], settings: dict[str, Any] | None = None, /, **request: Any) -> dict[str, Any]:
    """The arguments of boto3's method."""
    made = BedrockModel(CLAUDE, ModelSettings(**(settings or {})))
    body = made._body(ModelRequest(messages, **request))
    check_params(body)
    return {key: value for key, value in body.items() if key not in ("modelId", "stream")}


def sent_messages(messages: Sequence[Message], provider: str = "bedrock") -> list[dict[str, Any]]:
    return converse_messages(anthropic_messages(messages, provider, content=content_of))


def without_urls(messages: Sequence[Message]) -> list[Message]:
    """The conversation with its images by URL in a bucket: others are refused."""

    def moved(part: Any) -> Any:
        url = getattr(part, "url", None)
        return replace(part, url="s3://bucket/y.png") if url and url.startswith("http") else part

    return [
        replace(m, content=tuple(map(moved, m.content))) if isinstance(m, ToolMessage)
        else UserMessage(tuple(map(moved, m.content))) if isinstance(m, UserMessage)
        else m
        for m in messages
    ]  # fmt: skip


@given(MESSAGES)
def test_any_history_is_valid_for_converse(messages: list[Message]) -> None:
    sent = sent_messages(without_urls(messages))
    check_converse(sent)
    check_params({"modelId": CLAUDE, "messages": sent})


def test_a_whole_request() -> None:
    messages: list[Message] = [SystemMessage("Be brief."), *CALLED]
    options = {"max_tokens": 100, "temperature": 0.5, "stop": ("END",), "tool_choice": "required"}
    assert asked(messages, tools=[ADD, PING], **options) == {
        "system": [{"text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"text": "Add 1."}]},
            {
                "role": "assistant",
                "content": [{"text": "I add."}, {"toolUse": {"toolUseId": "t", "name": "add", "input": {"a": 1}}}],
            },
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "2"}], "status": "success"}}],
            },
        ],
        "inferenceConfig": {"maxTokens": 100, "temperature": 0.5, "stopSequences": ["END"]},
        "toolConfig": {
            "tools": [
                {"toolSpec": {"name": "add", "description": "Adds.", "inputSchema": {"json": ADD.parameters}}},
                {"toolSpec": {"name": "ping", "inputSchema": {"json": PING.parameters}}},
            ],
            "toolChoice": {"any": {}},
        },
    }


def test_the_tools_that_must_or_may_not_be_called() -> None:
    assert asked([user("Hi")], tools=[ADD], tool_choice="add")["toolConfig"]["toolChoice"] == {"tool": {"name": "add"}}
    assert "toolChoice" not in asked([user("Hi")], tools=[ADD])["toolConfig"]
    assert "toolConfig" not in asked([user("Hi")], tools=[ADD], tool_choice="none")


@pytest.mark.parametrize("offered", [{}, {"tools": [ADD, PING], "tool_choice": "none"}])
def test_a_history_with_calls_declares_them_though_none_may_be_made(offered: dict[str, Any]) -> None:
    """The API refuses `toolUse` and `toolResult` without `toolConfig`, and has no choice `none`."""
    (tool,) = asked(CALLED, **offered)["toolConfig"]["tools"]
    assert tool == {"toolSpec": {"name": "add", "inputSchema": {"json": {"type": "object"}}}}


def test_results_may_be_errors_images_and_empty() -> None:
    calls = AssistantMessage(tuple(ToolCall(id, "add") for id in "abc"))
    results = [
        ToolMessage("a", "add", (TextPart("No."),), "tool_error"),
        ToolMessage("b", "add", (TextPart("See:"), ImagePart(b"\x89PNG\r\n\x1a\n"))),
        ToolMessage("c", "add", (TextPart(" "),)),
    ]
    sent = asked([user("Hi"), calls, *results], tools=[ADD])["messages"][-1]["content"]
    assert [(b["toolResult"]["status"], b["toolResult"]["content"]) for b in sent] == [
        ("error", [{"text": "No."}]),
        ("success", [{"text": "See:"}, {"image": {"format": "png", "source": {"bytes": b"\x89PNG\r\n\x1a\n"}}}]),
        ("success", [{"text": "(no output)"}]),
    ]


def test_documents_have_text_next_to_them_and_names_of_their_own() -> None:
    pdf = FilePart(b"%PDF-1.7", name="Q3 report_final.v2.pdf")
    notes = FilePart(b"# Notes", "text/markdown", name="../Ünotes.md")
    anonymous = FilePart(b"a,b", "text/csv")
    sent = asked([user(pdf), AssistantMessage("Read."), user("And these?", pdf, notes, anonymous)])["messages"]
    assert sent[0]["content"] == [
        {"text": "(the document)"},
        {"document": {"format": "pdf", "name": "Q3 report final v2 pdf", "source": {"bytes": b"%PDF-1.7"}}},
    ]
    assert [(b["document"]["format"], b["document"]["name"]) for b in sent[2]["content"][1:]] == [
        ("pdf", "Q3 report final v2 pdf (2)"),
        ("md", "notes md"),
        ("csv", "document"),
    ]


def test_audio_video_and_what_lies_in_a_bucket() -> None:
    parts = (
        FilePart(b"ID3", "audio/mpeg"),
        FilePart(None, "video/quicktime", url="s3://bucket/film.mov"),
        ImagePart(url="s3://bucket/a.webp"),
        ImagePart(url="data:image/jpeg;base64,/9j/"),
        FilePart(b"print()", "text/x-python", name="a.py"),
    )
    assert asked([user("Look.", *parts)])["messages"][0]["content"][1:] == [
        {"audio": {"format": "mp3", "source": {"bytes": b"ID3"}}},
        {"video": {"format": "mov", "source": {"s3Location": {"uri": "s3://bucket/film.mov"}}}},
        {"image": {"format": "webp", "source": {"s3Location": {"uri": "s3://bucket/a.webp"}}}},
        {"image": {"format": "jpeg", "source": {"bytes": b"\xff\xd8\xff"}}},
        {"document": {"format": "txt", "source": {"bytes": b"print()"}, "name": "a py"}},
    ]


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (ImagePart(url="https://ada:secret@x.org/y.png"), "takes no URL but s3://…, found 'https://x.org/y.png'"),
        (FilePart(url="https://x.org/a.pdf"), "takes no URL but s3://…"),
        (ImagePart(b"BM", "image/bmp"), "takes no image (image/bmp); it takes image/png, image/jpeg"),
        (FilePart(b"PK", "application/zip"), "takes no document (application/zip)"),
        (FilePart(b"MThd", "audio/midi"), "takes no audio (audio/midi)"),
    ],
)
def test_what_the_api_does_not_take_is_refused_before_anything_is_sent(part: Any, reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        asked([user("Look.", part)])
    assert f"bedrock:{CLAUDE}: {reason}" in str(refused.value)
    assert "secret" not in str(refused.value)


SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "SIG"}


def test_thinking_goes_back_unchanged_and_to_nobody_else() -> None:
    turn = AssistantMessage(
        (
            ThinkingPart("Hm.", "bedrock", SIGNED),
            ThinkingPart("", "bedrock", {"type": "redacted_thinking", "data": "AP8="}),
            ThinkingPart("No.", "anthropic", {"type": "thinking", "thinking": "No.", "signature": "A"}),
            ToolCall("t", "add", {"a": 1}),
        )
    )
    sent = sent_messages([user("Hi"), turn, ToolMessage("t", "add", (TextPart("2"),))])[1]["content"]
    assert sent[:2] == [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "SIG"}}},
        {"reasoningContent": {"redactedContent": b"\x00\xff"}},
    ]
    assert list(sent[2]) == ["toolUse"]
    assert list(sent_messages([user("Hi"), turn], "gateway:8000")[1]["content"][0]) == ["toolUse"]


def test_what_the_service_called_goes_back_with_its_answer_only() -> None:
    use = ProviderPart("bedrock", {"type": "server_tool_use", "id": "s", "name": "nova_grounding", "input": {}})
    given = {"content": [{"text": "1"}], "status": "success", "kind": "nova_grounding_result"}
    result = ProviderPart("bedrock", {"type": "server_tool_result", "tool_use_id": "s", **given})
    asked_and_answered = AssistantMessage((use, result, TextPart("One.")))
    assert sent_messages([user("Hi"), asked_and_answered, user("Go on")])[1]["content"] == [
        {"toolUse": {"toolUseId": "s", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}},
        {
            "toolResult": {
                "toolUseId": "s",
                "content": [{"text": "1"}],
                "status": "success",
                "type": "nova_grounding_result",
            }
        },
        {"text": "One."},
    ]
    alone = AssistantMessage((use, TextPart("One.")))
    assert sent_messages([user("Hi"), alone, user("Go on")])[1]["content"] == [{"text": "One."}]


def test_an_unfinished_reply_is_not_continued() -> None:
    assert asked([user("Hi"), AssistantMessage("Hel")])["messages"] == [{"role": "user", "content": [{"text": "Hi"}]}]
    sent = asked([user("Hi"), AssistantMessage("Hel \n")], {"continues": True})["messages"]
    assert sent[-1] == {"role": "assistant", "content": [{"text": "Hel"}]}


def test_more_fields_of_the_api_and_of_the_model() -> None:
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 2_000}}
    extra = {"additionalModelRequestFields": thinking, "inferenceConfig": {"topP": 0.9}}
    sent = asked([user("Hi")], {"extra": extra, "max_tokens": 9}, tools=[ADD], tool_choice="required")
    assert sent["additionalModelRequestFields"] == thinking
    assert sent["inferenceConfig"] == {"maxTokens": 9, "topP": 0.9}
    assert "toolChoice" not in sent["toolConfig"]  # Claude refuses to think if it must call


def test_cache_points_stand_after_the_system_prompt_and_the_users_messages() -> None:
    long = "word " * 2_000
    pdf = FilePart(b"%PDF-1.7" + b" " * 100_000)
    messages: list[Message] = [SystemMessage(long), user(long), AssistantMessage("Yes."), user("And this?", pdf)]
    sent = asked(messages, {"cache": True}, tools=[ADD])
    point = {"cachePoint": {"type": "default"}}
    assert sent["system"][1:] == [point]
    assert sent["messages"][0]["content"][1:] == [point]
    assert [list(block) for block in sent["messages"][2]["content"]] == [["text"], ["cachePoint"], ["document"]]
    assert "cachePoint" not in json.dumps(asked(messages[:-1], tools=[ADD]))


def test_files_and_answers_of_the_service_are_counted_for_cache_points() -> None:
    use = {"type": "server_tool_use", "id": "s", "name": "nova_grounding", "input": {}}
    result = {"type": "server_tool_result", "tool_use_id": "s", "content": [{"json": {"a": 1}}], "status": "success"}
    said = AssistantMessage((*(ProviderPart("bedrock:anthropic", one) for one in (use, result)), TextPart("One.")))
    sent = asked([user("Hi"), said, user("Hear", FilePart(b"ID3", "audio/mpeg"))], {"cache": True})["messages"]
    assert [list(block) for block in sent[1]["content"]] == [["toolUse"], ["toolResult"], ["text"]]
    assert [list(block) for block in sent[2]["content"]] == [["text"], ["audio"], ["cachePoint"]]


CITY = OutputSchema("City", {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})


def test_an_output_is_constrained_where_the_model_is_known_to_take_a_schema() -> None:
    (structure,) = asked([user("Hi")], output_schema=CITY)["outputConfig"]["textFormat"]["structure"].values()
    assert json.loads(structure["schema"])["required"] == ["name"]
    other = BedrockModel("us.amazon.nova-2-lite-v1:0")._body(ModelRequest([user("Hi")], output_schema=CITY))
    assert "outputConfig" not in other
    assert '"name"' in other["system"][0]["text"]


@pytest.mark.parametrize(
    "name",
    [
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "arn:aws:bedrock:us-west-2:123456789012:inference-profile/us.amazon.nova-2-lite-v1:0",
        "arn:aws:sagemaker:us-east-1:123456789012:endpoint/my-endpoint",
    ],
)
def test_ids_and_arns_are_names_of_models(name: str) -> None:
    made = model(f"bedrock:{name}")
    assert (made.name, getattr(made, "model")) == (f"bedrock:{name}", name)  # noqa: B009 - of this model alone
