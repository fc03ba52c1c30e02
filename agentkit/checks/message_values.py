"""Calls, images and files as an author passes them: checks, and their bytes as text. Knows no provider and no part."""

from __future__ import annotations

import re
from base64 import b64encode
from os import PathLike
from typing import Any, Final

from agentkit.errors import ConfigError, show_value

_IMAGE_TYPE: Final = r"image/[\w.+-]+"  # compiled on first use: most programs that import this use no images
_FILE_TYPE: Final = r"(text|application|audio|video)/[\w.+-]+"
_ADDRESS: Final = r"(?i:(?!data:|file:)[a-z][\w.+-]*:\S)"
_IMAGE_DATA: Final = r"(?i:data:image/[\w.+-]+;base64,[A-Za-z0-9+/])"
_BASE64: Final = r"[A-Za-z0-9+/\s]{24,}={0,2}\s*"
_OPENED: Final = (
    *((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif")),
    (b"%PDF-", "application/pdf"),
)
"""The first bytes of each kind of file. Source: PNG 3rd edition, 5.2; JPEG, B.1.1.3; GIF 89a, 17; PDF 1.7, 7.5.2."""
_FROM_FILE: Final = {
    "ImagePart": "for a file write ImagePart(Path('chart.png').read_bytes())",
    "FilePart": "for a file write FilePart.from_path('report.pdf')",
}


class EncodedContent:
    """Bytes with their type, or a URL."""

    __slots__ = ()

    data: bytes | None
    media_type: str
    url: str | None

    def __repr__(self) -> str:  # bytes would fill pages of a log
        shown = {name: getattr(self, name) for name in self.__dataclass_fields__}  # type: ignore[attr-defined]
        given = [f"{name}={value!r}" for name, value in shown.items() if value and name != "data"]
        size = [] if self.data is None else [f"<{len(self.data):,} bytes>"]
        return f"{type(self).__name__}({', '.join([*size, *given])})"

    @property
    def base64(self) -> str:
        """`data` in base64."""
        return b64encode(self.data or b"").decode("ascii")

    @property
    def data_url(self) -> str:
        """The content as a URL: `url` itself, or `data` as a data URL."""
        return self.url if self.url is not None else f"data:{self.media_type};base64,{self.base64}"


def check_image(data: Any, media_type: Any, url: Any) -> None:
    """Refuse what is not one image.

    Raises:
        ValueError: neither or both of data and URL, or one of them is wrong.
    """
    _check_source("ImagePart", data, url, f"{_ADDRESS}|{_IMAGE_DATA}", "'https://…'), or 'data:image/png;base64,…',")
    if data is None:
        return
    if not isinstance(media_type, str) or not re.fullmatch(_IMAGE_TYPE, media_type):
        raise ValueError(f"ImagePart(media_type=…) expects a type such as 'image/png', found {show_value(media_type)}")
    kind = next((kind for head, kind in _OPENED if data.startswith(head)), media_type)
    if kind == "application/pdf":
        raise ValueError("ImagePart(data=…): the bytes are a PDF file: use FilePart")
    if kind != media_type:
        raise ValueError(
            f"ImagePart(media_type={media_type!r}): the bytes are of a different type; write media_type={kind!r}"
        )


def check_file(data: Any, media_type: Any, url: Any, name: Any) -> None:
    """Refuse what is not one document, audio or video.

    Raises:
        ValueError: neither or both of data and URL, or one of them is wrong; or the type or the name is.
    """
    _check_source("FilePart", data, url, _ADDRESS, "'https://…'),")
    if isinstance(media_type, str) and media_type.startswith("image/"):
        raise ValueError(f"FilePart(media_type={media_type!r}) is an image: use ImagePart")
    if not isinstance(media_type, str) or not re.fullmatch(_FILE_TYPE, media_type):
        raise ValueError(
            f"FilePart(media_type=…) expects a type such as 'application/pdf', 'text/plain', 'audio/mpeg' or "
            f"'video/mp4', found {show_value(media_type)}"
        )
    if not isinstance(name, str):
        raise ValueError(f"FilePart(name=…) expects the file's name, found {show_value(name)}")
    # readers look for it in the first 1,024 bytes. Source: PDF 1.7 reference, appendix H, note 13
    if data is not None and media_type == "application/pdf" and b"%PDF-" not in data[:1024]:
        raise ValueError(
            "FilePart(data=…): the bytes are no PDF file: pass their type, such as media_type='text/plain', or write "
            "FilePart.from_path('notes.txt')"
        )


_TYPES: Final = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".md": "text/markdown",
    ".wav": "audio/wav",
}
"""Those that Python does not know everywhere, or by another name."""


def text_in(data: bytes | None, media_type: str) -> str | None:
    """The text of a file whose type is a text's, bytes that are not UTF-8 replaced; None for any other file."""
    if data is None or not (media_type.startswith("text/") or media_type == "application/json"):
        return None
    return data.decode("utf-8-sig", "replace")


def type_of(name: object) -> str | None:
    """The MIME type that belongs to a file's name or to a URL; None if none does."""
    from mimetypes import guess_type
    from pathlib import PurePosixPath
    from urllib.parse import urlsplit

    if not isinstance(name, str) or not name:
        return None
    path = PurePosixPath(urlsplit(name).path if "://" in name else name)
    return _TYPES.get(path.suffix.lower()) or guess_type(path.name)[0]


def read_file(path: str | PathLike[str]) -> tuple[bytes, str, None, str]:
    """The arguments of a `FilePart` for a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is empty, or its name belongs to no type.
    """
    from pathlib import Path

    file = Path(path)
    data, kind = file.read_bytes(), type_of(file.name)
    if not data:
        raise ValueError(f"the file {str(path)!r} is empty")
    if kind is None:
        raise ValueError(f"{file.name!r} does not say its type: write FilePart(Path(…).read_bytes(), media_type='…')")
    return data, kind, None, file.name


def _check_source(owner: str, data: Any, url: Any, addresses: str, examples: str) -> None:
    from_file = _FROM_FILE[owner]
    if (data is None) == (url is None):
        raise ValueError(f"{owner} takes either data=<bytes> or url=<URL>")
    if data is None and not (isinstance(url, str) and re.match(addresses, url)):
        raise ValueError(
            f"{owner}(url=…) expects a URL that the provider can fetch ({examples} found {show_value(url)}: {from_file}"
        )
    if data is not None and not isinstance(data, bytes):
        hint = f"{from_file}, for a URL {owner}(url='https://…')"
        if isinstance(data, str) and (data.startswith("data:") or "://" in data[:20]):
            hint = f"pass a URL as url: {owner}(url='…')"
        elif isinstance(data, str) and re.fullmatch(_BASE64, data):
            hint = f"decode base64 first: {owner}(base64.b64decode(…))"
        elif isinstance(data, bytearray | memoryview):
            hint = f"write {owner}(bytes(…))"
        what = "image's" if owner == "ImagePart" else "file's"
        raise ValueError(f"{owner}(data=…) expects the {what} bytes, found {show_value(data)}: {hint}")
    if data == b"":
        raise ValueError(f"{owner}(data=b'') is empty: {from_file}")


def refuse_call(id: Any, name: Any, arguments: Any) -> None:
    """Refuse arguments of a `ToolCall` that were passed in the wrong order.

    Raises:
        ConfigError: they are of other types.
    """
    if isinstance(arguments, str):
        raise ConfigError(
            f"ToolCall(id, name, arguments): arguments is a mapping of names to values, found {show_value(arguments)}; "
            "for JSON text, pass json.loads(arguments)"
        )
    if not isinstance(id, str) or not isinstance(name, str):
        raise ConfigError(
            f"ToolCall(id, name, arguments): id and name are strings, found {id!r:.60} and {show_value(name)}; the id "
            "may be empty: ToolCall('', 'add', {'a': 1})"
        )
