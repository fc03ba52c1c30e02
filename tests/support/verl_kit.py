"""verl's own, unmodified `ToolAgentLoop` on a CPU: a tokenizer of characters, and a server that reads from a script."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections.abc import Callable, Iterable
from typing import Any

END = "<|im_end|>"


class Characters:
    """A tokenizer with a token for each character, and ChatML as its template."""

    def encode(self, text: str, **_: Any) -> list[int]:
        return [ord(c) for c in text]

    def decode(self, ids: Iterable[int], **_: Any) -> str:
        return "".join(map(chr, ids))

    def apply_chat_template(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        tokenize: bool = True,
        **_: Any,
    ) -> Any:
        head = f"<|im_start|>system\n{json.dumps(tools)}{END}\n" if tools else ""
        text = head + "".join(f"<|im_start|>{m['role']}\n{m['content'] or ''}{END}\n" for m in messages)
        text += "<|im_start|>assistant\n" if add_generation_prompt else ""
        return self.encode(text) if tokenize else text


class Server:
    """Answers the n-th request of a trajectory with the n-th text of its script."""

    def __init__(self, script: list[str]) -> None:
        self.script = script
        self.asked: dict[str, int] = {}

    async def generate(self, request_id: str, prompt_ids: list[int], **_: Any) -> Any:
        from verl.workers.rollout.replica import TokenOutput

        turn = self.asked.get(request_id, 0)
        self.asked[request_id] = turn + 1
        await asyncio.sleep(0)
        return TokenOutput(token_ids=[ord(c) for c in self.script[turn] + END])


def hermes(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def loop_of(tools: list[Any], script: list[str], format: str = "hermes", **settings: Any) -> Any:
    """Verl's agent loop with these tools; to be made inside a running event loop."""
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap, ToolListWrap
    from verl.experimental.agent_loop.tool_agent_loop import ToolAgentLoop

    multi_turn = {
        "max_user_turns": None,
        "max_assistant_turns": None,
        "max_parallel_calls": 4,
        "max_tool_response_length": 4000,
        "tool_response_truncate_side": "middle",
        "format": format,
        **settings,
    }
    rollout = {
        "multi_turn": multi_turn,
        "prompt_length": 8000,
        "response_length": 100_000,
        "full_determinism": False,
    }
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}})
    return ToolAgentLoop(
        trainer_config=DictConfigWrap(config),
        server_manager=Server(script),
        tokenizer=Characters(),
        processor=None,
        dataset_cls=object,
        data_config=DictConfigWrap(OmegaConf.create({})),
        tools=ToolListWrap(tools),
    )


def made(classes: dict[str, Callable[..., Any]]) -> list[Any]:
    """Instances of generated classes, as verl's YAML makes them; verl prints their schemas."""
    with contextlib.redirect_stdout(io.StringIO()):
        return [cls(config={"type": "native"}, tool_schema=None) for cls in classes.values()]


def said(output: Any) -> str:
    """All that followed the prompt, as text."""
    return Characters().decode(output.response_ids)
