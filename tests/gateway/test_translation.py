"""Models that are taught a text format, behind the gateway: clients see native calls, whatever the two wires are."""

import json
from pathlib import Path
from typing import Any

import anthropic
import pytest
from fake_upstream import Step, chunked, fake_upstream, until, whole
from gateway_kit import gateway
from upstream_replies import WIRES, ReadReply, chat_stream, chat_whole, chunk

from agentkit.formats import CATALOG, render_calls
from agentkit.gateway.client_wire import PATHS, WireName
from agentkit.messages import ToolCall
from agentkit.toolspec import ToolSpec

PARAMETERS = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
    "required": ["path"],
}
READ = ToolSpec("read_file", "Read a file.", PARAMETERS)
CALL = {"path": 'a "b".txt', "lines": 3}


def written(format: str = "xml", **arguments: Any) -> str:
    return render_calls(next(f for f in CATALOG if f.name == format), [ToolCall("", "read_file", arguments)], [READ])


def tools(wire: WireName) -> list[dict[str, Any]]:
    match wire:
        case "chat":
            declared = {"name": READ.name, "description": READ.description, "parameters": PARAMETERS}
            return [{"type": "function", "function": declared}]
        case "responses":
            return [{"type": "function", "name": READ.name, "description": READ.description, "parameters": PARAMETERS}]
        case _:
            return [{"name": READ.name, "description": READ.description, "input_schema": PARAMETERS}]


def request(wire: WireName = "chat", *, stream: bool = True, **more: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": "What is in it?"}]
    body = {"model": "m", "stream": stream, "tools": tools(wire), **more}
    if wire == "chat" and stream:
        body.setdefault("stream_options", {"include_usage": True})
    return {**body, "max_tokens": 100, "messages": said} if wire == "messages" else {
        **body, "input" if wire == "responses" else "messages": said
    }  # fmt: skip


def ask(url: str, body: dict[str, Any], wire: WireName = "chat") -> tuple[int, bytes, dict[str, str]]:
    import urllib.error
    import urllib.request

    asked = urllib.request.Request(
        url + PATHS[wire], json.dumps(body).encode(), {"content-type": "application/json"}, method="POST"
    )
    try:
        with urllib.request.urlopen(asked, timeout=20) as reply:
            return reply.status, reply.read(), dict(reply.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read(), dict(error.headers)


def settings(url: str, format: str = "xml", wire: WireName = "chat", **route: Any) -> dict[str, Any]:
    return {"upstreams": {"fake": {"url": url, "wire": wire}}, "models": {"*": {"format": format, **route}}}


def stream(*texts: str, wire: WireName = "chat", finish: str = "") -> list[Step]:
    return chunked(*WIRES[wire].stream(texts, *([finish] if finish else [])))


def read(reply: bytes, wire: WireName = "chat", *, streamed: bool = True) -> ReadReply:
    return WIRES[wire].read(reply) if streamed else WIRES[wire].read_whole(reply)


def cut(text: str, size: int = 5) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("format", [format.name for format in CATALOG])
def test_a_call_in_any_format_is_native_for_the_client(format: str) -> None:
    said = "I look.\n" + written(format, **CALL)
    with (
        fake_upstream(stream(*cut(said)), whole(chat_whole(said))) as upstream,
        gateway(settings(upstream.url, format)) as url,
    ):
        for streamed in (True, False):
            status, reply, _ = ask(url, request(stream=streamed))
            events = read(reply, streamed=streamed)
            assert (status, events.calls, events.finish) == (200, [("read_file", CALL)], "tool_calls")
            assert events.text.strip() == "I look."


@pytest.mark.parametrize("upstream_wire", PATHS)
@pytest.mark.parametrize("client_wire", PATHS)
def test_the_two_wires_may_differ(client_wire: WireName, upstream_wire: WireName) -> None:
    said = written(path="notes.txt", lines=3)
    answers = stream(*cut(said), wire=upstream_wire), whole(WIRES[upstream_wire].whole(said))
    with fake_upstream(*answers) as upstream, gateway(settings(upstream.url, "xml", upstream_wire)) as url:
        for streamed in (True, False):
            status, reply, _ = ask(url, request(client_wire, stream=streamed), client_wire)
            events = read(reply, client_wire, streamed=streamed)
            assert (status, events.calls, events.text) == (200, [("read_file", {"path": "notes.txt", "lines": 3})], "")
            assert events.finish == "tool_calls"
    assert all("tools" not in body for body in upstream.bodies)


def test_calls_and_results_go_to_the_upstream_as_text_in_the_format() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "notes.txt"}'}}
    history = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is in it?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Meeting on Thursday."},
    ]
    with fake_upstream(stream("On ", "Thursday.")) as upstream, gateway(settings(upstream.url)) as url:
        _, reply, _ = ask(url, {**request(), "messages": history, "top_k": 40, "temperature": 0})
    assert read(reply).text == "On Thursday."
    [body] = upstream.bodies
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    assert body["messages"][2]["content"].strip() == written(path="notes.txt")
    assert "Meeting on Thursday." in body["messages"][3]["content"]
    assert (body["top_k"], body["temperature"]) == (40, 0)


