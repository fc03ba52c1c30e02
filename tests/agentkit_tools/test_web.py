"""`Web`: pages fetched over real sockets, in parts, of all types, and by the two reading services."""

from __future__ import annotations

import asyncio
import base64
import gzip
import logging
import socket
from pathlib import Path
from typing import Any

import pytest
from site_server import Page, Site, SiteServer

from agentkit import ConfigError, ToolResult
from agentkit.messages import ImagePart
from agentkit_tools.network.http_client import Response
from agentkit_tools.web import Web, read_page

CANARY = "canary-5d20f8"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def fetched(site_map: Site, path: str = "/", web: dict[str, Any] | None = None, **arguments: Any) -> ToolResult:
    with SiteServer(site_map) as site:
        tool = Web(**{"allow": ["127.0.0.1"], "timeout": 5, **(web or {})})
        result = asyncio.run(tool.fetch_page(f"{site.url}{path}", **arguments))
        return ToolResult(
            output=result.output and result.output.replace(site.url, "SITE"),
            error=result.error and result.error.replace(site.url, "SITE"),
            code=result.code,
            content=result.content,
        )


def html(body: str | bytes, kind: str = "text/html", **more: str) -> Page:
    return Page(body if isinstance(body, bytes) else body.encode(), headers={"Content-Type": kind, **more})


def test_a_page_is_read() -> None:
    result = fetched({"/a/b.html": html("<title>Tea</title><h1>Tea</h1><p>See <a href=c.html>more</a>.")}, "/a/b.html")
    assert result.text == "Title: Tea\nAddress: SITE/a/b.html\n\n# Tea\n\nSee [more](SITE/a/c.html)."


def test_links_are_relative_to_where_a_redirect_led() -> None:
    moved = Page(status=301, headers={"Location": "/new/"})
    assert fetched({"/old": moved, "/new/": html("<a href=x>y</a>")}, "/old").text == (
        "Address: SITE/new/\n\n[y](SITE/new/x)"
    )


def test_what_was_left_out_is_said() -> None:
    page = html("<nav>Menu</nav><main><h1>Tea</h1><p>" + "Leaves in hot water. " * 30 + "</main>")
    part, whole = (fetched({"/": page}, whole=whole).text for whole in (False, True))
    assert "Menu" not in part
    assert part.endswith("\n[left out: menus, headers, footers and the like; whole=true shows everything]")
    assert "\n\nMenu\n\n# Tea\n" in whole


def test_a_long_page_is_read_in_parts_and_requested_once() -> None:
    lines = [f"Line {n} of the page." for n in range(100)]
    with SiteServer({"/": html("<p>" + "<p>".join(lines))}) as site:
        web = Web(allow=["127.0.0.1"], max_characters=1000)
        parts: list[str] = []
        offset = 0
        while True:
            text = asyncio.run(web.fetch_page(site.url, offset)).text
            parts += text.split("\n\n", 1)[1].rpartition("\n[")[0].split("\n\n")
            if text.endswith(", the end]"):
                break
            offset = int(text.rpartition("offset=")[2][:-1])
    assert [part.strip() for part in parts if part.strip()] == lines
    assert len(site.visits) == 1


@pytest.mark.parametrize("offset", [-1, 4, 10_000])
def test_an_offset_beyond_the_page_is_refused(offset: int) -> None:
    error = fetched({"/": html("<p>Tea")}, offset=offset).error
    assert error == f"offset={offset} is not within the page, which has 4 characters"


def test_an_empty_page_is_said_to_be_empty() -> None:
    assert fetched({"/": html("")}).text == "Address: SITE/\n\n(no text)"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/plain", "# not a heading\n<b>not bold</b>\n"),
        ("text/markdown; charset=utf-8", "# A\n\n```\n<b>\n```\n"),
        ("application/json", '{"a": [1, "<b>"]}\n'),
        ("text/csv", "a,b\n1,2\n"),
        ("application/vnd.api+json", "{}\n"),
        ("application/xml", "<?xml version='1.0'?>\n<urlset><url>x</url></urlset>\n"),
    ],
)
def test_other_text_is_shown_as_it_is(kind: str, body: str) -> None:
    assert fetched({"/": html(body, kind)}).text == f"Address: SITE/\n\n{body.rstrip()}"


def test_markdown_served_as_plain_text_is_unchanged() -> None:
    readme = (Path(__file__).parent / "pages" / "readme.md").read_text()
    assert fetched({"/": html(readme, "text/plain")}).text == f"Address: SITE/\n\n{readme.rstrip()}"


