"""Which server answers for which model, and the list of models."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from agentkit.checks.spelling import did_you_mean
from agentkit.errors import ConfigError
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.exchanges import NoUpstream, Route, ServedModel
from agentkit.gateway.gateway_config import ANY_MODEL, GatewayConfig
from agentkit.gateway.upstream import ConnectionPool, HttpUpstream


def key_from(environment: Mapping[str, str], name: str, place: str) -> str:
    """Return a key.

    Args:
        environment: the variables.
        name: the variable with the key.
        place: what it is, for messages.

    Raises:
        ConfigError: it is not set, or no HTTP header can have it.
    """
    if key := environment.get(name, "").strip():
        if key.isascii() and key.isprintable():
            return key
        raise ConfigError(f"{place}: the environment variable {name} has characters that are not printable ASCII")
    raise ConfigError(f"{place}: the environment variable {name} is not set")


class RouteTable:
    """The models of a gateway and their servers.

    Args:
        config: the servers and models.
        environment: the variables with the servers' keys.
        served: the agents that are served as models; their names come before those of `config`.

    Raises:
        ConfigError: a key is not set.
    """

    def __init__(
        self,
        config: GatewayConfig,
        environment: Mapping[str, str] = os.environ,
        served: Sequence[ServedModel] = (),
    ) -> None:
        self.served = {one.name: one for one in served}
        self.pool = ConnectionPool(config.timeouts)
        self.upstreams = {
            name: HttpUpstream(
                one,
                one.key_env and key_from(environment, one.key_env, f"the key of the upstream {name}"),
                self.pool,
            )
            for name, one in config.upstreams.items()
        }
        self._models = config.models

    def find(self, model: Any) -> Route:
        """Return the route of a client's model.

        Raises:
            RequestRefused: it is not a name (400), or not that of a model (404).
        """
        if not isinstance(model, str) or not model:
            raise RequestRefused(400, f"model: expected a name, found {model!r:.60}", "invalid_request", param="model")
        if (served := self.served.get(model)) is not None:
            return Route(model, NoUpstream(), "agent", served=served)
        settings = self._models.get(model) or self._models.get(ANY_MODEL)
        if settings is None:
            known = (*self.served, *self._models)
            hint = did_you_mean(model, known) or f"; there are {', '.join(known)[:500]}"
            message = f"there is no model {model[:100]!r}{hint}"
            raise RequestRefused(404, message, "model_not_found", param="model")
        upstream = self.upstreams[settings.upstream]
        return Route(settings.model or model, upstream, settings.format, settings.constrained, settings.retries)

    async def names(self, headers: Mapping[str, str]) -> list[str]:
        """Return the models: those that are set, and if any other name is accepted, those of its server.

        Args:
            headers: of the client, for its key.

        Raises:
            RequestRefused: none is known, because the server does not list its models.
        """
        names = [*self.served, *(name for name in self._models if name != ANY_MODEL)]
        if (other := self._models.get(ANY_MODEL)) is None or other.model is not None:
            return names
        try:
            found = await self.upstreams[other.upstream].models(headers)
        except RequestRefused:
            if not names:
                raise
            found = []
        return list(dict.fromkeys([*names, *found]))

    async def states(self) -> dict[str, str]:
        """Return whether each server answers: `up` or `down`. Asks those whose last request did not show it."""

        async def state(upstream: HttpUpstream) -> str:
            if not upstream.reachable:
                with suppress(RequestRefused):  # it may answer without a list
                    await upstream.models({})
            return "up" if upstream.reachable else "down"

        return dict(zip(self.upstreams, await asyncio.gather(*map(state, self.upstreams.values())), strict=True))


def model_list(names: list[str], *, anthropic: bool) -> dict[str, Any]:
    """Return a list of models as OpenAI's API has it, or Anthropic's."""
    if anthropic:
        since = "1970-01-01T00:00:00Z"  # a required field; when a model was made is unknown here
        models = [{"type": "model", "id": name, "display_name": name, "created_at": since} for name in names]
        ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
        return {"data": models, "has_more": False, **ends}
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": 0, "owned_by": "agentkit"} for name in names],
    }
