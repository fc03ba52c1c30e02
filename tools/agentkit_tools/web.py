"""Pages of the web as Markdown: `Web`. Knows agentkit's public API, the HTTP client and the readers of pages."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from agentkit import Tool, ToolResult, openapi_schema, xml_schema
from agentkit.errors import ConfigError, install_command
from agentkit.messages import ImagePart
from agentkit_tools.network.addresses import Guard, RequestFailed, Resolve, checked_url
from agentkit_tools.network.http_client import MAX_BYTES, HttpClient, Key, Response

if TYPE_CHECKING:
    import ssl

MAX_CHARACTERS: Final = 40_000  # of one part: about 10,000 tokens, half of what a file's answer may have
KEPT: Final = 8  # pages, so that their next parts are not requested again
KEPT_FOR: Final = 300.0  # seconds
LATE: Final = 5.0  # seconds after the deadline in which reading must have stopped; parsing 10 MB takes 2

HTML: Final = frozenset(("text/html", "application/xhtml+xml"))
XML: Final = frozenset(
    ("text/xml", "application/xml", "application/rss+xml", "application/atom+xml", "application/rdf+xml")
)
IMAGES: Final = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""What models look at."""
_TEXT = re.compile(r"text/|application/(?:[\w.-]+\+)?(?:json|xml|yaml|toml|javascript|ecmascript|x-sh|x-ndjson|sql)\b")
_MAGIC: Final = {
    b"%PDF": "application/pdf",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"PK\x03\x04": "application/zip",
    b"\x1f\x8b": "application/gzip",
    b"\x7fELF": "a program",
}

ReaderName = Literal["jina", "crawl4ai"]


class Page(NamedTuple):
    """A page that was read: its address, its title and its text, with remarks for the model."""

    url: str
    title: str
    text: str
    remarks: tuple[str, ...] = ()


