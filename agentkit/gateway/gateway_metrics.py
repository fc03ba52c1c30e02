"""The figures of a gateway, as Prometheus reads them. Names follow OpenTelemetry's conventions for generative AI.

Source of the text: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from agentkit.gateway.exchanges import ReplyRecord

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"

SECONDS_BUCKETS: Final = tuple(0.01 * 2**n for n in range(14))
"""0.01 to 81.92 s. Source: the conventions of `gen_ai.server.request.duration`."""

FIRST_BUCKETS: Final = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Source: the conventions of `gen_ai.server.time_to_first_token`."""

TOKEN_BUCKETS: Final = tuple(4**n for n in range(14))
"""1 to 67,108,864 tokens. Source: the conventions of `gen_ai.client.token.usage`."""

MOST_MODELS: Final = 200
"""Names of models that are counted separately, since clients choose them; further ones are counted as `other`."""

LONGEST_NAME: Final = 200
"""Characters of such a name; a model with a longer one is counted as `other`."""

_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Counter:
    """A number for each combination of labels.

    Args:
        name: as Prometheus has it.
        about: one line about it.
        labels: the names of the labels.
        kind: `counter`, or `gauge` for what also falls.
    """

    def __init__(self, name: str, about: str, labels: Sequence[str] = (), kind: str = "counter") -> None:
        self._head = f"# HELP {name} {about}\n# TYPE {name} {kind}\n"
        self._name = name
        self._labels = labels
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0}

    def add(self, amount: float, *labels: str) -> None:
        """Add an amount; the values of the labels are in their order."""
        self._values[labels] = self._values.get(labels, 0) + amount

    def lines(self) -> Iterator[str]:
        """The text."""
        yield self._head
        for labels, value in self._values.items():
            yield f"{self._name}{_labels(self._labels, labels)} {value:g}\n"


class Histogram:
    """Counts values in buckets, for each combination of labels.

    Args:
        name: as Prometheus has it.
        about: one line about it.
        labels: the names of the labels.
        buckets: their upper bounds, ascending.
    """

    def __init__(self, name: str, about: str, labels: Sequence[str], buckets: Sequence[float]) -> None:
        self._head = f"# HELP {name} {about}\n# TYPE {name} histogram\n"
        self._name = name
        self._labels = labels
        self._buckets = buckets
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def record(self, value: float, *labels: str) -> None:
        """Count a value; the values of the labels are in their order."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self._buckets) + 1)
        counts[bisect_left(self._buckets, value)] += 1
        self._sums[labels] = self._sums.get(labels, 0) + value

    def lines(self) -> Iterator[str]:
        """The text."""
        yield self._head
        for labels, counts in self._counts.items():
            below = 0
            for bound, counted in zip((*self._buckets, float("inf")), counts, strict=True):
                below += counted
                end = "+Inf" if bound == float("inf") else f"{bound:g}"
                yield f"{self._name}_bucket{_labels((*self._labels, 'le'), (*labels, end))} {below}\n"
            yield f"{self._name}_sum{_labels(self._labels, labels)} {self._sums[labels]:.9g}\n"
            yield f"{self._name}_count{_labels(self._labels, labels)} {below}\n"


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    pairs = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


class GatewayMetrics:
    """The counters of a gateway."""

    def __init__(self) -> None:
        model, wire = "gen_ai_request_model", "wire"
        self._seconds = Histogram(
            "gen_ai_server_request_duration_seconds",
            "Time until a reply was complete",
            (model, wire, "http_response_status_code"),
            SECONDS_BUCKETS,
        )
        self._first = Histogram(
            "gen_ai_server_time_to_first_token_seconds",
            "Time until the first part of a streamed reply",
            (model, wire),
            FIRST_BUCKETS,
        )
        self._tokens = Histogram(
            "gen_ai_client_token_usage", "Tokens of a request", (model, "gen_ai_token_type"), TOKEN_BUCKETS
        )
        self.running = Counter("agentkit_requests_in_flight", "Requests that are answered now", kind="gauge")
        self._recovered = Counter(
            "agentkit_recovered_calls_total", "Calls in text that became native calls", ("format",)
        )
        self._repairs = Counter("agentkit_repairs_total", "Repairs of damaged calls", ("repair",))
        self._asked_again = Counter("agentkit_asked_again_total", "Replies after which a model was asked again")
        self._failed = Counter("agentkit_recovery_failed_total", "Replies forwarded as they were after a fault")
        self._left = Counter("agentkit_client_left_total", "Requests whose client left before the end")
        self.upstream_errors = Counter(
            "agentkit_upstream_errors_total", "Requests that an upstream failed", ("upstream", "code")
        )
        self._models: set[str] = set()

    def count(
        self, model: str, wire: str, status: int, seconds: float, first: float | None, left: bool, record: ReplyRecord
    ) -> None:
        """Count a request that has ended.

        Args:
            model: as the client has named it; empty if it is unknown.
            wire: the client's.
            status: of the response.
            seconds: from its request to its end.
            first: seconds to the first part of a streamed reply.
            left: whether the client left before the end.
            record: what happened to the reply.
        """
        name = self._label(model, status)
        self._seconds.record(seconds, name, wire, str(status))
        if first is not None:
            self._first.record(first, name, wire)
        if record.usage is not None:
            for kind, tokens in (("input", record.usage.input_tokens), ("output", record.usage.output_tokens)):
                if tokens:
                    self._tokens.record(tokens, name, kind)
        if record.recovered:
            self._recovered.add(record.recovered, record.format)
        for repair in record.repairs:
            self._repairs.add(1, repair)
        self._asked_again.add(record.asked_again)
        self._failed.add(record.recovery_failed)
        self._left.add(left)

    def _label(self, model: str, status: int) -> str:
        """The model as a label. A name that no server knows is counted with the others, since it may be anything."""
        if model in self._models:
            return model
        if not model or len(model) > LONGEST_NAME or status >= 400 or len(self._models) >= MOST_MODELS:
            return "other"
        self._models.add(model)
        return model

    def text(self) -> str:
        """Everything that was counted."""
        return "".join(line for metric in vars(self).values() if hasattr(metric, "lines") for line in metric.lines())
