"""agentkit's formats as verl's tool parsers, so that `multi_turn.format` may name any of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from agentkit import formats
from agentkit.formats import Format
from agentkit.interop.peers import VERL_PEER, require
from agentkit.rollout.tokens.tool_parsers import ToolParser

PREFIX: Final = "agentkit_"
"""The prefix of our formats' names in verl, so that its own stay: `agentkit_hermes`."""


def register_formats(names: Iterable[str | Format] | None = None) -> list[str]:
    """Register formats in verl's `ToolParser`.

    A call that cannot be read is handed on with words in place of arguments, so that verl answers it; its own parsers
    drop it, and the trajectory ends.

    Args:
        names: which formats; None for all.

    Returns:
        The names that `actor_rollout_ref.rollout.multi_turn.format` may have: `agentkit_` and the format's name.

    Raises:
        ConfigError: verl is not installed, or has no such parsers (before 0.6).
        FormatError: a format is unknown.
    """
    module = require(VERL_PEER, "verl.experimental.agent_loop.tool_parser")
    chosen = [formats.get(name) for name in (formats.names() if names is None else names)]
    for format in chosen:
        module.ToolParser.register(PREFIX + format.name)(_parser_class(module, format))
    return [PREFIX + format.name for format in chosen]


def _parser_class(module: Any, format: Format) -> type[Any]:
    def construct(self: Any, tokenizer: Any) -> None:
        module.ToolParser.__init__(self, tokenizer)
        self.ours = ToolParser(tokenizer, format)

    async def extract_tool_calls(self: Any, responses_ids: list[int], tools: Any = None) -> tuple[str, list[Any]]:
        content, calls = await self.ours.extract_tool_calls(responses_ids, tools or ())
        made = [module.FunctionCall(name=c.name, arguments=c.arguments, tool_call_id=c.tool_call_id) for c in calls]
        return content, made

    members = {
        "__init__": construct,
        "__doc__": f"agentkit's format {format.name!r}.",
        "extract_tool_calls": extract_tool_calls,
        "stop_token_ids": property(lambda self: self.ours.stop_token_ids),
    }
    return type(f"Agentkit{format.name.title().replace('_', '')}Parser", (module.ToolParser,), members)