class Web(Tool):
    """Reads pages of the web as Markdown. Nothing on a page is executed, and only global addresses are reached.

    A host is resolved, its addresses are judged (`agentkit_tools.network.addresses.Guard`), and the connection is made
    to the judged address; each of at most five redirects is judged again. No proxy and nothing else of the environment
    is used. Dropped from a page: scripts, styles, comments, templates, what is hidden by `hidden` or by an inline
    style, images without a description; and, unless `whole` is set, menus, headers and footers.

    Args:
        allow: IP addresses and networks that may be reached although they are not global, such as `10.1.0.0/16` of an
            intranet.
        reader: a service that fetches and reads pages instead, and executes their scripts: `jina` (its key from
            `JINA_API_KEY`, if set) or `crawl4ai` (needs `service_url`; its key from `CRAWL4AI_API_KEY`, if set). The
            service resolves names again and opens the connections: keep it from internal addresses as well.
        service_url: the address of the reader's service.
        timeout: seconds for fetching a page, with all redirects and retries; and seconds for reading the response: of a
            page that takes longer, the model gets what was read until then, with a note.
        max_bytes: of a page, after decompression; the rest is cut off, with a note for the model.
        max_characters: of one answer; a longer page is read in parts.
        resolve: finds a host's IP addresses; by default the operating system.
        ssl_context: verifies certificates; by default what the operating system trusts.

    Raises:
        ConfigError: an argument is wrong.
    """

    def __init__(
        self,
        *,
        allow: Collection[str] = (),
        reader: ReaderName | None = None,
        service_url: str | None = None,
        timeout: float = 30.0,
        max_bytes: int = MAX_BYTES,
        max_characters: int = MAX_CHARACTERS,
        resolve: Resolve | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        if reader not in (None, *READERS):
            raise ConfigError(f"Web(reader={reader!r}): expected one of {', '.join(READERS)}, or None")
        if reader == "crawl4ai" and service_url is None:
            raise ConfigError("Web(reader='crawl4ai') needs service_url=, the address of your crawl4ai server")
        if max_characters < 200:
            raise ConfigError(f"Web(max_characters={max_characters}): expected 200 or more")
        self._guard = Guard(allow, resolve)
        self._client = HttpClient(
            guard=None if reader else self._guard,
            timeout=timeout,
            max_bytes=max_bytes,
            redirects=0 if reader else 5,
            ssl_context=ssl_context,
        )
        self._max_characters = max_characters
        self._by_service = reader is not None
        self._read: Callable[[str, bool], Awaitable[Page | ToolResult]] = self._direct
        if reader is not None:
            self._read = READERS[reader](self._client, service_url).read
        self._kept: OrderedDict[tuple[str, bool], tuple[float, Page]] = OrderedDict()

    @openapi_schema
    @xml_schema(name="fetch-page", attributes=["url", "offset", "whole"])
    async def fetch_page(self, url: str, offset: int = 0, whole: bool = False) -> ToolResult:
        """Read a page of the web as Markdown: its text, links, tables and code.

        A long page comes in parts; a last line in square brackets then says how to continue.

        Args:
            url: the whole address, such as https://example.org/page
            offset: the first character to read, as said at the end of the part before
            whole: also menus, headers and footers of the page
        """
        try:
            page = await self._page(url, whole)
            return page if isinstance(page, ToolResult) else ToolResult(output=self._part(page, offset))
        except RequestFailed as e:
            return e.result

    async def _page(self, url: str, whole: bool) -> Page | ToolResult:
        checked = str(checked_url(url))
        now = time.monotonic()
        since, page = self._kept.get((checked, whole), (0.0, None))
        if page is not None and now - since < KEPT_FOR:
            return page
        if self._by_service:
            await self._refuse_url(checked)
        read = await self._read(checked, whole)
        if isinstance(read, Page):
            self._kept[checked, whole] = now, read
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return read

    async def _refuse_url(self, url: str) -> None:
        """Refuse a URL that a service must not be asked for. A name unknown here may be known to the service."""
        import httpx2

        parsed = httpx2.URL(url)
        try:
            await self._guard.addresses(parsed.host, parsed.port or 443)
        except RequestFailed as e:
            if e.code == "denied":
                raise

    def _part(self, page: Page, offset: int) -> str:
        """One part of a page, cut at a line's end where possible."""
        text = page.text
        if offset < 0 or (offset and offset >= len(text)):
            raise RequestFailed(f"offset={offset} is not within the page, which has {len(text)} characters")
        end = offset + self._max_characters
        if end < len(text):
            end = max(text.rfind("\n", offset + self._max_characters // 2, end) + 1, 0) or end
        head = [f"{name}: {value}" for name, value in (("Title", page.title), ("Address", page.url)) if value]
        notes = list(page.remarks)
        if offset or end < len(text):
            more = f"; continue with offset={end}" if end < len(text) else ", the end"
            notes.append(f"characters {offset} to {min(end, len(text))} of {len(text)}{more}")
        body = text[offset:end].strip("\n") or "(no text)"
        return "\n".join([*head, "", body, *(f"\n[{note}]" for note in notes)])

    async def _direct(self, url: str, whole: bool) -> Page | ToolResult:
        import anyio.to_thread

        response = await self._client.request("GET", url, headers=ACCEPT, check=_readable)
        kind = sniff_type(response)
        if kind in IMAGES:
            return _image(response, kind)
        if "\0" in kind or not (kind in HTML or _TEXT.match(kind)):
            raise _refusal(kind, response)
        until = time.monotonic() + self._client.timeout
        with anyio.move_on_after(self._client.timeout + LATE):
            # If it does not stop by itself, its thread is left alone.
            read = partial(read_page, response, kind, whole, lambda: time.monotonic() > until)
            return await anyio.to_thread.run_sync(read, abandon_on_cancel=True)
        raise RequestFailed(
            f"the page at {response.shown_url}, of {len(response.body)} bytes, could not be read within "
            f"{self._client.timeout:g} seconds",
            code="timeout",
        )


ACCEPT: Final[Mapping[str, str]] = {
    "Accept": "text/html, application/xhtml+xml, text/markdown, text/plain, application/json;q=0.9, */*;q=0.5"
}


def sniff_type(response: Response) -> str:
    """Return the type of a body: as declared, unless its first bytes show another one."""
    start = response.body[:512]
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            return kind
    declared = response.media_type
    utf16 = start.startswith((b"\xff\xfe", b"\xfe\xff")) or "utf-16" in response.headers.get("content-type", "").lower()
    if b"\0" in start and not utf16 and start.count(b"\0") > len(start) // 20:
        return "binary data" if declared in ("", "text/plain") or declared in HTML else f"{declared}, binary"
    if declared in ("", "application/octet-stream", "text/plain"):
        looks = re.match(rb"(?i)\s*(?:<!doctype html|<html[\s>]|<\?xml)", start) is not None
        unknown = declared != "text/plain"
        return "text/html" if looks and unknown else "text/plain"
    return declared


def _readable(response: Response) -> None:
    """Refuse by its declared type a body that would be refused after reading it."""
    kind = response.media_type
    if kind and kind not in HTML | IMAGES | {"application/octet-stream"} and not _TEXT.match(kind):
        raise _refusal(kind, response)


def _refusal(kind: str, response: Response) -> RequestFailed:
    size = response.headers.get("content-length", "")
    length = f" of {size} bytes" if size.isdigit() else ""
    return RequestFailed(f"{response.url} is not a page but a file{length} of the type {kind}, which is not read here")


def _image(response: Response, kind: str) -> ToolResult:
    if response.cut:
        raise RequestFailed(f"the image at {response.url} has more than the {len(response.body)} bytes that are read")
    said = f"Address: {response.shown_url}\n{kind}, {len(response.body)} bytes"
    image = ImagePart(response.body, kind).repaired_image if response.body else None
    if image is None or (fault := image.fault):
        raise RequestFailed(f"the image at {response.url} cannot be shown: {'it is empty' if image is None else fault}")
    return ToolResult(output=said, content=(image,))


def read_page(response: Response, kind: str, whole: bool, late: Callable[[], bool]) -> Page:
    """A response's text. Runs in a thread: a page of 10 MB takes seconds."""
    try:
        from agentkit_tools.pages.feeds import feed_text
        from agentkit_tools.pages.page_source import MAX_PIECES, decode_page, truncate
        from agentkit_tools.pages.page_text import page_text
    except ImportError as e:
        raise RequestFailed(f"reading pages needs lxml: the operator must run {install_command('web')} ({e})") from e
    text = decode_page(response.body, response.headers.get("content-type", ""), cut=response.cut)
    remarks = [f"only the first {len(response.body)} bytes of the page were read"] if response.cut else []
    if kind in HTML | XML and len(few := truncate(text)) < len(text):
        remarks.append(f"only the first {MAX_PIECES} tags and attributes of the page were read")
        text = few
    found = feed_text(text, response.url, late) if kind in XML or "<?xml" in text[:100] else None
    if found is None and kind in HTML:
        found = page_text(text, response.url, whole=whole, late=late)
    if found is None:
        return Page(response.shown_url, "", text.replace("\r\n", "\n"), tuple(remarks))
    if found.stopped:
        remarks.append("reading the page took too long: the rest is missing")
    if found.unlinked:
        remarks.append(f"{found.unlinked} links have no address here: those of the page are too long together")
    if found.omitted:
        remarks.append(f"left out: {found.omitted}; whole=true shows everything")
    return Page(response.shown_url, found.title, found.text, tuple(remarks))


# Services that read pages


class JinaReader:
    """Reads pages by Jina's service, or another one with its interface."""

    def __init__(self, client: HttpClient, service_url: str | None) -> None:
        self._client = client
        self._url = (service_url or "https://r.jina.ai").rstrip("/")
        self._key = Key("JINA_API_KEY", "Authorization", before="Bearer ")

    async def read(self, url: str, whole: bool) -> Page:
        """Request a page's text.

        Raises:
            RequestFailed: the service did not give it.
        """
        headers = {"Accept": "application/json", "X-Return-Format": "markdown"}
        answer = await self._client.request("GET", f"{self._url}/{url}", headers=headers, key=self._key)
        match answer.json():
            case {"data": {"content": str(text), **data}}:
                return Page(str(data.get("url") or url), str(data.get("title") or ""), text)
        raise RequestFailed("the reader's answer has no data.content")


class Crawl4aiReader:
    """Reads pages by a crawl4ai server."""

    def __init__(self, client: HttpClient, service_url: str | None) -> None:
        self._client = client
        self._url = (service_url or "").rstrip("/")
        self._key = Key("CRAWL4AI_API_KEY", "x-api-key")

    async def read(self, url: str, whole: bool) -> Page:
        """Request a page's text.

        Raises:
            RequestFailed: the service did not give it.
        """
        crawl = {"type": "CrawlerRunConfig", "params": {"cache_mode": "bypass"}}
        body = {"urls": [url], "browser_config": {"type": "BrowserConfig", "params": {}}, "crawler_config": crawl}
        answer = await self._client.request("POST", f"{self._url}/crawl", body=body, key=self._key)
        match answer.json():
            case {"results": [{"success": False, **failed}, *_]}:
                raise RequestFailed(
                    f"the reader could not read {url}: {failed.get('error_message') or 'no reason given'}"
                )
            case {"results": [{"markdown": markdown, **page}, *_]}:
                return Page(str(page.get("url") or url), _title_of(page), _markdown_of(markdown, whole))
        raise RequestFailed("the reader's answer has no results")


def _title_of(page: Mapping[Any, Any]) -> str:
    metadata = page.get("metadata")
    return str(metadata.get("title") or "") if isinstance(metadata, Mapping) else ""


def _markdown_of(markdown: Any, whole: bool) -> str:
    """The text in a crawl4ai answer: a string in old versions, else the main part or the whole page."""
    if isinstance(markdown, str):
        return markdown
    if isinstance(markdown, Mapping):
        names = ("raw_markdown", "fit_markdown") if whole else ("fit_markdown", "raw_markdown")
        return next((str(markdown[name]) for name in names if markdown.get(name)), "")
    raise RequestFailed("the reader's answer has no markdown")


READERS: Final[Mapping[str, type[JinaReader] | type[Crawl4aiReader]]] = {"jina": JinaReader, "crawl4ai": Crawl4aiReader}
