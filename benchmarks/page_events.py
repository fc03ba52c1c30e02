"""The cost of one text delta for a page: microseconds of CPU, as AG-UI's events in bytes.

agentkit writes the events by hand; the measure is `ag-ui-protocol`, with its models and its encoder. Read the ratio.

    python benchmarks/page_events.py
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

from ag_ui.core import TextMessageContentEvent
from ag_ui.encoder import EventEncoder

from agentkit.events import Text
from agentkit.gateway.events import AgUiRun, AiSdkRun, sse

DELTAS = [Text(f"word {n} ") for n in range(20_000)]
TURNS = 7


def ag_ui() -> None:
    """AG-UI events of agentkit."""
    run = AgUiRun("thread", "0123456789abcdef")
    for delta in DELTAS:
        for event in run.feed(delta):
            sse(event, "1a2b.17")


def ai_sdk() -> None:
    """Chunks of the AI SDK of agentkit."""
    run = AiSdkRun("0123456789abcdef")
    for delta in DELTAS:
        for event in run.feed(delta):
            sse(event)


def models() -> None:
    """AG-UI's own models and encoder."""
    encoder = EventEncoder()
    for delta in DELTAS:
        encoder.encode(TextMessageContentEvent(message_id="0123456789abcdef-1", delta=delta.text))


def main() -> None:
    """Print the figures, all of one run, in turns."""
    best: dict[Callable[[], None], float] = {}
    for _ in range(TURNS):
        for write in (ag_ui, ai_sdk, models):
            since = process_time()
            write()
            best[write] = min(best.get(write, 1e9), (process_time() - since) / len(DELTAS) * 1e6)
    for write, cost in best.items():
        print(f"{write.__doc__:40} {cost:6.2f} µs per delta, {best[models] / cost:5.1f} times as fast as the models")


if __name__ == "__main__":
    main()
