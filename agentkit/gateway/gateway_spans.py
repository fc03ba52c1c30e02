"""Spans and metrics of a gateway for OpenTelemetry, if the process has loaded it, as `opentelemetry-instrument` does.

Names: OpenTelemetry's semantic conventions for generative AI systems. Contents are never recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agentkit.gateway.exchanges import Exchange, ReplyRecord
from agentkit.gateway.gateway_metrics import FIRST_BUCKETS, SECONDS_BUCKETS, TOKEN_BUCKETS


def spans_of_process() -> GatewaySpans | None:
    """Return what records with OpenTelemetry's providers of this process; None without them."""
    return GatewaySpans() if "opentelemetry.trace" in sys.modules else None


class GatewaySpans:
    """Records one span for each request, as a child of the client's; the upstream's is a child of it."""

    def __init__(self) -> None:
        from opentelemetry import metrics, propagate, trace

        from agentkit import __version__

        self._trace = trace
        self._propagate = propagate
        self._tracer = trace.get_tracer("agentkit.gateway", __version__)
        meter = metrics.get_meter("agentkit.gateway", __version__)

        def histogram(name: str, unit: str, description: str, buckets: Any) -> Any:
            bounds = [float(bound) for bound in buckets]
            return meter.create_histogram(name, unit, description, explicit_bucket_boundaries_advisory=bounds)

        self._seconds = histogram(
            "gen_ai.server.request.duration", "s", "Time until a reply was complete", SECONDS_BUCKETS
        )
        self._first = histogram(
            "gen_ai.server.time_to_first_token", "s", "Time until the first part of a streamed reply", FIRST_BUCKETS
        )
        self._tokens = histogram("gen_ai.client.token.usage", "{token}", "Tokens of a request", TOKEN_BUCKETS)

    @contextmanager
    def request(self, exchange: Exchange, headers: Mapping[bytes, bytes]) -> Iterator[None]:
        """Record the block as the span of a request."""
        model = exchange.body["model"]
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
        context = self._propagate.extract(carrier)
        kind = self._trace.SpanKind.SERVER
        with self._tracer.start_as_current_span(f"chat {model}", context, kind, attributes) as span:
            sent = dict(exchange.headers)
            self._propagate.inject(sent)
            exchange.headers = sent
            try:
                yield
            finally:
                record = exchange.record
                if record.finish:
                    span.set_attribute("gen_ai.response.finish_reasons", (record.finish,))
                if record.usage is not None:
                    span.set_attribute("gen_ai.usage.input_tokens", record.usage.input_tokens)
                    span.set_attribute("gen_ai.usage.output_tokens", record.usage.output_tokens)
                span.set_attribute("agentkit.format", record.format)
                span.set_attribute("agentkit.recovered_calls", record.recovered)

    def count(
        self, model: str, wire: str, status: int, seconds: float, first: float | None, record: ReplyRecord
    ) -> None:
        """Count a request that has ended; see `GatewayMetrics.count`."""
        attributes: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
        self._seconds.record(seconds, attributes | {"http.response.status_code": status, "agentkit.wire": wire})
        if first is not None:
            self._first.record(first, attributes)
        if record.usage is not None:
            for kind, tokens in (("input", record.usage.input_tokens), ("output", record.usage.output_tokens)):
                if tokens:
                    self._tokens.record(tokens, attributes | {"gen_ai.token.type": kind})