@pytest.mark.parametrize(
    ("first", "asks"),
    [
        ('<read-file path="notes.txt"', "Your call of read_file failed"),
        ("<tool_result>Meeting on Thursday.</tool_result>", "No tool has run yet"),
        ('functions.read_file:0 <|tool_call_argument_begin|> {"path": "a"}', "could not be read"),
    ],
    ids=["damaged", "invented", "unread"],
)
def test_what_is_no_answer_is_asked_again_before_the_client_sees_an_end(first: str, asks: str) -> None:
    answers = stream(*cut(first)), stream(*cut(written(path="notes.txt")))
    with fake_upstream(*answers) as upstream, gateway(settings(upstream.url)) as url:
        _, reply, _ = ask(url, request())
    events = read(reply)
    assert (events.calls, events.finish) == ([("read_file", {"path": "notes.txt"})], "tool_calls")
    assert b"tool_result" not in reply
    assert asks in json.dumps(upstream.bodies[1]["messages"][-1])


def test_a_call_that_can_never_be_read_is_an_error_not_an_answer() -> None:
    with fake_upstream(stream('<read-file path="notes.txt"')) as upstream, gateway(settings(upstream.url)) as url:
        streamed = ask(url, request())
        plain = ask(url, request(stream=False))
    assert len(upstream.requests) == 6
    assert b'"error"' in streamed[1]
    assert plain[0] == 502
    assert "could not be read" in json.loads(plain[1])["error"]["message"]


def test_tool_choice_and_parallel_calls_are_honoured() -> None:
    two = written(path="a") + "\n" + written(path="b")
    words = "Just words."
    with fake_upstream(stream(two)) as upstream, gateway(settings(upstream.url)) as url:
        assert len(read(ask(url, request())[1]).calls) == 2
        assert len(read(ask(url, request(parallel_tool_calls=False))[1]).calls) == 1
    with fake_upstream(stream(words), stream(two)) as upstream, gateway(settings(upstream.url)) as url:
        assert read(ask(url, request(tool_choice="required"))[1]).calls
    with fake_upstream(stream(two), stream(words)) as upstream, gateway(settings(upstream.url)) as url:
        events = read(ask(url, request(tool_choice="none"))[1])
        assert (events.calls, events.text) == ([], words)
    with fake_upstream(stream(two)) as upstream, gateway(settings(upstream.url)) as url:
        events = read(ask(url, request(tool_choice="none"))[1])
        assert (events.calls, events.finish) == ([], "stop")


