"""verifiers' own rollout loop with a scripted client."""

from __future__ import annotations

from typing import Any

from peer_tools import Adder

from agentkit.interop.verifiers import to_verifiers


def client_of(vf: Any, calls: list[tuple[str, str]]) -> Any:
    """A client of verifiers' that makes one call a turn, then answers."""
    from verifiers.legacy.clients import Client
    from verifiers.legacy.types import Response, ResponseMessage, ToolCall

    class Scripted(Client):
        def __init__(self) -> None:
            self.asked: list[Any] = []

        async def get_response(self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **_: Any) -> Any:
            self.asked.append(tools)
            turn = sum(message.role == "assistant" for message in prompt)
            made = (
                [ToolCall(id=f"c{turn}", name=calls[turn][0], arguments=calls[turn][1])] if turn < len(calls) else None
            )
            message = ResponseMessage(
                content="" if made else "done",
                tool_calls=made,
                finish_reason="tool_calls" if made else "stop",
                is_truncated=False,
            )
            return Response(id="r", created=0, model=model, message=message, usage=None)

        def setup_client(self, config: Any) -> Any: ...
        async def to_native_tool(self, tool: Any) -> Any: ...
        async def to_native_prompt(self, messages: Any) -> Any: ...
        async def get_native_response(self, *args: Any, **kwargs: Any) -> Any: ...
        async def raise_from_native_response(self, response: Any) -> None: ...
        async def from_native_response(self, response: Any) -> Any: ...
        async def close(self) -> None: ...

    return Scripted()


def environment(vf: Any, tool: Any = Adder) -> Any:
    from datasets import Dataset

    data = Dataset.from_list([{"question": "Add.", "answer": "36"}])
    return to_verifiers(tool)(dataset=data, max_turns=20)


async def rollout(env: Any, client: Any, **info: Any) -> Any:
    sample = {"prompt": [{"role": "user", "content": "Add."}], "example_id": 0, "info": info}
    state = await env._run_rollout_state(sample, client, "m", {})
    return state


def answers(state: Any) -> list[str]:
    return [message.content for message in state["completion"] if message.role == "tool"]
