"""The search tools against servers on this machine that speak the services' own payloads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from site_server import Page, SiteServer

from agentkit import Agent, ConfigError, ThreadManager, ToolCall, ToolResult
from agentkit.testing import ScriptedModel
from agentkit_tools.search import Hit, MassiveDS, RetrievalSearch, SemanticScholar, SerperSearch, answer_text

CANARY = "canary-71b0e2"


def serper(url: str) -> Any:
    return SerperSearch(url=f"{url}/search", api_key=CANARY, timeout=5).serper_search("green tea")


def s2(url: str) -> Any:
    return SemanticScholar(url=f"{url}/search", api_key=CANARY, timeout=5).s2_search("green tea")


def massive(url: str) -> Any:
    return MassiveDS(f"{url}/search", timeout=5).massive_ds_search("green tea")


def retrieval(url: str) -> Any:
    return RetrievalSearch(f"{url}/search", timeout=5).search(["green tea"])


ALL = [serper, s2, massive, retrieval]
Tool = Callable[[str], Any]


def asked(tool: Tool, answer: Any, status: int = 200) -> tuple[ToolResult, SiteServer]:
    page = answer if isinstance(answer, Page) else Page(answer, status)
    with SiteServer({"/search": page}) as site:
        return asyncio.run(tool(site.url)), site


def test_serper() -> None:
    answer = {
        "searchParameters": {"q": "green tea", "type": "search"},
        "answerBox": {"title": "Green tea", "snippet": "A type of tea.", "link": "https://tea.example/"},
        "organic": [
            {"title": "Tea - Wikipedia", "link": "https://wiki.example/Tea", "snippet": "Tea is …", "position": 1},
            {"title": "Tea shop", "link": "https://shop.example/", "position": 2},
        ],
    }
    result, site = asked(serper, answer)
    assert result.text == (
        "1. Green tea\n   https://tea.example/\n   A type of tea.\n"
        "2. Tea - Wikipedia\n   https://wiki.example/Tea\n   Tea is …\n"
        "3. Tea shop\n   https://shop.example/"
    )
    assert (site.visits[0].method, site.visits[0].body) == ("POST", {"q": "green tea", "num": 5})
    assert site.visits[0].headers["x-api-key"] == CANARY


def test_semantic_scholar() -> None:
    passage = {"snippet": {"text": "Catechins are\nantioxidants.", "snippetKind": "body"}, "score": 0.7}
    result, site = asked(s2, {"data": [{**passage, "paper": {"corpusId": "123", "title": "On tea"}}, passage]})
    assert result.text == (
        "1. On tea\n   https://api.semanticscholar.org/CorpusID:123\n   Catechins are\n   antioxidants.\n"
        "2. Catechins are\n   antioxidants."
    )
    assert (site.visits[0].method, site.visits[0].query) == ("GET", {"query": "green tea", "limit": "5"})
    assert site.visits[0].headers["x-api-key"] == CANARY


def test_semantic_scholar_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("S2_API_KEY", raising=False)
    _, site = asked(lambda url: SemanticScholar(url=f"{url}/search").s2_search("tea"), {"data": []})
    assert "x-api-key" not in site.visits[0].headers


def test_massive_ds() -> None:
    answer = {"message": "ok", "results": {"IDs": [[1, 2]], "passages": [["Tea is a drink.", "Green tea …"]]}}
    result, site = asked(massive, answer)
    assert result.text == "1. Tea is a drink.\n2. Green tea …"
    assert site.visits[0].body == {"query": "green tea", "n_docs": 3, "domains": "dpr_wiki_contriever_ivfpq"}


def test_retrieval_with_scores_and_without() -> None:
    contents = {"id": "0", "contents": '"Tea"\nTea is a drink.'}
    for document in ({"document": contents, "score": 0.8}, contents):
        result, site = asked(retrieval, {"result": [[document]]})
        assert result.text == "1. Tea\n   Tea is a drink."
        assert result.metadata == {"num_results": [1]}
    assert site.visits[0].body == {"queries": ["green tea"], "topk": 3, "return_scores": True}


def test_several_queries_are_answered_separately() -> None:
    answer = {"result": [[{"document": {"title": "A", "text": "a"}, "score": 1}], []]}
    result, _ = asked(lambda url: RetrievalSearch(f"{url}/search").search(["first", "second"]), answer)
    assert result.text == "first:\n1. A\n   a\n\nsecond:\nno results"


@pytest.mark.parametrize("queries", [[], [" "], ["x"] * 21])
def test_wrong_queries_are_not_sent(queries: list[str]) -> None:
    result, site = asked(lambda url: RetrievalSearch(url).search(queries), {})
    assert "write 1 to 20, none of them empty" in str(result.error)
    assert site.visits == []


@pytest.mark.parametrize("tool", ALL)
@pytest.mark.parametrize("garbage", [{}, [], None, "text", 5, {"result": {}, "data": None, "results": [1]}])
def test_an_answer_of_another_shape_is_an_error(tool: Tool, garbage: Any) -> None:
    result, _ = asked(tool, Page(garbage, headers={"Content-Type": "application/json"}))
    assert "has no" in str(result.error)


@pytest.mark.parametrize("tool", ALL)
@pytest.mark.parametrize("body", [b"", b"<html>Bad gateway</html>", b'{"organic": [', b"\xff\xfe", b"[" * 10_000])
def test_a_garbage_body_is_an_error(tool: Tool, body: bytes) -> None:
    result, _ = asked(tool, Page(body))
    assert "did not answer in JSON" in str(result.error)


ODD_ITEMS = [None, 5, [], {"title": None, "link": 5, "snippet": {}, "document": 3, "paper": [], "contents": 1}]
GOOD = {"title": "Tea", "snippet": "Hot.", "contents": "Tea", "paper": {"title": "Tea"}}


@pytest.mark.parametrize("tool", ALL)
def test_odd_items_are_skipped_but_not_all_of_them(tool: Tool) -> None:
    result, _ = asked(tool, answer_with([*ODD_ITEMS, GOOD]))
    assert result.ok
    assert result.text.startswith("1. Tea")
    result, _ = asked(tool, answer_with(ODD_ITEMS))
    assert "that can be read; found NoneType" in str(result.error)
    result, _ = asked(tool, answer_with([]))
    assert result.text == "no results"


def answer_with(items: list[Any]) -> dict[str, Any]:
    """The same results as each of the services sends them."""
    return {"organic": items, "data": items, "results": {"passages": [items]}, "result": [items]}


@pytest.mark.parametrize("tool", ALL)
@pytest.mark.parametrize("status", [401, 403, 404, 429, 500])
def test_a_failure_is_reported_with_its_status(tool: Tool, status: int) -> None:
    result, site = asked(
        tool, Page({"message": "no"}, status, {"Content-Type": "application/json", "Retry-After": "0"})
    )
    assert f"answered {status} (" in str(result.error)
    assert len(site.visits) == (3 if status in (429, 500) else 1)


@pytest.mark.parametrize("tool", ALL)
@pytest.mark.parametrize("type", ["text/plain; charset=utf-8", "application/problem+json"])
def test_the_words_of_a_failure_are_told(tool: Tool, type: str) -> None:
    result, _ = asked(tool, Page(b"Query too\nlong", 400, {"Content-Type": type}))
    assert str(result.error).endswith("answered 400 (Bad Request): Query too long")
    result, _ = asked(tool, Page(b"<h1>Query too long</h1>", 400, {"Content-Type": "text/html"}))
    assert str(result.error).endswith("answered 400 (Bad Request)")


def test_a_wrong_key_names_the_variable_to_check() -> None:
    result, _ = asked(serper, {"message": f"Unauthorized: {CANARY}"}, 401)
    assert str(result.error).endswith(
        'answered 401 (Unauthorized): {"message": "Unauthorized: [key]"}; the operator must check SERPER_API_KEY'
    )


def test_without_a_key_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERPER_API_KEY", raising=False)
    result, site = asked(lambda url: SerperSearch(url=url).serper_search("tea"), {})
    assert result.error == "this service needs a key: the operator must set SERPER_API_KEY"
    assert site.visits == []


@pytest.mark.parametrize("key", [f"{CANARY}\nsecond line", f"{CANARY}\x00", f"{CANARY}é", f"{CANARY}\udcff"])
@pytest.mark.parametrize(
    ("tool", "variable"),
    [
        (lambda url, key: SerperSearch(url=url, api_key=key).serper_search("tea"), "SERPER_API_KEY"),
        (lambda url, key: SemanticScholar(url=url, api_key=key).s2_search("tea"), "S2_API_KEY"),
    ],
)
def test_a_key_that_no_header_can_carry_is_not_quoted(tool: Any, variable: str, key: str) -> None:
    """The HTTP library would quote it in its complaint."""
    result, site = asked(lambda url: tool(url, key), {})
    assert result.error == (
        f"the key in {variable} contains a character that HTTP cannot carry; the operator must correct it"
    )
    assert site.visits == []


def test_no_answer_in_time_is_a_timeout() -> None:
    import threading

    over = threading.Event()

    def late(_: object) -> Page:
        over.wait(30)
        return Page({})

    async def main(url: str) -> ToolResult:
        try:
            return await SerperSearch(url=f"{url}/search", api_key="k", timeout=0.2).serper_search("tea")
        finally:
            over.set()

    with SiteServer({"/search": late}) as site:
        result = asyncio.run(main(site.url))
    assert (result.code, result.error) == ("timeout", "127.0.0.1 did not answer within 0.2 seconds")


def test_a_key_is_not_sent_to_where_a_redirect_leads() -> None:
    with SiteServer({"/": Page({})}) as elsewhere:
        result, _ = asked(serper, Page(status=307, headers={"Location": elsewhere.url}))
    assert "which is not followed" in str(result.error)
    assert elsewhere.visits == []


def test_a_long_snippet_is_cut() -> None:
    text = answer_text([Hit("T", "", "x" * 10_000)])
    assert text.endswith("x… [cut]")
    assert len(text) < 4100


@pytest.mark.parametrize("number", [0, 101, -1])
def test_a_number_of_results_out_of_range_is_refused(number: int) -> None:
    with pytest.raises(ConfigError, match="between 1 and 100"):
        SerperSearch(num_results=number)
    with pytest.raises(ConfigError, match="between 1 and 100"):
        RetrievalSearch("http://x.example", topk=number)


def test_row_38_the_key_is_in_no_log_result_or_stored_thread(caplog: pytest.LogCaptureFixture, tmp_path: Any) -> None:
    """Although the service repeats it in everything that it answers."""
    caplog.set_level(logging.DEBUG)
    repeated = {
        "organic": [{"title": CANARY, "link": f"https://x.example/{CANARY}", "snippet": CANARY}],
        CANARY: CANARY,
    }
    site_map = {"/search": [Page(repeated), Page(repeated, 401, {"Content-Type": "application/json", "X-Key": CANARY})]}

    async def main(url: str) -> str:
        tool = SerperSearch(url=f"{url}/search", api_key=CANARY)
        calls = [ToolCall(id, "serper_search", {"query": "tea"}) for id in ("c1", "c2")]
        threads = ThreadManager(str(tmp_path / "chat.db"))
        threads.add_tool(tool)
        await threads.create_thread("t", messages="Go.")
        model = ScriptedModel([calls[0], calls[1], "Done."])
        result = await threads.run_thread("t", None, model).complete()
        await threads.aclose()
        return f"{tool!r} {vars(tool)!r} {result!r}"

    with SiteServer(site_map) as site:
        shown = asyncio.run(main(site.url))
        assert site.visits[1].headers["x-api-key"] == CANARY
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"[key]" in stored
    assert CANARY.encode() not in stored
    assert CANARY not in shown + caplog.text


def test_agent_reads_the_results() -> None:
    with SiteServer({"/search": Page({"result": [[{"document": {"contents": "Tea\nA drink."}}]]})}) as site:
        tool = RetrievalSearch(f"{site.url}/search")
        model = ScriptedModel([ToolCall("", "search", {"query_list": ["tea"]}), "A drink."])
        result = Agent(model, tools=[tool]).run_sync("What is tea?")
    assert "1. Tea\n   A drink." in result.messages[2].text
