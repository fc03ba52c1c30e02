"""The text of PDF files: pages, what is cut, and what cannot be read."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

import pytest
from small_pdf import pdf

from agentkit import ConfigError
from agentkit_tools.folder.textfiles import MAX_BYTES, MAX_CHARACTERS
from agentkit_tools.pdf import Pdf


def encrypted(content: bytes, password: str) -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(BytesIO(content)))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.fixture
def tool(tmp_path: Path) -> Pdf:
    (tmp_path / "report.pdf").write_bytes(pdf("Revenue 2026", "", "Outlook"))
    return Pdf(tmp_path)


def test_each_page_begins_with_its_number(tool: Pdf) -> None:
    assert tool.read_pdf("report.pdf").text == (
        "[page 1]\nRevenue 2026\n\n[page 2]\n(no text)\n\n[page 3]\nOutlook\n\n[end of page 3 of 3]"
    )


def test_some_pages(tool: Pdf) -> None:
    assert tool.read_pdf("report.pdf", 3).text == "[page 3]\nOutlook\n\n[end of page 3 of 3]"
    assert tool.read_pdf("report.pdf", 1, 1).text == "[page 1]\nRevenue 2026\n\n[end of page 1 of 3]"


@pytest.mark.parametrize(("first", "last"), [(0, 0), (4, 0), (2, 1), (1, 4), (-1, 2), (1, -1)])
def test_pages_that_are_not_there(tool: Pdf, first: int, last: int) -> None:
    result = tool.read_pdf("report.pdf", first, last)
    assert result.error == f"'report.pdf' has pages 1-3, got first_page={first}, last_page={last}"


def test_a_long_file_is_cut_between_pages(tmp_path: Path) -> None:
    (tmp_path / "long.pdf").write_bytes(pdf(*["word " * 8_000] * 3))
    text = Pdf(tmp_path).read_pdf("long.pdf").text
    assert text.endswith("[cut: the file has 3 pages; continue with first_page=2]")
    assert "[page 2]" not in text


def test_a_page_that_is_too_long_is_cut(tmp_path: Path) -> None:
    (tmp_path / "long.pdf").write_bytes(pdf("a" * 90_000))
    text = Pdf(tmp_path).read_pdf("long.pdf").text
    assert text.endswith("a\n[cut: the rest of page 1 is too long for an answer]")
    assert len(text) < MAX_CHARACTERS + 100


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"hello", "'a.pdf' is no PDF file"),
        (pdf("Text")[:200], "'a.pdf' is damaged: "),
        (pdf("", ""), "'a.pdf' has no text on these pages: they are pictures, such as scans"),
        (encrypted(pdf("Secret"), "x"), "'a.pdf' is encrypted, and opens only with a password"),
        (pdf("Text") + b" " * MAX_BYTES, f"bytes: at most {MAX_BYTES} are read"),
    ],
    ids=["text", "damaged", "scanned", "encrypted", "large"],
)
def test_a_file_without_readable_text(tmp_path: Path, content: bytes, error: str) -> None:
    (tmp_path / "a.pdf").write_bytes(content)
    assert error in (Pdf(tmp_path).read_pdf("a.pdf").error or "")


def test_a_file_that_needs_no_password_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(encrypted(pdf("Open"), ""))
    assert Pdf(tmp_path).read_pdf("a.pdf").text == "[page 1]\nOpen\n\n[end of page 1 of 1]"


@pytest.mark.parametrize("path", ["../report.pdf", "/etc/passwd", "link.pdf", "none.pdf", "folder"])
def test_nothing_outside_the_folder_is_read(tmp_path: Path, path: str) -> None:
    (tmp_path / "report.pdf").write_bytes(pdf("Outside"))
    (tmp_path / "work" / "folder").mkdir(parents=True)
    os.symlink(tmp_path / "report.pdf", tmp_path / "work" / "link.pdf")
    result = Pdf(tmp_path / "work").read_pdf(path)
    assert not result.ok
    assert "Outside" not in result.text


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "report.pdf").write_bytes(pdf("Revenue 2026"))
    with pytest.raises(ConfigError, match=r"report.pdf' is a file: pass the folder that contains it$"):
        Pdf(tmp_path / "report.pdf")
