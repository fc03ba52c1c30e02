"""Files on each wire: what is sent, and what is refused before anything is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from streams import events_of

from agentkit import Agent, FilePart, first_of
from agentkit.agent import dicts_from, messages_from
from agentkit.errors import ConfigError
from agentkit.messages import AssistantMessage, Message, user
from agentkit.models import model
from agentkit.models.files_taken import FilesTaken, check_files, check_model_files
from agentkit.testing import Replay, ScriptedModel
from agentkit.threads import ThreadManager
from models.test_requests import ANSWERS

PDF = FilePart(b"%PDF-1.7", name="a.pdf")
CSV = FilePart("größe,1\n".encode(), "text/csv", name="b.csv")
WAV = FilePart(b"RIFF", "audio/wav")
MP3 = FilePart(b"ID3", "audio/mpeg")
OGG = FilePart(b"OggS", "audio/ogg")
VIDEO = FilePart(b"\0\0\0 ftyp", "video/mp4")
DOCX = FilePart(b"PK", "application/vnd.openxmlformats-officedocument.wordprocessingml.document")
LINK = FilePart(url="https://a.example/b.pdf")
CLIP = FilePart(url="https://a.example/b.mp4", media_type="video/mp4")
URL = "data:application/pdf;base64,JVBERi0xLjc="


def sent(prefix: str, *parts: FilePart, **settings: Any) -> list[dict[str, Any]]:
    """The content parts that these files become."""
    tape = Replay([ANSWERS[prefix]])
    events_of(tape.model(f"{prefix}:m", **settings), [user("Read", *parts)])
    body = tape.requests[0]
    return body["input" if prefix == "responses" else "messages"][0]["content"][1:]  # type: ignore[no-any-return]


def test_files_for_chat_completions() -> None:
    assert sent("openai", PDF, WAV, MP3, CSV) == [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": URL}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
        {"type": "text", "text": "b.csv:\n\ngröße,1\n"},
    ]


def test_files_for_responses() -> None:
    assert sent("responses", PDF, LINK, FilePart(b"a", "text/plain")) == [
        {"type": "input_file", "filename": "a.pdf", "file_data": URL},
        {"type": "input_file", "file_url": "https://a.example/b.pdf"},
        {"type": "input_file", "filename": "document.txt", "file_data": "data:text/plain;base64,YQ=="},
    ]


def test_files_for_anthropic() -> None:
    assert sent("anthropic", PDF, LINK, CSV) == [
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjc="},
            "title": "a.pdf",
        },
        {"type": "document", "source": {"type": "url", "url": "https://a.example/b.pdf"}},
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "größe,1\n"},
            "title": "b.csv",
        },
    ]


@pytest.mark.parametrize("server", ["vllm", "sglang"])
def test_files_for_servers_that_take_audio_and_video(server: str) -> None:
    assert sent("openai", OGG, CLIP, base_url="http://127.0.0.1:1/v1", server=server) == [
        {"type": "audio_url", "audio_url": {"url": "data:audio/ogg;base64,T2dnUw=="}},
        {"type": "video_url", "video_url": {"url": "https://a.example/b.mp4"}},
    ]


def test_text_mode_passes_files_to_the_model() -> None:
    assert sent("openai", PDF, format="hermes") == sent("openai", PDF)


@pytest.mark.parametrize(
    ("prefix", "file", "settings", "words"),
    [
        (
            "openai",
            VIDEO,
            {},
            "openai:m: takes no video (video/mp4); it takes documents (application/pdf, text/*, application/json), ",
        ),
        ("openai", OGG, {}, "openai:m: takes no audio (audio/ogg); it takes "),
        ("openai", DOCX, {}, "openai:m: takes no document (application/vnd.openxml"),
        ("openai", LINK, {}, "openai:m: takes no document by URL (application/pdf); it takes "),
        (
            "responses",
            WAV,
            {},
            "responses:m: takes no audio (audio/wav); it takes documents (text/*, ",
        ),
        ("responses", CLIP, {}, "responses:m: takes no video by URL (video/mp4)"),
        (
            "anthropic",
            VIDEO,
            {},
            "(video/mp4); it takes documents (application/pdf, text/*, application/json) and images; by URL ",
        ),
        ("anthropic", DOCX, {}, "anthropic:m: takes no document (application/vnd.openxml"),
        (
            "openai",
            PDF,
            {"server": "vllm"},
            "openai:m: takes no document (application/pdf); it takes documents (text/",
        ),
        ("openai", OGG, {"server": "llamacpp"}, "openai:m: takes no audio (audio/ogg)"),
        ("openai", WAV, {"server": "ollama"}, "openai:m: takes no audio (audio/wav); it takes documents (text/*, "),
        ("openai", VIDEO, {"format": "hermes"}, "openai:m: takes no video (video/mp4)"),
    ],
)
def test_a_file_that_the_api_does_not_take_is_refused_before_sending(
    prefix: str, file: FilePart, settings: dict[str, Any], words: str
) -> None:
    tape = Replay([ANSWERS[prefix]])
    with pytest.raises(ConfigError) as refused:
        events_of(tape.model(f"{prefix}:m", **settings), [user("Look"), AssistantMessage("Yes?"), user("Read", file)])
    assert words in str(refused.value)
    assert tape.requests == []


def test_an_api_without_files_takes_images() -> None:
    with pytest.raises(ConfigError, match=r"m: takes no document \(application/pdf\); it takes images$"):
        check_files("m", [user(PDF)], FilesTaken(()))


# ---------------------------------------------------------------- prompts


def test_files_in_openais_message_dicts_and_back() -> None:
    said: list[Message] = [user("Read", PDF, WAV, MP3)]
    dicts = dicts_from(said)
    assert dicts[0]["content"][1:] == sent("openai", PDF, WAV, MP3)
    assert messages_from(dicts) == [user("Read", PDF, FilePart(b"RIFF", "audio/wav"), FilePart(b"ID3", "audio/mpeg"))]


def test_a_file_is_a_prompt(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    said = ScriptedModel(["It is empty."])
    result = Agent(said).run_sync(["What is this?", FilePart.from_path(tmp_path / "a.pdf")])
    assert result.messages[0] == user("What is this?", PDF)
    assert Agent(ScriptedModel(["Yes."])).run_sync(PDF).messages[0] == user(PDF)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"type": "file", "file": {"file_id": "file-1"}}, "expected a content part of type text, refusal, image_url"),
        ({"type": "file", "file": {"file_data": "JVBERi0="}}, "expected a base64 data URL, found 'JVBERi0='"),
        ({"type": "file", "file": {"file_data": "data:application/pdf;base64,?"}}, "the data URL is not base64"),
        ({"type": "input_audio", "input_audio": {"data": "AA==", "format": "flac"}}, "expected a content part of type"),
    ],
)
def test_a_part_that_is_no_file_is_refused(part: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        messages_from({"role": "user", "content": [part]})


def test_message_dicts_have_no_video() -> None:
    with pytest.raises(ConfigError, match=r"OpenAI's chat messages: takes no video \(video/mp4\)"):
        dicts_from([user(VIDEO)])


def test_a_file_in_a_result_of_a_message_dict_is_refused() -> None:
    calls = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]}
    answer = {"role": "tool", "tool_call_id": "c", "content": [{"type": "file", "file": {"file_data": URL}}]}
    with pytest.raises(ConfigError, match="expects strings and parts"):
        messages_from([calls, answer])


def test_a_model_that_is_asked_says_what_it_takes() -> None:
    with pytest.raises(ConfigError, match="openai:gpt-5: takes no video"):
        Agent(model("openai:gpt-5", api_key="k")).run_sync(["What happens?", VIDEO])


def test_the_log_says_once_in_a_run_that_an_old_file_is_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    def look() -> str:
        """Look."""
        return "seen"

    calls = [{"type": "tool_use", "id": id, "name": "look", "input": {}} for id in "ab"]
    done = {"type": "message", "content": [{"type": "text", "text": "Seen."}], "stop_reason": "end_turn"}
    tape = Replay([*({"type": "message", "content": [one], "stop_reason": "tool_use"} for one in calls), done])
    said: list[Message] = [user("Listen", WAV), AssistantMessage("A song."), user("Look")]
    Agent(tape.model("anthropic:m"), [look]).run_sync(said)
    named = [request["messages"][0]["content"][1] for request in tape.requests]
    assert named == [{"type": "text", "text": "[audio, not shown to you: audio/wav]"}] * 3
    assert caplog.messages == [
        "anthropic:m does not take a file, which is named in words: [audio, not shown to you: audio/wav]"
    ]


def test_a_thread_goes_on_after_a_file_that_was_refused() -> None:
    tape = Replay([{"type": "message", "content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn"}])
    claude = tape.model("anthropic:claude-x")

    async def talk() -> str:
        async with ThreadManager(":memory:") as threads:
            with pytest.raises(ConfigError, match="takes no audio"):
                await threads.say("t", user("Hear", MP3), model=claude)
            return str((await threads.say("t", "Never mind. Hello!", model=claude)).output)

    assert asyncio.run(talk()) == "Hi."
    [message] = tape.requests[0]["messages"]
    assert [part["text"] for part in message["content"]] == [
        "Hear",
        "[audio, not shown to you: audio/mpeg]",
        "Never mind. Hello!",
    ]


def test_a_chain_refuses_what_all_its_models_refuse() -> None:
    claude, gpt, gemini = (model(name, api_key="k") for name in ("anthropic:c", "responses:g", "gemini:g"))
    with pytest.raises(ConfigError, match="responses:g: takes no video"):
        check_model_files(first_of(claude, gpt), [user("Look", VIDEO)])
    check_model_files(first_of(claude, gpt, gemini), [user("Look", VIDEO)])
