"""Chooses what answers a request, by its route."""

from __future__ import annotations

from agentkit.gateway.exchanges import Exchange, GatewayReply


async def answer(exchange: Exchange) -> GatewayReply:
    """Answer a request.

    Raises:
        RequestRefused: it cannot be answered.
    """
    route = exchange.route
    if route.served is not None:
        return await route.served.answer(exchange)
    if route.format == "raw":
        from agentkit.gateway.raw_reply import answer_raw

        return await answer_raw(exchange)
    if route.format == "auto" and route.upstream.wire == exchange.wire.name:
        from agentkit.gateway.passed_reply import answer_passed

        return await answer_passed(exchange)
    from agentkit.gateway.reply_events import answer_read

    return await answer_read(exchange)
