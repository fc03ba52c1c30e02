"""The cost of the page in a real Chromium: a reply's deltas, a long thread, and the bytes of its files.

Script and layout are those of the page's own thread in Chromium's trace, between the arrival of one delta and of the
next. They come at a distance of 25 ms, so that each has its own frame.

    python benchmarks/page.py
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentkit.messages import AssistantMessage, Message, TextPart, user
from agentkit.threads import ThreadManager

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from browser import chromium, in_browser
from page_driver import Tab, opened
from page_server import PageServer

ROOT = Path(__file__).parent.parent
PACE = 0.025  # seconds between two deltas
DELTAS = 200
MESSAGES = 2000
PART = """## Part {n}

Some **bold** words, `code`, a [link](https://example.org/{n}) and *more* of the usual, in a paragraph that is long
enough to be wrapped into a second line at the usual width of the column.

- one item with `code`
- another item, **with emphasis**
  1. numbered inside
  2. and once more

| name | size |
|---|---:|
| first {n} | 10 |
| second {n} | 200 |

```python
def part_{n}(value: int) -> str:
    return f"{{value}} of {n}"
```

"""
REPLY = "".join(PART.format(n=n) for n in range(40))[:8192]
CATEGORIES = ("devtools.timeline", "disabled-by-default-devtools.timeline", "toplevel")
SCRIPT = ("FunctionCall", "EvaluateScript", "RunMicrotasks", "FireAnimationFrame", "TimerFire", "v8.callFunction")
LAYOUT = ("Layout", "UpdateLayoutTree")


class Cost(NamedTuple):
    """Milliseconds of script and layout per delta, how many deltas were seen, and the longest task."""

    deltas: int
    p50: float
    p99: float
    longest: float

    def __str__(self) -> str:
        return f"{self.deltas} deltas: p50 {self.p50:.2f} ms, p99 {self.p99:.2f} ms; longest task {self.longest:.1f} ms"


def cost(trace: bytes, arrival: str = "ResourceReceivedData") -> Cost:
    """The cost of the deltas in a trace of Chromium; `arrival` is the name of the event that begins each."""
    events = json.loads(trace)["traceEvents"]
    mains = {
        (e["pid"], e["tid"]) for e in events if e["name"] == "thread_name" and e["args"]["name"] == "CrRendererMain"
    }
    busy: dict[tuple[int, int], float] = {}
    for e in events:
        if e["name"] == "RunTask" and (e["pid"], e["tid"]) in mains:
            busy[e["pid"], e["tid"]] = busy.get((e["pid"], e["tid"]), 0) + e.get("dur", 0)
    main = max(busy, key=lambda thread: busy[thread])
    own = sorted((e for e in events if (e["pid"], e["tid"]) == main), key=lambda e: e["ts"])
    arrivals = [e["ts"] for e in own if e["name"] == arrival]
    arrivals = [at for before, at in zip([0, *arrivals], arrivals, strict=False) if at - before > PACE * 1e6 / 4]
    spent = [0.0] * len(arrivals)
    end, at = 0.0, -1
    for e in own:
        while at + 1 < len(arrivals) and arrivals[at + 1] <= e["ts"]:
            at += 1
        if e["name"] in SCRIPT + LAYOUT and e["ts"] >= end and at >= 0:  # the outermost: it contains the others
            end = e["ts"] + e.get("dur", 0)
            spent[at] += _cpu(e)
    spent.sort()
    longest = max(_cpu(e) for e in own if e["name"] == "RunTask" and e["ts"] >= arrivals[0])
    return Cost(len(spent), _percentile(spent, 0.5), _percentile(spent, 0.99), longest)


def _cpu(event: dict[str, Any]) -> float:
    """Milliseconds of the thread's own time; of the clock's where there are none."""
    return float(event.get("tdur", event.get("dur", 0))) / 1000


def _percentile(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))]


def streamed(server: PageServer, tab: Tab) -> Cost:
    """Let the model reply, and measure its deltas. Meanwhile nothing else looks at the page."""
    browser = chromium()
    browser.start_tracing(page=tab.page, categories=list(CATEGORIES))
    tab.send("reply")
    tab.page.wait_for_timeout(DELTAS * PACE * 1000)
    while server.request("GET", "threads")["threads"][0]["state"] == "running":
        tab.page.wait_for_timeout(100)
    tab.page.wait_for_timeout(500)
    return cost(browser.stop_tracing())


def plain() -> Cost:
    """The floor: the same text in the same pieces, as plain paragraphs in an empty page that scrolls to its end."""
    browser = chromium()
    page = browser.new_page()
    page.set_content("<div style='height: 90vh; overflow: auto'></div>")
    browser.start_tracing(page=page, categories=list(CATEGORIES))
    page.evaluate(
        """([reply, deltas, pace]) => new Promise(done => {
            const box = document.querySelector("div"), size = Math.ceil(reply.length / deltas);
            let at = 0, paragraph = box.appendChild(document.createElement("p"));
            const draw = piece => {
                piece.split("\\n\\n").forEach((text, n) => {
                    if (n) paragraph = box.appendChild(document.createElement("p"));
                    paragraph.append(text);
                });
                box.scrollTop = box.scrollHeight;
            };
            const timer = setInterval(() => {
                const piece = reply.slice(at, at += size);
                requestAnimationFrame(() => draw(piece));
                if (at >= reply.length) { clearInterval(timer); done(); }
            }, pace);
        })""",
        [REPLY, DELTAS, PACE * 1000],
    )
    page.wait_for_timeout(200)
    return cost(browser.stop_tracing(), "TimerFire")


async def fill(store: Path) -> None:
    """A thread of many messages of 1 KB."""
    text = PART.format(n=7) + "x " * 200
    messages: list[Message] = []
    for n in range(MESSAGES // 2):
        messages += [user(f"Question {n}: {text}"[:1000]), AssistantMessage((TextPart(f"Answer {n}: {text}"[:1000]),))]
    async with ThreadManager(store) as threads:
        await threads.create_thread("many", messages=messages)


def interactive(tab: Tab) -> float:
    """Milliseconds from the navigation until the last message is seen and the next can be typed."""
    tab.open("many", wait=False)
    return float(
        tab.page.evaluate(
            """() => new Promise(done => {
                const look = () => {
                    const log = document.querySelector('[role=log]'), box = document.querySelector('textarea');
                    const there = log?.textContent.includes('Answer 999') && !box.disabled;
                    if (there) requestAnimationFrame(() => done(performance.now())); else requestAnimationFrame(look);
                };
                look();
            })"""
        )
    )


def built(tab: Tab) -> float:
    """Milliseconds from the navigation until all messages are elements."""
    script = """count => new Promise(done => {
        const look = () => {
            if (document.querySelectorAll('article').length >= count) done(performance.now());
            else setTimeout(look, 50);
        };
        look();
    })"""
    return float(tab.page.evaluate(script, MESSAGES))


def files() -> tuple[int, int]:
    """Bytes of the page's files, and compressed one by one."""
    found = [file.read_bytes() for file in sorted((ROOT / "agentkit/gateway/ui/static").rglob("*")) if file.is_file()]
    return sum(map(len, found)), sum(len(gzip.compress(one)) for one in found)


def measure(folder: Path) -> dict[str, Any]:
    """All figures."""
    with PageServer(folder) as server:
        server.pace(PACE, -(-len(REPLY) // DELTAS))
        server.play("reply", [REPLY, "\n\nThe end."])
        short = Tab(opened(), server.url)
        short.open()
        floor, reply = plain(), streamed(server, short)
        found: dict[str, Any] = {"plain text of the same length, the floor": floor}
        found |= {f"a reply of {len(REPLY)} bytes": reply, "times the floor": round(reply.p50 / floor.p50, 1)}
        long = Tab(opened(), server.url)
        found[f"{MESSAGES} messages: ms until interactive"] = round(interactive(long))
        found["ms until all of them are built"] = round(built(long))
        found[f"a reply after {MESSAGES} messages"] = last = streamed(server, long)
        found["times the floor after them"] = round(last.p50 / floor.p50, 1)
        whole, packed = files()
        found["bytes of all files, compressed"] = (whole, packed)
        found["requests to other hosts"] = len(short.foreign) + len(long.foreign)
        return found


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(fill(folder / "page.db"))
        for what, value in in_browser(lambda: measure(folder)).items():
            print(f"{what}: {value}")


if __name__ == "__main__":
    main()