@pytest.mark.parametrize("kind", ["", "application/octet-stream", "application/xhtml+xml"])
def test_a_page_of_unclear_type_is_read(kind: str) -> None:
    assert fetched({"/": html("<!DOCTYPE html><p>Tea", kind)}).text == "Address: SITE/\n\nTea"


@pytest.mark.parametrize(
    ("kind", "body", "named"),
    [
        ("application/pdf", b"%PDF-1.7", "application/pdf"),
        ("text/html", b"%PDF-1.7", "application/pdf"),  # whatever it is called
        ("video/mp4", b"\0\0\0\x18ftyp", "video/mp4"),
        ("application/zip", b"PK\x03\x04", "application/zip"),
        ("application/octet-stream", b"\x7fELF\2\1", "a program"),
        ("text/plain", b"\0\1\2\3" * 50, "binary data"),
        ("text/html", b"\x1f\x8bx", "application/gzip"),
        ("image/svg+xml", b"<svg/>", "image/svg+xml"),
    ],
)
def test_a_file_is_refused_with_its_type(kind: str, body: bytes, named: str) -> None:
    assert f"is not a page but a file of {len(body)} bytes of the type {named}" in str(
        fetched({"/": html(body, kind)}).error
    )


def test_an_image_is_shown() -> None:
    result = fetched({"/": html(PNG, "image/png")})
    assert result.content == (ImagePart(PNG, "image/png"),)
    assert result.output == "Address: SITE/\nimage/png, 70 bytes"


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        ("image/png", b"<html>no image", "no PNG file"),
        ("image/png", b"", "it is empty"),
        ("image/gif", b"GIF89a", "a damaged file: it ends too early"),
        ("image/png", PNG[:-20], "a damaged file: it ends too early"),
        ("application/octet-stream", b"\xff\xd8\xff\xe0", "a damaged file: it ends too early"),
        ("image/jpeg", b"\xff\xd8\xff\xe0" + bytes(4_000_000), "larger than the 3,750,000 bytes that models read"),
    ],
)
def test_an_image_that_no_provider_would_accept_is_refused(kind: str, body: bytes, why: str) -> None:
    """A provider would refuse the request because of it, and every later one of the conversation."""
    result = fetched({"/": html(body, kind)})
    assert (result.content, str(result.error)) == ((), f"the image at SITE/ cannot be shown: {why}")


def test_a_compressed_page_is_read() -> None:
    page = html(gzip.compress(b"<p>Tea"), **{"Content-Encoding": "gzip"})
    assert fetched({"/": page}).text.endswith("\n\nTea")


def test_links_whose_addresses_have_no_room_are_counted() -> None:
    result = fetched({"/": html("<a href='/" + "a" * 4_000_000 + "'>Tea</a> <a href=/b>Milk</a>")})
    remark = "1 links have no address here: those of the page are too long together"
    assert result.text.endswith(f"\n\n[Tea] [Milk](SITE/b)\n\n[{remark}]")


def test_row_27_a_huge_page_is_cut_and_that_is_said() -> None:
    result = fetched({"/": html("<p>" + "word " * 10_000)}, web={"max_bytes": 1000})
    assert result.text.endswith("\n[only the first 1000 bytes of the page were read]")


def test_row_22_the_machine_itself_is_not_reached() -> None:
    with SiteServer({"/": html("secret")}) as site:
        result = asyncio.run(Web().fetch_page(site.url))
    assert (result.code, site.visits) == ("denied", [])
    assert result.error == "the host '127.0.0.1' is not reachable from here: 127.0.0.1 is a loopback address"


def test_row_28_an_international_host_is_shown() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    with SiteServer({"/": html("<p>x")}) as site:
        web = Web(allow=["127.0.0.1"], resolve=resolve)
        text = asyncio.run(web.fetch_page(f"http://b\xfccher.example:{site.port}/")).text
    assert text.startswith(f"Address: http://xn--bcher-kva.example:{site.port}/ (b\xfccher.example)\n")


def test_a_missing_page_is_an_error() -> None:
    assert fetched({}).error == "127.0.0.1 answered 404 (Not Found)"


def test_the_last_pages_are_kept_and_no_more() -> None:
    with SiteServer({f"/{n}": html(f"<p>{n}") for n in range(9)}) as site:
        web = Web(allow=["127.0.0.1"])
        for path in (*range(9), 8, 0):
            assert asyncio.run(web.fetch_page(f"{site.url}/{path}")).ok
    assert [visit.path for visit in site.visits] == [*(f"/{n}" for n in range(9)), "/0"]


