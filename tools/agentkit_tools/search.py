"""Search: Google by Serper, papers by Semantic Scholar, and retrieval servers for training; one form of answer for all.

Knows the services' payloads and the HTTP client. Keys come from the environment and are shown nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from agentkit import Tool, ToolResult, openapi_schema, xml_schema
from agentkit.errors import ConfigError
from agentkit_tools.network.addresses import RequestFailed
from agentkit_tools.network.http_client import HttpClient, Key

MAX_SNIPPET: Final = 4000  # characters of one result: a passage of a retrieval server has about 600
MAX_QUERIES: Final = 20  # of one call


class Hit(NamedTuple):
    """One result of a search. The parts that a service does not give are empty."""

    title: str = ""
    address: str = ""
    text: str = ""


def answer_text(hits: Iterable[Hit]) -> str:
    """Return results as a model reads them: numbered, each with its title, its address and its text.

    >>> print(answer_text([Hit("Tea", "https://tea.example/", "A hot drink."), Hit("", "", "Leaves in water.")]))
    1. Tea
       https://tea.example/
       A hot drink.
    2. Leaves in water.
    """
    blocks = []
    for number, hit in enumerate(hits, 1):
        text = hit.text if len(hit.text) <= MAX_SNIPPET else f"{hit.text[:MAX_SNIPPET]}… [cut]"
        parts = [" ".join(hit.title.split()), hit.address.strip(), *text.split("\n")]
        lines = [part.rstrip() for part in parts if part.strip()]
        blocks.append("\n".join([f"{number}. {lines[0]}", *(f"   {line}" for line in lines[1:])]) if lines else "")
    return "\n".join(block for block in blocks if block) or "no results"


class _Service(Tool):
    """One service: its URL, its client, its key, and how its failure is answered."""

    how_many: ClassVar[str] = "num_results"
    """The setting of how many results are requested."""

    def __init__(self, url: str, num_results: int, key: Key | None, rate: float | None, timeout: float) -> None:
        if not 1 <= num_results <= 100:
            raise ConfigError(f"{self.how_many}={num_results!r}: expected an integer between 1 and 100")
        self._url, self._num_results, self._key = url, num_results, key
        self._client = HttpClient(service=url, rate=rate, timeout=timeout)

    async def _ask(self, body: Any = None, params: Mapping[str, Any] | None = None) -> Any:
        method = "GET" if body is None else "POST"
        return (await self._client.request(method, self._url, params=params, body=body, key=self._key)).json()

    async def _answer(self, query: str) -> ToolResult:
        if not query.strip():
            return ToolResult(error="query is empty; write what to search for")
        try:
            return ToolResult(output=answer_text(await self._hits(query)))
        except RequestFailed as e:
            return e.result

    async def _hits(self, query: str) -> list[Hit]:
        raise NotImplementedError


class KeyedSearch(_Service):
    """A search service with a key.

    Args:
        num_results: how many results to request.
        api_key: in place of the environment's.
        url: in place of the service's.
        rate: requests per second; None for any number.
        timeout: seconds for a call, with retries; None for the service's own.

    Raises:
        ConfigError: a number is out of range.
    """

    address: ClassVar[str]
    variable: ClassVar[str]
    """The environment variable with the key."""
    header: ClassVar[str]
    """The header that it is sent in."""
    needs_key: ClassVar[bool] = False
    seconds: ClassVar[float]

    def __init__(
        self,
        *,
        num_results: int = 5,
        api_key: str | None = None,
        url: str | None = None,
        rate: float | None = None,
        timeout: float | None = None,
    ) -> None:
        key = Key(self.variable, self.header, api_key, needed=self.needs_key)
        super().__init__(url or self.address, num_results, key, rate, self.seconds if timeout is None else timeout)


class SerperSearch(KeyedSearch):
    """Searches the web with Google, by serper.dev. The key is in `SERPER_API_KEY`."""

    address = "https://google.serper.dev/search"
    variable, header, needs_key = "SERPER_API_KEY", "X-API-KEY", True
    seconds = 30.0

    @openapi_schema
    @xml_schema(name="serper-search", content="query")
    async def serper_search(self, query: str) -> ToolResult:
        """Search the web with Google. Returns titles, addresses and snippets of pages.

        Args:
            query: what to search for
        """
        return await self._answer(query)

    async def _hits(self, query: str) -> list[Hit]:
        answer = await self._ask({"q": query, "num": self._num_results})
        if not isinstance(answer, Mapping) or not {"organic", "answerBox", "searchParameters"} & answer.keys():
            raise _unexpected_answer("serper", "organic", answer)
        hits = []
        if isinstance(box := answer.get("answerBox"), Mapping):
            said = _text(box, "answer") or _text(box, "snippet")
            hits.append(Hit(_text(box, "title") or "Answer", _text(box, "link"), said))
        hits += _read(_page_found, answer.get("organic", []), "serper", "organic results")
        return hits[: self._num_results + 1]


def _page_found(found: Any) -> Hit:
    return Hit(_text(found, "title"), _text(found, "link"), _text(found, "snippet"))


class SemanticScholar(KeyedSearch):
    """Searches passages of scientific papers, by Semantic Scholar. The key is in `S2_API_KEY`, if there is one."""

    address = "https://api.semanticscholar.org/graph/v1/snippet/search"
    variable, header = "S2_API_KEY", "x-api-key"
    seconds = 60.0

    @openapi_schema
    @xml_schema(name="s2-search", content="query")
    async def s2_search(self, query: str) -> ToolResult:
        """Search scientific papers. Returns passages with the titles of their papers.

        Args:
            query: what to search for
        """
        return await self._answer(query)

    async def _hits(self, query: str) -> list[Hit]:
        answer = await self._ask(params={"query": query, "limit": self._num_results})
        if not isinstance(answer, Mapping):
            raise _unexpected_answer("Semantic Scholar", "data", answer)
        return _read(_passage_of_paper, answer.get("data"), "Semantic Scholar", "data")


def _passage_of_paper(found: Any) -> Hit:
    paper = _part(found, "paper")
    corpus_id = str(_part(paper, "corpusId") or "")
    address = f"https://api.semanticscholar.org/CorpusID:{corpus_id}" if corpus_id.isdigit() else ""
    return Hit(_text(paper, "title"), address, _text(_part(found, "snippet"), "text"))


class MassiveDS(_Service):
    """Searches the passages that a massive-serve server holds, such as those of Wikipedia.

    Args:
        url: of the server's search, such as `http://search.internal:30888/search`.
        num_results: how many passages to request.
        domains: which of the server's collections to search.
        rate: requests per second; None for any number.
        timeout: seconds for a call, with retries.

    Raises:
        ConfigError: a number is out of range.
    """

    def __init__(
        self,
        url: str,
        *,
        num_results: int = 3,
        domains: str = "dpr_wiki_contriever_ivfpq",
        rate: float | None = None,
        timeout: float = 60.0,
    ) -> None:
        super().__init__(url, num_results, None, rate, timeout)
        self._domains = domains

    @openapi_schema
    @xml_schema(name="massive-ds-search", content="query")
    async def massive_ds_search(self, query: str) -> ToolResult:
        """Search a large collection of documents, such as Wikipedia. Returns passages.

        Args:
            query: what to search for
        """
        return await self._answer(query)

    async def _hits(self, query: str) -> list[Hit]:
        answer = await self._ask({"query": query, "n_docs": self._num_results, "domains": self._domains})
        match answer:
            case {"results": {"passages": [[*passages], *_]}}:
                return _read(_document, passages, "the search server", "passages")[: self._num_results]
            case {"results": {"passages": []}}:
                return []
        raise _unexpected_answer("the search server", "results.passages", answer)


class RetrievalSearch(_Service):
    """Asks a retrieval server, as search-r1 and verl's search tool do: several queries at once.

    Args:
        retrieval_service_url: of the server, such as `http://127.0.0.1:8000/retrieve`.
        topk: how many documents to request for each query.
        rate_limit: requests per second; None for any number.
        timeout: seconds for a call, with retries.

    Raises:
        ConfigError: a number is out of range.
    """

    how_many = "topk"

    def __init__(
        self, retrieval_service_url: str, *, topk: int = 3, rate_limit: float | None = 120, timeout: float = 30.0
    ) -> None:
        super().__init__(retrieval_service_url, topk, None, rate_limit, timeout)

    @openapi_schema
    @xml_schema(name="search")
    async def search(self, query_list: list[str]) -> ToolResult:
        """Search a collection of documents. Returns the best passages for each query.

        Args:
            query_list: what to search for: one or more complete queries, each answered separately
        """
        queries = [query.strip() for query in query_list]
        if not queries or not all(queries) or len(queries) > MAX_QUERIES:
            return ToolResult(
                error=f"query_list has {len(queries)} queries; write 1 to {MAX_QUERIES}, none of them empty"
            )
        try:
            found = await self._search(queries)
        except RequestFailed as e:
            return e.result
        texts = [answer_text(hits) for hits in found]
        output = texts[0] if len(texts) == 1 else "\n\n".join(f"{q}:\n{t}" for q, t in zip(queries, texts, strict=True))
        return ToolResult(output=output, metadata={"num_results": [len(hits) for hits in found]})

    async def _search(self, queries: list[str]) -> list[list[Hit]]:
        answer = await self._ask({"queries": queries, "topk": self._num_results, "return_scores": True})
        found = answer.get("result") if isinstance(answer, Mapping) else None
        if not isinstance(found, list) or len(found) != len(queries):
            raise _unexpected_answer("the retrieval server", f"result with {len(queries)} lists", answer)
        return [_read(_document, documents or [], "the retrieval server", "documents") for documents in found]


def _document(found: Any) -> Hit:
    """A document of a retrieval server: text, or an object with it; its first line is the title if nothing else is."""
    if isinstance(found, Mapping) and isinstance(found.get("document"), Mapping | str):
        found = found["document"]
    if isinstance(found, str):
        return Hit(text=found)
    title, address = _text(found, "title"), _text(found, "url")
    contents = _text(found, "contents")
    if contents and not title:
        title, _, contents = contents.partition("\n")
        if not contents:
            title, contents = "", title
    return Hit(title.strip().strip('"'), address, contents or _text(found, "text"))


def _part(found: Any, name: str) -> Any:
    return found.get(name) if isinstance(found, Mapping) else None


def _text(found: Any, name: str) -> str:
    value = _part(found, name)
    return value if isinstance(value, str) else ""


def _read(read: Callable[[Any], Hit], found: Any, service: str, wanted: str) -> list[Hit]:
    """A service's list of results; odd ones are skipped, but not all of them.

    Raises:
        RequestFailed: it is not a list, or nothing in it can be read.
    """
    if not isinstance(found, list):
        raise _unexpected_answer(service, wanted, found)
    hits = [hit for one in found if any(hit := read(one))]
    if found and not hits:
        raise _unexpected_answer(service, f"{wanted} that can be read", found[0])
    return hits


def _unexpected_answer(service: str, wanted: str, answer: Any) -> RequestFailed:
    found = sorted(map(str, answer))[:10] if isinstance(answer, Mapping) else type(answer).__name__
    return RequestFailed(f"the answer of {service} has no {wanted}; found {found}")