def test_a_call_that_the_token_limit_cuts_is_no_call() -> None:
    said = written(path="notes.txt").partition("tes.txt")[0]
    with fake_upstream(stream(*cut(said), finish="length")) as upstream, gateway(settings(upstream.url)) as url:
        events = read(ask(url, request())[1])
    assert (events.calls, events.finish) == ([], "length")
    assert len(upstream.requests) == 1


def test_errors_of_the_upstream_keep_their_status_and_their_wait() -> None:
    refused = whole({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, 429, retry_after="7")
    with fake_upstream(refused) as upstream, gateway(settings(upstream.url)) as url:
        status, reply, headers = ask(url, request("messages"), "messages")
    assert status == 429
    assert json.loads(reply)["error"]["type"] == "rate_limit_error"
    assert "slow down" in json.loads(reply)["error"]["message"]
    assert {name.lower(): value for name, value in headers.items()}["retry-after"] == "7"


@pytest.mark.parametrize("wire", PATHS)
def test_a_stream_that_breaks_ends_in_an_error_of_the_client_s_wire(wire: WireName) -> None:
    pieces = chat_stream(["Hello ", "there"])[:-3]
    with fake_upstream(chunked(*pieces, cut=True)) as upstream, gateway(settings(upstream.url)) as url:
        _, reply, _ = ask(url, request(wire), wire)
    assert b"Hello " in reply
    assert b"error" in reply.rpartition(b"Hello ")[2]


def test_a_forced_call_is_constrained_by_a_grammar_if_the_server_accepts_one() -> None:
    with fake_upstream(stream(written(path="a"))) as upstream:
        chosen = settings(upstream.url)
        chosen["upstreams"]["fake"]["server"] = "llamacpp"
        with gateway(chosen) as url:
            for choice in ("auto", "required", {"type": "function", "function": {"name": "read_file"}}):
                assert read(ask(url, request(tool_choice=choice))[1]).calls == [("read_file", {"path": "a"})]
    assert ["grammar" in body for body in upstream.bodies] == [False, True, True]


PDF = "data:application/pdf;base64,JVBERi0="
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
FILE = {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}


@pytest.mark.parametrize(
    ("wire", "sent"),
    [
        ("chat", [IMAGE, FILE, AUDIO]),
        (
            "responses",
            [
                {"type": "input_image", "image_url": IMAGE["image_url"]["url"], "detail": "auto"},
                {"type": "input_file", "filename": "a.pdf", "file_data": PDF},
            ],
        ),
        (
            "messages",
            [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
                {
                    "type": "document",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
                    "title": "a.pdf",
                },
            ],
        ),
    ],
)
def test_images_and_files_reach_the_upstream_in_its_wire(wire: WireName, sent: list[dict[str, Any]]) -> None:
    parts = [{"type": "text", "text": "Read these."}, IMAGE, FILE, *([AUDIO] if wire == "chat" else [])]
    said = [{"role": "user", "content": parts}]
    with fake_upstream(stream("Done.", wire=wire)) as upstream, gateway(settings(upstream.url, "xml", wire)) as url:
        assert read(ask(url, {**request(), "messages": said})[1]).text == "Done."
    [body] = upstream.bodies
    assert body["input" if wire == "responses" else "messages"][-1]["content"][1:] == sent


def test_a_part_without_a_form_in_the_upstreams_wire_is_refused() -> None:
    said = [{"role": "user", "content": [AUDIO]}]
    with fake_upstream() as upstream, gateway(settings(upstream.url, "xml", "messages")) as url:
        status, reply, _ = ask(url, {**request(), "messages": said})
    assert (status, upstream.requests) == (400, [])
    assert "anthropic:m: takes no audio (audio/wav)" in json.loads(reply)["error"]["message"]


@pytest.mark.parametrize("client", PATHS)
def test_a_reply_that_the_server_refused_is_read_or_asked_again(client: WireName) -> None:
    """llama.cpp answers 500 with the rest of the reply; see llama.cpp#23838."""
    message = f"Failed to parse input at pos 0: {written('hermes', path='a')}"
    refused = whole({"error": {"code": 500, "message": message, "type": "server_error"}}, 500)
    with fake_upstream(refused) as upstream, gateway(settings(upstream.url, "auto")) as url:
        status, reply, _ = ask(url, request(client), client)
        assert (status, read(reply, client).calls) == (200, [("read_file", {"path": "a"})])


def test_several_system_messages_are_one_and_a_later_one_is_the_users() -> None:
    said = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": "Hi"},
        {"role": "system", "content": "The date changed."},
    ]
    with fake_upstream(stream("Hello.")) as upstream, gateway(settings(upstream.url)) as url:
        ask(url, {**request(), "tools": [], "messages": said})
    [body] = upstream.bodies
    assert [(m["role"], m["content"]) for m in body["messages"]] == [
        ("system", "Be brief.\n\nBe kind."),
        ("user", "Hi\n\nThe date changed."),
    ]