@pytest.mark.parametrize(
    "wrong",
    [{"reader": "lynx"}, {"reader": "crawl4ai"}, {"max_characters": 10}, {"allow": ["intranet"]}, {"timeout": 0}],
)
def test_a_wrong_argument_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Web(**wrong)


# Services that read pages


async def public(host: str, port: int) -> list[str]:
    return [host if host[0].isdigit() else "93.184.215.14"]


def served(answer: Any, reader: str, status: int = 200, **arguments: Any) -> tuple[ToolResult, SiteServer]:
    site_map = {path: Page(answer, status) for path in ("/crawl", "/https://tea.example/")}
    with SiteServer(site_map) as site:
        web = Web(reader=reader, service_url=site.url, timeout=5, resolve=public)  # type: ignore[arg-type]
        return asyncio.run(web.fetch_page("https://tea.example/", **arguments)), site


def test_jina(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JINA_API_KEY", CANARY)
    data = {"title": "Tea", "url": "https://tea.example/", "content": f"# Tea\n\nHot. {CANARY}"}
    result, site = served({"code": 200, "status": 20000, "data": data}, "jina")
    assert result.text == "Title: Tea\nAddress: https://tea.example/\n\n# Tea\n\nHot. [key]"
    headers = site.visits[0].headers
    assert (headers["authorization"], headers["x-return-format"]) == (f"Bearer {CANARY}", "markdown")


def test_jina_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JINA_API_KEY", raising=False)
    result, site = served({"data": {"content": "x"}}, "jina")
    assert result.ok
    assert "authorization" not in site.visits[0].headers


def test_crawl4ai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAWL4AI_API_KEY", CANARY)
    markdown = {"raw_markdown": "Menu\n\n# Tea", "fit_markdown": "# Tea"}
    answer = {
        "success": True,
        "results": [
            {"url": "https://tea.example/", "success": True, "markdown": markdown, "metadata": {"title": "Tea"}}
        ],
    }
    result, site = served(answer, "crawl4ai")
    assert result.text == "Title: Tea\nAddress: https://tea.example/\n\n# Tea"
    assert site.visits[0].body["urls"] == ["https://tea.example/"]
    assert site.visits[0].headers["x-api-key"] == CANARY
    assert "Menu" in served(answer, "crawl4ai", whole=True)[0].text


def test_a_name_that_only_the_service_knows_is_asked_for() -> None:
    async def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    with SiteServer({"/https://tea.example/": Page({"data": {"content": "Tea"}})}) as site:
        web = Web(reader="jina", service_url=site.url, resolve=unknown)
        assert asyncio.run(web.fetch_page("https://tea.example/")).ok


def test_crawl4ai_that_could_not_read() -> None:
    result, _ = served({"results": [{"success": False, "error_message": "net::ERR_NAME"}]}, "crawl4ai")
    assert result.error == "the reader could not read https://tea.example/: net::ERR_NAME"


@pytest.mark.parametrize("reader", ["jina", "crawl4ai"])
@pytest.mark.parametrize("answer", [{}, [], {"data": []}, {"results": []}, {"results": [{"markdown": 5}]}, b"<html>"])
def test_an_answer_of_another_shape_is_an_error(reader: str, answer: Any) -> None:
    assert not served(answer, reader)[0].ok


@pytest.mark.parametrize("reader", ["jina", "crawl4ai"])
def test_row_38_a_reader_s_key_is_in_no_log_and_no_result(
    reader: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("JINA_API_KEY", "CRAWL4AI_API_KEY"):
        monkeypatch.setenv(name, CANARY)
    results = [served({"message": CANARY}, reader, status)[0] for status in (200, 401)]
    assert [result.ok for result in results] == [False, False]
    assert CANARY not in caplog.text + repr(results)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "http://a:b@tea.example/", "ftp://tea.example/", "http://169.254.169.254/"]
)
def test_a_reader_is_not_asked_for_what_is_no_page(url: str) -> None:
    with SiteServer({}) as site:
        result = asyncio.run(Web(reader="jina", service_url=site.url, resolve=public).fetch_page(url))
    assert (result.code, site.visits) == ("denied", [])


def test_a_page_that_takes_too_long_is_read_in_part_and_that_is_said() -> None:
    body = b"<h1>Tea</h1>" + b"<p>Leaves in <b>hot</b> water.</p>\n" * 5_000
    looks = iter([False] * 5)
    page = read_page(
        Response("http://a.example/", "http://a.example/", {}, body), "text/html", True, lambda: next(looks, True)
    )
    assert page.text.startswith("# Tea\n\nLeaves in **hot** water.\n\n")
    assert 300 < page.text.count("Leaves") < 1000
    assert page.remarks == ("reading the page took too long: the rest is missing",)
