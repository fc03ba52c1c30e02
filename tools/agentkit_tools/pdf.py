"""The text of PDF files in one folder: `Pdf`. Knows agentkit's public API and the folder; `pypdf` reads the files."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from agentkit import Tool, ToolResult, openapi_schema, xml_schema
from agentkit.errors import install_command
from agentkit_tools.folder.rooted_folder import Refusal, RootedFolder, answer, parts
from agentkit_tools.folder.textfiles import MAX_CHARACTERS, read_file


class Pdf(Tool):
    """Reads the text of PDF files in one folder, and reaches nothing outside it, as `Files`.

    A file has at most 10 MB, an answer at most 80,000 characters. Only text is read, no pictures: a model that sees
    pages can be given the file itself (`agentkit.FilePart`). Needs the extra `agentkit-calls[pdf]`.

    Args:
        root: the folder, by default the current one; created if missing.
    """

    def __init__(self, root: str | Path = ".") -> None:
        self._place = RootedFolder(root, ())

    @openapi_schema(timeout=60)
    @xml_schema(name="read-pdf", attributes=["file_path", "first_page", "last_page"])
    def read_pdf(self, file_path: str, first_page: int = 1, last_page: int = 0) -> ToolResult:
        """Read the text of a PDF file. Each page begins with its number; a note at the end says what is missing.

        Args:
            file_path: path relative to the working folder
            first_page: the first page to read, counted from 1
            last_page: the last page to read; 0 for the end of the file
        """
        return answer(lambda: self._read(file_path, first_page, last_page))

    def _read(self, path: str, first: int, last: int) -> str:
        names = parts(path)
        with self._place.folder(names) as folder:
            file = read_file(folder, names[-1], path)
        if file.size > len(file.content):
            raise Refusal(f"{path!r} has {file.size} bytes: at most {len(file.content)} are read")
        pages = _pages(file.content, path)
        end = last or len(pages)
        if not 1 <= first <= end <= len(pages):
            raise Refusal(f"{path!r} has pages 1-{len(pages)}, got first_page={first}, last_page={last}")
        return _marked([_text(pages[n - 1], path, n) for n in range(first, end + 1)], path, first, len(pages))


def _pages(content: bytes, path: str) -> Any:
    try:
        from pypdf import PdfReader
    except ImportError as e:
        raise Refusal(f"reading PDF files needs pypdf: the operator must run {install_command('pdf')}") from e
    if b"%PDF-" not in content[:1024]:
        raise Refusal(f"{path!r} is no PDF file")
    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Refusal(f"{path!r} is encrypted, and opens only with a password")
        return [*reader.pages]
    except Exception as e:  # a damaged file raises anything
        raise e if isinstance(e, Refusal) else Refusal(f"{path!r} is damaged: {type(e).__name__}: {e}") from e


def _text(page: Any, path: str, number: int) -> str:
    try:
        return str(page.extract_text()).strip()
    except Exception as e:  # as above
        raise Refusal(f"page {number} of {path!r} is damaged: {type(e).__name__}: {e}") from e


def _marked(texts: list[str], path: str, first: int, total: int) -> str:
    """The pages, each after its number, as many as fit into one answer."""
    if not any(texts):
        raise Refusal(f"{path!r} has no text on these pages: they are pictures, such as scans")
    shown = ""
    for number, text in enumerate(texts, first):
        page = f"[page {number}]\n{text or '(no text)'}\n\n"
        if len(shown) + len(page) > MAX_CHARACTERS:
            if shown:
                return f"{shown}[cut: the file has {total} pages; continue with first_page={number}]"
            return f"{page[:MAX_CHARACTERS]}\n[cut: the rest of page {number} is too long for an answer]"
        shown += page
    return f"{shown}[end of page {number} of {total}]"
