"""Files in a user's message: their kinds, what is refused at once, and their way through JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agentkit import FilePart, ImagePart
from agentkit.errors import ConfigError, StoreError
from agentkit.messages import ToolMessage, UserMessage, user
from agentkit.models.tokens import message_tokens
from agentkit.tool.codec import from_json, to_json

PDF = b"%PDF-1.7\n1 0 obj"


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("application/pdf", "document"),
        ("text/csv", "document"),
        ("application/vnd.ms-excel", "document"),
        ("audio/mpeg", "audio"),
        ("video/mp4", "video"),
    ],
)
def test_a_file_is_a_document_an_audio_or_a_video(media_type: str, kind: str) -> None:
    assert FilePart(PDF, media_type).kind == kind


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("report.PDF", "application/pdf"),
        ("notes.md", "text/markdown"),
        ("talk.mp3", "audio/mpeg"),
        ("talk.wav", "audio/wav"),
        ("clip.mp4", "video/mp4"),
        ("table.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ],
)
def test_a_file_by_its_path_has_its_name_and_the_type_of_its_name(name: str, media_type: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(PDF)
    assert FilePart.from_path(tmp_path / name) == FilePart(PDF, media_type, name=name)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: FilePart(), "takes either data=<bytes> or url=<URL>"),
        (lambda: FilePart(PDF, url="https://a.example/b.pdf"), "takes either data=<bytes> or url=<URL>"),
        (lambda: FilePart(b""), "is empty: for a file write FilePart.from_path"),
        (lambda: FilePart("report.pdf"), "found str 'report.pdf': for a file write FilePart.from_path"),  # type: ignore[arg-type]
        (lambda: FilePart("data:application/pdf;base64,AAAA"), "pass a URL as url"),  # type: ignore[arg-type]
        (lambda: FilePart("JVBERi0xLjcKMSAwIG9iag==JVBE"), "decode base64|for a file"),  # type: ignore[arg-type]
        (lambda: FilePart(bytearray(PDF)), r"write FilePart\(bytes\(…\)\)"),  # type: ignore[arg-type]
        (lambda: FilePart(url="report.pdf"), "expects a URL that the provider can fetch"),
        (lambda: FilePart(url="data:application/pdf;base64,AAAA"), "expects a URL that the provider can fetch"),
        (lambda: FilePart(url="file:///etc/hosts.txt"), "that the provider can fetch.*write FilePart.from_path"),
        (lambda: FilePart(url="https://a.example/b.png"), "is an image: use ImagePart"),
        (lambda: ImagePart(PDF), "the bytes are a PDF file: use FilePart"),
        (lambda: FilePart(b"\x89PNG\r\n\x1a\n", "image/png"), "is an image: use ImagePart"),
        (lambda: FilePart(PDF, "pdf"), "expects a type such as 'application/pdf'"),
        (lambda: FilePart(PDF, "application/pdf; charset=x"), "expects a type such as"),
        (lambda: FilePart(b"ID3"), "the bytes are no PDF file: pass their type"),
        (lambda: FilePart(PDF, name=Path("a.pdf")), "expects the file's name"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_file_is_refused_where_it_is_written(build: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        build()


def test_a_name_without_a_type_and_a_name_of_an_image_are_refused(tmp_path: Path) -> None:
    for name, words in (("Makefile", "does not say its type"), ("chart.png", "is an image: use ImagePart")):
        (tmp_path / name).write_bytes(b"all:")
        with pytest.raises(ValueError, match=words):
            FilePart.from_path(tmp_path / name)


def test_an_empty_file_and_a_folder_are_named_in_the_error(tmp_path: Path) -> None:
    (tmp_path / "empty.pdf").touch()
    with pytest.raises(ValueError, match=r"the file '.*empty\.pdf' is empty$"):
        FilePart.from_path(tmp_path / "empty.pdf")
    with pytest.raises(IsADirectoryError):
        FilePart.from_path(tmp_path)


def test_the_type_of_a_file_is_that_of_its_name_or_url_unless_it_is_passed() -> None:
    assert FilePart(url="https://a.example/b.mp3?size=1").media_type == "audio/mpeg"
    assert FilePart(b"a,b", name="b.csv").media_type == "text/csv"
    assert FilePart(url="https://a.example/b").media_type == "application/pdf"
    assert FilePart(url="https://a.example/b.mp3", media_type="audio/wav").media_type == "audio/wav"


def test_a_part_is_shown_without_its_bytes() -> None:
    file = FilePart(PDF * 1_000, name="a.pdf")
    assert repr(file) == "FilePart(<16,000 bytes>, media_type='application/pdf', name='a.pdf')"
    assert repr(ImagePart(url="https://a.example/c.png")) == (
        "ImagePart(media_type='image/png', url='https://a.example/c.png')"
    )


def test_names_of_other_toolkits_are_explained() -> None:
    with pytest.raises(ConfigError, match=r"no argument 'path': read a file by its path: FilePart.from_path"):
        FilePart(path="report.pdf")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="did you mean 'media_type'"):
        FilePart(PDF, mime_type="application/pdf")  # type: ignore[call-arg]


def test_a_tool_returns_no_file() -> None:
    with pytest.raises(ConfigError, match=r"expects strings and parts \(TextPart, ImagePart\), found FilePart"):
        ToolMessage("call_1", "read", (FilePart(PDF),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "part",
    [
        FilePart(PDF, name="a.pdf"),
        FilePart(bytes(range(256)) * 40_000, "audio/wav"),
        FilePart(url="https://a.example/b"),
    ],
)
def test_a_file_comes_back_from_json_as_it_was(part: FilePart) -> None:
    message = user("Read this", part, ImagePart(url="https://a.example/c.png"))
    assert from_json(to_json(message)) == message


def test_a_file_in_the_stored_answer_of_a_tool_is_damage() -> None:
    file = to_json(UserMessage(FilePart(PDF)))["content"]
    with pytest.raises(StoreError, match="unknown part 'file'"):
        from_json({"role": "tool", "call_id": "1", "name": "read", "content": file})


def test_a_file_counts_by_its_size() -> None:
    assert message_tokens(user(FilePart(b"%PDF-" + b"0" * 50_000))) == 4 + 2_000
    assert message_tokens(user(FilePart(b"word " * 1_000, "text/plain"))) == message_tokens(user("word " * 1_000))
    assert message_tokens(user(FilePart(url="https://a.example/b.pdf"))) == 4 + 2_000