def test_json_is_asked_for_in_words_where_the_upstream_has_no_such_mode() -> None:
    body = {**request(), "response_format": {"type": "json_object"}}
    with (
        fake_upstream(stream('{"lines": 3}', wire="messages")) as upstream,
        gateway(settings(upstream.url, "auto", "messages")) as url,
    ):
        assert read(ask(url, body)[1]).text == '{"lines": 3}'
    [sent] = upstream.bodies
    assert "output_config" not in sent
    assert "one JSON value" in sent["system"]


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_thinking_of_a_chat_server_comes_back_from_a_client_of_messages(streamed: bool) -> None:
    thinks = {"reasoning_content": "It is in notes.txt."}
    answer = chat_whole("On Thursday.")
    answer["choices"][0]["message"] |= thinks
    events = [chunk(thinks), *chat_stream(["On ", "Thursday."])]
    answers = (chunked(*events) if streamed else whole(answer)), whole(chat_whole("Yes."))
    said: Any = [{"role": "user", "content": "When is it?"}]
    asked: Any = {"model": "m", "max_tokens": 100}
    with (
        fake_upstream(*answers) as upstream,
        gateway(settings(upstream.url, "auto")) as url,
        anthropic.Anthropic(base_url=url, api_key="k") as client,
    ):
        if streamed:
            with client.messages.stream(messages=said, **asked) as stream:
                reply = stream.get_final_message()
        else:
            reply = client.messages.create(messages=said, **asked)
        said += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": "Sure?"}]
        client.messages.create(messages=said, **asked)
    assert upstream.bodies[1]["messages"][1] == {"role": "assistant", "content": "On Thursday.", **thinks}


def test_an_empty_conversation_is_refused() -> None:
    """A result without its call is not sent; a request of nothing else has no message left."""
    orphan = [{"role": "tool", "tool_call_id": "call_9", "content": "17"}]
    with fake_upstream() as upstream, gateway(settings(upstream.url)) as url:
        status, reply, _ = ask(url, {**request(), "tools": [], "messages": orphan})
    assert (status, upstream.requests) == (400, [])
    assert "the conversation is empty" in json.loads(reply)["error"]["message"]


def test_the_log_has_the_calls_in_text_and_the_error_in_which_a_stream_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    cut_off = chunked(*chat_stream(["Hello ", "there"])[:-3], cut=True)
    with (
        fake_upstream(stream(written(path="a")), cut_off) as upstream,
        gateway({**settings(upstream.url), "log": str(log)}) as url,
    ):
        for _ in range(2):
            ask(url, request("messages"), "messages")
        until(lambda: log.read_text().count("\n") == 2)
    first, second = map(json.loads, log.read_text().splitlines())
    assert (first["recovered"], first["format"], "client_left" in first) == (1, "xml", False)
    assert (second["status"], second["error"], "client_left" in second) == (200, "upstream_interrupted", False)
