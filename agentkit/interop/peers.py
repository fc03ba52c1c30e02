"""The other systems by name: how each is installed, which function names it reserves, which parts of a schema it keeps.

A table. A system is imported when an export asks for it (`require`).
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, Final

from agentkit.checks.spelling import unknown
from agentkit.errors import ConfigError, SchemaError
from agentkit.schemas.dialects import EARLY_VERL, HINTS, VERL, Dialect
from agentkit.schemas.schema_reducer import reduced_schema
from agentkit.tool import BoundTool, ToolRegistry
from agentkit.toolspec import ToolSpec

_LOG: Final = logging.getLogger("agentkit.interop")


@dataclass(frozen=True, slots=True)
class Peer:
    """A system that calls agentkit tools.

    Args:
        name: as its users write it.
        install: what to install.
        module: the module that must be importable.
        reserved: names that have their own meaning in its loop.
        dialect: the part of JSON Schema that it passes on; None for all of it.
    """

    name: str
    install: str
    module: str
    reserved: frozenset[str] = frozenset()
    dialect: Dialect | None = None


_LIFE: Final = frozenset(("reset", "step", "state", "close", "get_reward", "verify", "seed_session", "mcp"))
"""What environments call their own: OpenEnv's reset, step, state and close, TRL's get_reward, NeMo Gym's verify and
seed_session, and the room of MCP servers. One list for all of them, so that a tool that one takes, all take."""

VERL_PEER: Final = Peer("verl", "verl", "verl.tools.base_tool", _LIFE, VERL)
EARLY_VERL_PEER: Final = Peer("verl 0.7 and earlier", "verl<0.8", "verl.tools.base_tool", _LIFE, EARLY_VERL)
OPEN_INSTRUCT: Final = Peer("open-instruct", "a checkout of allenai/open-instruct", "open_instruct", _LIFE)
TRL: Final = Peer("TRL", "trl", "trl", _LIFE, HINTS)
VERIFIERS: Final = Peer("verifiers", "verifiers", "verifiers", _LIFE)
SKYRL: Final = Peer("SkyRL", "skyrl-gym", "skyrl_gym", _LIFE)
OPENAI_AGENTS: Final = Peer("OpenAI Agents", "openai-agents", "agents")
LANGCHAIN: Final = Peer("LangChain", "langchain-core", "langchain_core.tools")
PYDANTIC_AI: Final = Peer("pydantic-ai", "pydantic-ai-slim", "pydantic_ai")
VLLM: Final = Peer("vLLM", "vllm", "vllm")
SGLANG: Final = Peer("SGLang", "sglang", "sglang")

PEERS: Final[Mapping[str, Peer]] = {
    "verl": VERL_PEER,
    "verl<0.8": EARLY_VERL_PEER,
    "open_instruct": OPEN_INSTRUCT,
    "trl": TRL,
    "verifiers": VERIFIERS,
    "skyrl": SKYRL,
    "openai_agents": OPENAI_AGENTS,
    "langchain": LANGCHAIN,
    "pydantic_ai": PYDANTIC_AI,
}
"""Each peer by the name that `export_report` takes."""


def require(peer: Peer, module: str | None = None) -> ModuleType:
    """Import a module of a peer.

    Args:
        peer: the system.
        module: which one; its main one by default.

    Raises:
        ConfigError: it is not installed, or another version than this adapter knows.
    """
    wanted = module or peer.module
    try:
        return importlib.import_module(wanted)
    except ImportError as e:
        how = peer.install if " " in peer.install else f'pip install "{peer.install}"'
        raise ConfigError(f"this export needs {peer.name}: {how} ({type(e).__name__}: {e})") from e


def refuse_reserved(peer: Peer, tools: Iterable[BoundTool]) -> None:
    """Refuse function names that the peer's loop would take for its own.

    Raises:
        SchemaError: there is one.
    """
    for bound in tools:
        if bound.name in peer.reserved:
            raise SchemaError(
                f"{bound.where}: {peer.name} keeps the name {bound.name!r} for itself; register the tool under another "
                "name: @openapi_schema(name='…')"
            )


def parameters_for(peer: Peer, spec: ToolSpec) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A tool's schema as the peer passes it on, and one line for each thing that is in descriptions only."""
    if peer.dialect is None:
        return dict(spec.parameters), ()
    parameters, losses = reduced_schema(spec.parameters, peer.dialect)
    return parameters, tuple(map(str, losses))


def export_parameters(peer: Peer, spec: ToolSpec) -> dict[str, Any]:
    """Return the tool's schema as the peer takes it; losses are logged, once for each peer and tool."""
    parameters, losses = parameters_for(peer, spec)
    if losses:
        _warn(peer.name, spec.name, losses)
    return parameters


@cache
def _warn(peer: str, tool: str, losses: tuple[str, ...]) -> None:
    _LOG.warning("%s cannot express all of the schema of %r: %s", peer, tool, "; ".join(losses))


def export_report(tools: Any, peer: str) -> dict[str, tuple[str, ...]]:
    """Return, by tool, the rules of schemas that a peer cannot express; the model reads them in descriptions.

    Args:
        tools: what `ToolRegistry` accepts: one tool, or a list.
        peer: a name of `PEERS`, such as `verl` or `trl`.

    Raises:
        ConfigError: there is no such peer.
    """
    if peer not in PEERS:
        raise ConfigError(unknown("peer", str(peer), PEERS))
    specs = (tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)).offered_specs(None)
    reports = {spec.name: parameters_for(PEERS[peer], spec)[1] for spec in specs}
    return {name: report for name, report in reports.items() if report}
