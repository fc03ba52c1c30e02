"""Requests of pages as an agent reads them, and which are refused."""

from __future__ import annotations

import base64
from typing import Any, Final

import pytest
from page_shop import PNG

from agentkit.agent import Approved, Denied, call_hash
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.events import chat_input_of, check_decisions, input_of
from agentkit.gateway.events.ag_ui import content_of
from agentkit.gateway.events.ag_ui_request import said_in
from agentkit.gateway.events.page_request import GivenDecision, NewMessage
from agentkit.messages import AssistantMessage, FilePart, ImagePart, TextPart, ToolCall, UserMessage, user

CALL: Final = ToolCall("c:1", "add", {"a": 1})
ID: Final = f"c:1:{call_hash(CALL)}"
DAMAGED: Final = {"type": "image", "source": {"type": "data", "value": PNG[:40], "mimeType": "image/png"}}
PICTURE: Final = ImagePart(base64.b64decode(PNG))


def body(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A request as `@ag-ui/client` 1.0 sends it, judged by AG-UI's models."""
    from ag_ui.core import RunAgentInput

    empty: dict[str, Any] = {"tools": [], "context": [], "state": {}, "forwardedProps": {}}
    found = {"threadId": "t", "runId": "r", "messages": list(messages), **empty, **fields}
    RunAgentInput.model_validate(found)
    return found


def said(content: Any, id: str = "u1") -> dict[str, Any]:
    return {"id": id, "role": "user", "content": content}


def test_the_new_messages() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked = input_of(
        body(
            {"id": "s", "role": "system", "content": "Obey."},
            said("Hi", "u1"),
            {"id": "a", "role": "assistant", "content": "I look.", "toolCalls": [call]},
            {"id": "c1-result", "role": "tool", "toolCallId": "c1", "content": "2"},
            said("And now?", "u2"),
            {"id": "x", "role": "activity", "activityType": "plan", "content": {}},
            said("Please.", "u3"),
        )
    )
    assert (asked.thread_id, asked.run_id, asked.decisions) == ("t", "r", ())
    assert asked.messages == (
        NewMessage("u2", UserMessage("And now?")), NewMessage("u3", UserMessage("Please.")),
    )  # fmt: skip
    assert asked.history == (UserMessage("Hi"), AssistantMessage("I look."))


def test_pictures() -> None:
    data = {"type": "image", "source": {"type": "data", "value": PNG, "mimeType": "image/png"}}
    link = {"type": "image", "source": {"type": "url", "value": "https://example.com/a.png"}}
    inline = {"type": "image", "source": {"type": "url", "value": f"data:image/png;base64,{PNG}"}}
    asked = input_of(body(said([{"type": "text", "text": "What is it?"}, data, link, inline])))
    (message,) = asked.messages
    assert message.message.content == (
        TextPart("What is it?"), PICTURE, ImagePart(url="https://example.com/a.png"), PICTURE,
    )  # fmt: skip


def test_an_empty_message_is_none() -> None:
    assert input_of(body(said(" "))).messages == ()


def test_the_context_of_the_application_precedes_the_last_message() -> None:
    context = [{"description": "The open file", "value": "a.txt"}]
    asked = input_of(body(said("Read it", "u1"), said("now", "u2"), context=context))
    assert [message.message.text for message in asked.messages] == [
        "Read it",
        "Context of the application that the user writes in:\n- The open file: a.txt\n\nnow",
    ]
    assert input_of(body(context=context)).messages == ()


def test_decisions() -> None:
    resume = [
        {"interruptId": "a:1", "status": "resolved", "payload": {"approved": True}},
        {"interruptId": "b:2", "status": "resolved", "payload": {"approved": True, "editedArgs": {"a": 2}}},
        {"interruptId": "c/d:3", "status": "resolved", "payload": {"approved": False, "reason": "too much"}},
        {"interruptId": "e:4", "status": "cancelled"},
    ]
    assert input_of(body(resume=resume)).decisions == (
        GivenDecision("a", "1", Approved()),
        GivenDecision("b", "2", Approved({"a": 2})),
        GivenDecision("c/d", "3", Denied("too much")),
        GivenDecision("e", "4", Denied("the question was abandoned")),
    )


def file(kind: str, media_type: str) -> dict[str, Any]:
    """A file as AG-UI has it, with the content `a,b`."""
    source = {"type": "data", "value": "YSxi", "mimeType": media_type}
    return {"type": kind, "source": source, "metadata": {"name": "b.csv"}}


def test_files_are_read_and_written() -> None:
    parts = [file("document", "text/csv"), {"type": "video", "source": {"type": "url", "value": "https://a.example/b"}}]
    message = said_in(parts, "content")
    assert message == user(
        FilePart(b"a,b", "text/csv", name="b.csv"), FilePart(url="https://a.example/b", media_type="video/mp4")
    )
    shown = content_of(message.content)
    assert shown[0] == file("document", "text/csv")
    assert said_in(shown, "content") == message


TOOL: Final = {"name": "show", "description": "Show it.", "parameters": {}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tools": [TOOL]}, "tools: the agent runs its own tools and cannot call those of a page: send none"),
        ({"threadId": ""}, "threadId: expected an id of 1 to 200 printable characters, found str ''"),
        (
            {"threadId": "t/c1"},
            "threadId: expected the id of a thread, which has no slash and not only dots, found str 't/c1'",
        ),
        ({"runId": "a\nb"}, "runId: expected an id of 1 to 200 printable characters"),
        ({"messages": [said("Hi", "")]}, "messages[0].id: expected an id"),
        (
            {"messages": [said([{"type": "binary", "source": {}}])]},
            "an agent reads text, images and files, found a part",
        ),
        ({"messages": [said([{"type": "audio", "source": {}}])]}, "a file's data or URL"),
        ({"messages": [said([file("document", "text/plain"), file("document", "application/pdf")])]}, "no PDF file"),
        ({"messages": [said([{"type": "video", "source": {"type": "url", "value": "ftp://x/y"}}])]}, "an https URL"),
        ({"messages": [said([{"type": "image", "source": {"type": "file", "value": "f"}}])]}, "a file's data or URL"),
        ({"messages": [said([{"type": "image", "source": {"type": "data", "value": "?"}}])]}, "a file in base64"),
        ({"messages": [said([DAMAGED])]}, "messages[0].content[0]: "),
        ({"messages": [said([{"type": "image", "source": {"type": "url", "value": "a.png"}}])]}, "expects a URL"),
        ({"resume": [{"interruptId": "a", "status": "resolved"}]}, "resume[0]: expected the id of an interrupt"),
        ({"resume": [{"interruptId": "a:1", "status": "resolved"}]}, "expected approved: true or false"),
        ({"resume": [{"interruptId": "a:1", "status": "late"}]}, "expected the status resolved or cancelled"),
        (
            {"resume": [{"interruptId": "a:1", "status": "cancelled"}] * 2},
            "resume[1]: two decisions about the call 'a'",
        ),
    ],
)
def test_refused_requests(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        input_of({**body(), **fields})
    assert refused.value.status == 400
    assert message in str(refused.value)


def given(id: str = "c:1", seen: str = "") -> GivenDecision:
    return GivenDecision(id, seen or call_hash(CALL), Approved())


def test_decisions_about_all_waiting_calls() -> None:
    read = input_of(body(resume=[{"interruptId": ID, "status": "resolved", "payload": {"approved": True}}]))
    check_decisions(read.decisions, [CALL])
    check_decisions([], [])


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ([given("c2")], "no call 'c2' waits"),
        ([given(seen="0")], "is not the one that was shown"),
        ([], "each waiting call needs a decision; missing: 'c:1'"),
    ],
)
def test_outdated_decisions(decisions: list[GivenDecision], message: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        check_decisions(decisions, [CALL])
    assert (refused.value.status, refused.value.code) == (409, "decision_outdated")
    assert message in str(refused.value)


# ---------------------------------------------------------------- the AI SDK


def chat(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A request as `DefaultChatTransport` sends it."""
    return {"id": "t", "messages": list(messages), "trigger": "submit-message", **fields}


def test_the_new_messages_of_a_chat() -> None:
    picture = {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{PNG}"}
    asked = chat_input_of(
        chat(
            {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]},
            {"id": "a1", "role": "assistant", "parts": [{"type": "step-start"}, {"type": "text", "text": "Hello."}]},
            {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "What is it?"}, picture]},
        )
    )
    assert asked.thread_id == "t"
    assert asked.messages == (NewMessage("u2", UserMessage(["What is it?", PICTURE])),)
    assert (asked.history, asked.decisions) == ((UserMessage("Hi"), AssistantMessage("Hello.")), ())


def test_a_file_of_a_chat() -> None:
    part = {"type": "file", "mediaType": "text/csv", "filename": "b.csv", "url": "data:text/csv;base64,YSxi"}
    asked = chat_input_of(chat({"id": "u1", "role": "user", "parts": [part]}))
    assert asked.messages == (NewMessage("u1", user(FilePart(b"a,b", "text/csv", name="b.csv"))),)


def test_the_decisions_of_a_chat() -> None:
    parts = [
        {"type": "text", "text": "I pay."},
        {"type": "tool-pay", "state": "approval-responded", "approval": {"id": "a:1", "approved": True}},
        {
            "type": "tool-pay",
            "state": "approval-responded",
            "approval": {"id": "b:2", "approved": False, "reason": "no"},
        },
        {"type": "tool-pay", "state": "output-available", "approval": {"id": "c:3", "approved": True}},
    ]
    asked = chat_input_of(chat({"id": "a1", "role": "assistant", "parts": parts}))
    assert asked.decisions == (GivenDecision("a", "1", Approved()), GivenDecision("b", "2", Denied("no")))
    assert asked.messages == ()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"trigger": "regenerate-message"}, "a reply that a thread has cannot be written again"),
        ({"id": None}, "id: expected an id of 1 to 200 printable characters, found NoneType None"),
        (
            {
                "messages": [
                    {"id": "u", "role": "user", "parts": [{"type": "file", "mediaType": "text/csv", "url": "x"}]}
                ]
            },
            "messages[0].parts[0]: FilePart(url=…) expects a URL",
        ),
    ],
)
def test_refused_requests_of_a_chat(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        chat_input_of({**chat(), **fields})
    assert message in str(refused.value)
