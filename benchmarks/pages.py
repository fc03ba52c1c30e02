"""Pages as Markdown: time and size for each shape of `tests/agentkit_tools/pages/`, and for a generated page of 10 MB.

Next to it, where they are installed: trafilatura and markdownify on the same bytes. Run: python benchmarks/pages.py
"""

from __future__ import annotations

import importlib.util
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from agentkit_tools.pages.page_source import decode_page
from agentkit_tools.pages.page_text import page_text

PAGES = Path(__file__).parents[1] / "tests" / "agentkit_tools" / "pages"
ROW = "<tr><td>{n}<td><a href='/p/{n}?a=1&amp;b=2'>Item {n}</a><td>{n}.50 €</tr>\n"
PARAGRAPH = (
    "<p class='text'>Paragraph {n} has <b>some</b> words, <code>code({n})</code> and a <a href='/{n}'>link</a>.</p>\n"
)


def large(size: int) -> bytes:
    """A page of about this size: paragraphs, and every thousand of them a table."""
    parts = ["<!DOCTYPE html><html><head><title>Large</title></head><body><h1>Large</h1>"]
    length = n = 0
    while length < size:
        n += 1
        part = PARAGRAPH.format(n=n)
        if n % 1000 == 0:
            part += f"<table><tr><th>No<th>Item<th>Price{''.join(ROW.format(n=r) for r in range(50))}</table>"
        parts.append(part)
        length += len(part)
    return "".join(parts).encode()


def ours(body: bytes) -> str:
    """What the web tool does with a page."""
    return page_text(decode_page(body), "https://site.example/").text


def readers() -> dict[str, Callable[[bytes], str]]:
    """The readers to compare."""
    found: dict[str, Callable[[bytes], str]] = {"agentkit": ours}
    if importlib.util.find_spec("trafilatura"):
        import trafilatura

        found["trafilatura"] = lambda body: (
            trafilatura.extract(body, output_format="markdown", include_links=True) or ""
        )
    if importlib.util.find_spec("markdownify"):
        import markdownify

        found["markdownify"] = lambda body: markdownify.markdownify(body.decode("utf-8", "replace"))
    return found


def main() -> None:
    """Print the table."""
    bodies = {path.name: path.read_bytes() for path in sorted(PAGES.glob("*.html"))}
    every = readers()
    print(f"{'page':24}{'bytes':>10}" + "".join(f"{name + ' ms':>18}{'characters':>12}" for name in every))
    for name, body in {**bodies, "generated, 1 MB": large(10**6), "generated, 10 MB": large(10**7)}.items():
        cells = []
        for reader, read in every.items():
            if len(body) > 2 * 10**6 and reader != "agentkit":
                cells.append(f"{'-':>18}{'-':>12}")
                continue
            times = []
            for _ in range(1 if len(body) > 10**5 else 5):
                start = time.perf_counter()
                text = read(body)
                times.append(time.perf_counter() - start)
            cells.append(f"{1000 * statistics.median(times):>18.2f}{len(text):>12}")
        print(f"{name:24}{len(body):>10}" + "".join(cells))
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
