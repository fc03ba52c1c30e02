"""The settings of a gateway: one frozen tree of values, from a YAML file or from options, checked against tables.

Knows no HTTP. Keys are never in it: only the names of the environment variables that have them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agentkit.checks.bounds import SECONDS, TEXT, Bound, Bounds, each, instance, number, one_of, or_none, whole
from agentkit.checks.callers import LOOPBACK
from agentkit.checks.keys import shown_url
from agentkit.checks.spelling import did_you_mean, unknown
from agentkit.errors import ConfigError, FormatError, install_command
from agentkit.gateway.client_wire import PATHS, WireName
from agentkit.models.secrets import Address
from agentkit.models.servers import CONSTRAINED, SERVERS, Constrained, GrammarField

SettingPlace = Callable[[str], str]
"""How a message names a setting, by its path, such as `models.qwen.format`."""

ANY_MODEL: Final = "*"
"""The name of the model whose settings are those of all names that are not in `models`."""


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """A model server.

    Args:
        name: for messages and logs.
        url: as a client of its API has it, such as `http://127.0.0.1:8000/v1`.
        wire: the API that it speaks.
        server: its kind, a key of `agentkit.models.servers.SERVERS`; None if it is another.
        key_env: the environment variable with its key; None passes the client's key on, unless the gateway
            has its own keys.
        repeats: how often a request is repeated that the server was too busy for, or could not be reached with. A
            client repeats it as well.
    """

    name: str
    url: str
    wire: WireName = "chat"
    server: str | None = None
    key_env: str | None = None
    repeats: int = 2


@dataclass(frozen=True, slots=True)
class GatewayModel:
    """How requests for one model are answered; see `Route`.

    Args:
        name: the client's name of the model; `*` stands for all other names.
        upstream: the name of its server.
        model: the upstream's name; None for the client's.
        format: `auto`, `raw`, or the name of a text format.
        constrained: whether calls in text are constrained by a grammar.
        retries: how often the model is asked again after a reply that is not an answer.
    """

    name: str
    upstream: str
    model: str | None = None
    format: str = "auto"
    constrained: Constrained = False
    retries: int = 2


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """Limits on what a client can make the gateway keep.

    Args:
        body_bytes: of one request. By default Anthropic's limit on requests.
        header_bytes: of one request's line and headers.
        concurrent: requests that are answered at the same time.
        queue: requests that wait for one of these to end; a further one is refused with status 503.
    """

    body_bytes: int = 32 * 1024 * 1024
    header_bytes: int = 32 * 1024
    concurrent: int = 1_000
    queue: int = 1_000


@dataclass(frozen=True, slots=True)
class GatewayTimeouts:
    """Limits in seconds.

    Args:
        connect: until an upstream accepts a connection.
        first_byte: until the status of its reply. A server may read a long prompt first.
        idle: between two pieces of a reply, and between two that a client takes.
        total: of a whole reply.
        request: until a client has sent its request.
        queue: that a request waits for others to end.
        heartbeat: after which a silent stream gets a comment, so that proxies keep it open.
        shutdown: that running replies have after SIGTERM.
    """

    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 300.0
    total: float = 3600.0
    request: float = 30.0
    queue: float = 10.0
    heartbeat: float = 15.0
    shutdown: float = 30.0


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """A gateway.

    Args:
        upstreams: the servers by name.
        models: the models by the client's name, with `*` for all others, if there are any.
        keys: the environment variables with the keys of clients, by the name of the client; empty asks for no key.
        allowed_hosts: further names by which clients call it, in addition to loopback names.
        allowed_origins: web pages that may call it, such as `http://localhost:3000`.
        host: the address to listen at.
        port: 0 chooses a free one.
        limits: of requests.
        timeouts: in seconds.
        log: the file of the access log; `-` for standard output, None for no log.
    """

    upstreams: Mapping[str, UpstreamSettings]
    models: Mapping[str, GatewayModel]
    keys: Mapping[str, str] = field(default_factory=dict)
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 4000
    limits: GatewayLimits = GatewayLimits()
    timeouts: GatewayTimeouts = GatewayTimeouts()
    log: str | None = "-"


_MAPPING: Final = instance(Mapping, "a mapping")
_TEXTS: Final = each(TEXT, "a list of strings")
_NAME: Final = Bound(lambda value: isinstance(value, str) and value.isidentifier(), "the name of a variable")

_TOP: Final[Bounds] = {
    "upstreams": _MAPPING,
    "models": _MAPPING,
    "keys": _MAPPING,
    "allowed_hosts": _TEXTS,
    "allowed_origins": _TEXTS,
    "host": TEXT,
    "port": Bound(lambda value: whole(0).holds(value) and value < 65_536, "a port from 0 to 65535"),
    "limits": _MAPPING,
    "timeouts": _MAPPING,
    "log": or_none(TEXT, "for no log"),
}
_UPSTREAM: Final[Bounds] = {
    "url": TEXT,
    "wire": one_of(PATHS),
    "server": or_none(one_of(SERVERS), "for any other server"),
    "key_env": or_none(_NAME),
    "repeats": whole(0),
}
_MODEL: Final[Bounds] = {
    "upstream": TEXT,
    "model": or_none(TEXT, "for the same name"),
    "format": TEXT,
    "constrained": CONSTRAINED,
    "retries": whole(0),
}
_LIMITS: Final[Bounds] = dict.fromkeys(("body_bytes", "header_bytes", "concurrent"), whole(1)) | {"queue": whole(0)}
_TIMEOUTS: Final[Bounds] = {
    **dict.fromkeys(("connect", "first_byte", "idle", "total", "request", "heartbeat"), SECONDS),
    **dict.fromkeys(("queue", "shutdown"), number("seconds, 0 or more", above=-1e-9)),
}


def read_config(path: str | os.PathLike[str]) -> GatewayConfig:
    """Read a gateway's YAML file; its keys are the fields of `GatewayConfig` and of its parts.

    Raises:
        ConfigError: it cannot be read, or a setting is wrong; says where, what was found, and what was expected.
    """
    try:
        import yaml
    except ImportError as e:
        raise ConfigError(f"{path}: reading it needs PyYAML: {install_command('gateway')}") from e
    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise ConfigError(f"{path}: cannot be read as YAML: {e}") from e
    return config_of(found, lambda place: f"{path}: {place}" if place else str(path))


def config_of(found: Any, at: SettingPlace, *, needs_upstream: bool = True) -> GatewayConfig:
    """Check settings, and return them as values.

    Args:
        found: as in the YAML file.
        at: how a message names a setting.
        needs_upstream: whether there must be a server; not with agents.

    Raises:
        ConfigError: a setting is wrong.
    """
    top = _section(found, _TOP, "", at)
    upstreams = {
        str(name): _upstream(str(name), one, f"upstreams.{name}", at) for name, one in top.get("upstreams", {}).items()
    }
    if not upstreams and needs_upstream:
        raise ConfigError(f"{at('upstreams')}: expected at least one server, such as local: {{url: http://…/v1}}")
    models = {
        str(name): _model(str(name), one, upstreams, f"models.{name}", at)
        for name, one in (top.get("models") or ({ANY_MODEL: {}} if upstreams else {})).items()
    }
    keys = {str(name): _checked(env, _NAME, f"keys.{name}", at) for name, env in top.get("keys", {}).items()}
    rest = {name: top[name] for name in ("host", "port", "log") if name in top}
    config = GatewayConfig(
        upstreams=upstreams,
        models=models,
        keys=keys,
        allowed_hosts=tuple(top.get("allowed_hosts", ())),
        allowed_origins=tuple(top.get("allowed_origins", ())),
        limits=GatewayLimits(**_section(top.get("limits", {}), _LIMITS, "limits", at)),
        timeouts=GatewayTimeouts(**_section(top.get("timeouts", {}), _TIMEOUTS, "timeouts", at)),
        **rest,
    )
    _refuse_open(config, at)
    return config


def _section(found: Any, bounds: Bounds, place: str, at: SettingPlace) -> dict[str, Any]:
    """The settings of one part, each checked."""
    if not isinstance(found, Mapping):
        raise ConfigError(f"{at(place)}: expected a mapping with {', '.join(bounds)}, found {found!r:.60}")
    for name, value in found.items():
        here = f"{place}.{name}" if place else str(name)
        if name not in bounds:
            raise ConfigError(f"{at(here)}: {unknown('setting', str(name), bounds)}")
        _checked(value, bounds[name], here, at)
    return dict(found)


def _checked(value: Any, bound: Bound, place: str, at: SettingPlace) -> Any:
    if not bound.holds(value):
        hint = did_you_mean(value, bound.choices) if isinstance(value, str) else ""
        raise ConfigError(f"{at(place)}: expected {bound.words}, found {value!r:.60}{hint}")
    return value


def _upstream(name: str, found: Any, place: str, at: SettingPlace) -> UpstreamSettings:
    settings = _section(found, _UPSTREAM, place, at)
    if "url" not in settings:
        raise ConfigError(f"{at(place)}: has no url, such as http://127.0.0.1:8000/v1")
    url, here = settings["url"], at(f"{place}.url")
    try:
        address = Address.of(url)
    except ValueError:
        raise ConfigError(
            f"{here}: expected a URL such as http://127.0.0.1:8000/v1, found {shown_url(url)!r}"
        ) from None
    if url.rstrip("/").endswith(tuple(PATHS.values())):
        raise ConfigError(f"{here}: expected the part before the API's path, such as http://…/v1, found {url}")
    if address.headers or address.query:
        raise ConfigError(f"{here}: has credentials or a query; name the variable of the server's key in key_env")
    return UpstreamSettings(name, **settings)


def _model(
    name: str, found: Any, upstreams: Mapping[str, UpstreamSettings], place: str, at: SettingPlace
) -> GatewayModel:
    settings = _section({} if found is None else found, _MODEL, place, at)
    if "upstream" not in settings:
        if len(upstreams) > 1:
            raise ConfigError(f"{at(place)}: has no upstream; there are {', '.join(upstreams)}")
        settings["upstream"] = next(iter(upstreams))
    if settings["upstream"] not in upstreams:
        raise ConfigError(f"{at(f'{place}.upstream')}: {unknown('upstream', settings['upstream'], upstreams)}")
    if (format := settings.get("format", "auto")) not in ("auto", "raw"):
        from agentkit import formats

        try:
            formats.get(format)
        except FormatError as e:
            raise ConfigError(f"{at(f'{place}.format')}: expected auto, raw or a text format; {e}") from e
    if settings.get("constrained"):
        _refuse_free(format, upstreams[settings["upstream"]], at(f"{place}.constrained"))
    return GatewayModel(name, **settings)


def _refuse_free(format: str, upstream: UpstreamSettings, here: str) -> None:
    """Refuse a constraint without calls in text, or without a server that accepts grammars."""
    if format in ("auto", "raw"):
        raise ConfigError(f"{here}: only calls in a text format are constrained: name one as format, such as xml")
    accepting = [name for name, one in SERVERS.items() if isinstance(one.grammar, GrammarField)]
    if upstream.server not in accepting or upstream.wire != "chat":
        raise ConfigError(
            f"{here}: needs a server that accepts grammars on chat completions: name it as server, one of "
            f"{', '.join(accepting)}; found {upstream.server or 'none'}, on {upstream.wire}"
        )


def _refuse_open(config: GatewayConfig, at: SettingPlace) -> None:
    """Refuse a gateway that other machines can reach, if its guards are off."""
    if config.host in LOOPBACK:
        return
    reached = f"{at('host')}: {config.host!r} can be reached from other machines"
    if not config.allowed_hosts:
        raise ConfigError(f"{reached}: list the names by which clients call the gateway in {at('allowed_hosts')}")
    if not config.keys and any(upstream.key_env for upstream in config.upstreams.values()):
        raise ConfigError(f"{reached}, and would share an upstream's key with them: give clients {at('keys')}")
