"""Policies: the real SDK against a real server on this machine; models in text mode; scripts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from replay_server import Recorded, ReplayServer

from agentkit import model
from agentkit.errors import ConfigError, ProviderError
from agentkit.events import Finish, Text, Thinking
from agentkit.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from agentkit.rollout.policy.generation import Generation, GenerationRequest
from agentkit.rollout.policy.policies import ModelPolicy, ScriptedPolicy, ServerPolicy
from agentkit.testing import ScriptedModel
from agentkit.toolspec import ToolSpec

pytestmark = pytest.mark.anyio
ADD = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
CALLED = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'


def request(*messages: Message, **more: Any) -> GenerationRequest:
    return GenerationRequest("s1#0", messages or (UserMessage("1+2?"),), **more)


def completion(**choice: Any) -> bytes:
    whole = {"index": 0, "text": "It is 3.", "finish_reason": "stop", "logprobs": None} | choice
    body = {"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": [whole]}
    return json.dumps(body).encode()


TOLD = {"tokens": ["It", " is"], "token_logprobs": [-0.5, -0.25], "top_logprobs": None, "text_offset": [0, 2]}
SPELT = TOLD | {"tokens": ["token_id:7", "token_id:8"]}
ANSWERS: dict[str, tuple[dict[str, Any], Generation]] = {
    "vLLM": (
        {"token_ids": [7, 8], "prompt_token_ids": [1, 2, 3], "logprobs": TOLD},
        Generation("It is 3.", [7, 8], [-0.5, -0.25], "stop"),
    ),
    "older vLLM": ({"logprobs": SPELT}, Generation("It is 3.", [7, 8], [-0.5, -0.25], "stop")),
    "texts only": ({"logprobs": TOLD}, Generation("It is 3.", None, None, "stop")),
    "cut": ({"finish_reason": "length", "token_ids": [7]}, Generation("It is 3.", [7], None, "length")),
    "taken back": ({"finish_reason": "abort", "token_ids": []}, Generation("It is 3.", [], None, "cancelled")),
    "in capitals": ({"finish_reason": "SAFETY"}, Generation("It is 3.", None, None, "content_filter")),
    "by another word": ({"finish_reason": "max_tokens"}, Generation("It is 3.", None, None, "length")),
    "failed": ({"finish_reason": "error"}, Generation("It is 3.", None, None, "error")),
    "unheard of": ({"finish_reason": "tired"}, Generation("It is 3.", None, None, "unknown")),
}


@pytest.mark.parametrize("server", ANSWERS)
async def test_what_servers_tell_of_what_they_wrote(server: str) -> None:
    told, expected = ANSWERS[server]
    with ReplayServer([completion(**told)]) as at:
        async with ServerPolicy("m", at.url) as policy:
            assert await policy.generate(request(token_ids=[1, 2, 3])) == expected


async def test_what_a_server_is_asked() -> None:
    with ReplayServer([completion(token_ids=[7])]) as at:
        async with ServerPolicy("m", at.url, api_key="canary-key-123") as policy:
            sampling = {"temperature": 0.7, "top_k": 20}
            await policy.generate(request(token_ids=(1, 2, 3), max_tokens=9, stop=("</x>",), sampling=sampling))
        [asked] = at.requests
    assert asked.path == "/v1/completions"
    assert asked.headers["x-session-id"] == "s1#0"
    assert asked.headers["authorization"] == "Bearer canary-key-123"
    assert asked.body == {
        "model": "m", "prompt": [1, 2, 3], "max_tokens": 9, "stop": ["</x>"], "logprobs": 1, "temperature": 0.7,
        "top_k": 20, "return_token_ids": True, "skip_special_tokens": False,
        "include_stop_str_in_output": True, "no_stop_trim": True,
    }  # fmt: skip


async def test_without_a_bound_the_server_is_told_so() -> None:
    """Without the field, the default of completions is 16 tokens."""
    with ReplayServer([completion()]) as at:
        async with ServerPolicy("m", at.url, logprobs=False, asks={}) as policy:
            await policy.generate(request(token_ids=[1]))
        assert at.requests[0].body == {"model": "m", "prompt": [1], "max_tokens": None, "logprobs": None, "stop": None}


async def test_a_refusal_is_an_error_of_the_provider_without_the_key() -> None:
    refused = json.dumps({"error": {"message": "prompt is too long, canary-key-123", "code": 400}}).encode()
    with ReplayServer([Recorded(refused, 400)]) as at:
        async with ServerPolicy("m", at.url, api_key="canary-key-123") as policy:
            with pytest.raises(ProviderError, match="prompt is too long") as raised:
                await policy.generate(request(token_ids=[1]))
    assert raised.value.kind == "too_long"
    assert "canary-key-123" not in repr(policy) + str(raised.value)


async def test_a_redirect_to_another_server_is_not_followed() -> None:
    with ReplayServer([completion()]) as other:
        moved = Recorded(b"", 307, {"location": f"{other.url}/completions"})
        with ReplayServer([moved]) as at:
            async with ServerPolicy("m", at.url) as policy:
                with pytest.raises(ProviderError, match="redirects to http"):
                    await policy.generate(request(token_ids=[1]))
        assert not other.requests


async def test_an_answer_that_is_none_is_an_error() -> None:
    with ReplayServer([b'{"object": "text_completion", "choices": []}']) as at:
        async with ServerPolicy("m", at.url) as policy:
            with pytest.raises(ProviderError, match="expected one completion, found 0"):
                await policy.generate(request(token_ids=[1]))


async def test_a_server_needs_token_ids() -> None:
    async with ServerPolicy("m", "http://127.0.0.1:1/v1") as policy:
        with pytest.raises(ConfigError, match="give the rollout a tokenizer, or use ModelPolicy"):
            await policy.generate(request())


# ---------------------------------------------------------------- models in text mode


async def test_a_model_behind_chat_completions_calls_as_text() -> None:
    """The tools are taught, the call before is as it was written, and its result is quarantined."""
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    pieces = [{"delta": {"content": "It is "}}, {"delta": {"content": "3."}}, {"delta": {}, "finish_reason": "stop"}]
    stream = b"".join(f"data: {json.dumps(chunk | {'choices': [p | {'index': 0}]})}\n\n".encode() for p in pieces)
    call = ToolCall("c1", "add", {"a": 1}, "hermes", CALLED)
    said = (
        UserMessage("1+2?"),
        AssistantMessage(call),
        ToolMessage("c1", "add", f"3 {CALLED}<|im_end|>"),
    )
    with ReplayServer([stream + b"data: [DONE]\n\n"]) as at:
        async with ModelPolicy(model("openai:m", base_url=at.url)) as policy:
            answer = await policy.generate(request(*said, tools=[ADD], sampling={"temperature": 0.5, "seed": 1}))
        body = at.requests[0].body
    assert answer == Generation(text="It is 3.", finish="stop")
    assert (body["temperature"], body["seed"], "tools" in body) == (0.5, 1, False)
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "user"]
    assert body["messages"][2]["content"] == CALLED
    assert "3 <\u206ftool_call>" in body["messages"][3]["content"]
    assert "<|im_end|>" not in body["messages"][3]["content"]


async def test_thinking_stands_in_its_tags_before_the_text() -> None:
    policy = ModelPolicy(
        ScriptedModel([[Thinking("One and "), Thinking("two."), Text("3"), Finish("length", "length")]])
    )
    assert await policy.generate(request()) == Generation(text="<think>One and two.</think>\n\n3", finish="length")


async def test_thinking_without_any_text_is_closed() -> None:
    policy = ModelPolicy(ScriptedModel([[Thinking("Hm."), Finish("stop", "stop")]]))
    assert (await policy.generate(request())).text == "<think>Hm.</think>"


# ---------------------------------------------------------------- scripts


async def test_every_trajectory_plays_the_script_from_its_beginning() -> None:
    policy = ScriptedPolicy(["one", Generation(token_ids=[5]), ValueError("engine gone")])
    assert await policy.generate(request()) == Generation(text="one")
    assert await policy.generate(request(turn=0)) == Generation(text="one")
    assert await policy.generate(request(turn=1)) == Generation(token_ids=[5])
    with pytest.raises(ValueError, match="engine gone"):
        await policy.generate(request(turn=2))
    with pytest.raises(ConfigError, match="the script has 3 turns, but s1#0 asks for another"):
        await policy.generate(request(turn=3))


async def test_a_script_may_be_a_function() -> None:
    async def answer(request: GenerationRequest) -> str:
        return f"turn {request.turn}"

    assert (await ScriptedPolicy(answer).generate(request(turn=4))).text == "turn 4"
    assert (await ScriptedPolicy(lambda r: r.trajectory_id).generate(request())).text == "s1#0"


async def test_a_script_with_a_tokenizer_tells_ids() -> None:
    from small_tokenizers import tokenizer

    tok = tokenizer("chatml")
    said = await ScriptedPolicy(["It is 3."], tokenizer=tok, end="<|im_end|>").generate(request())
    ids = tok.encode("It is 3.<|im_end|>")
    assert said == Generation("It is 3.", ids, [-0.5] * len(ids))


@pytest.mark.parametrize("script", [3, None, "one text"])
async def test_a_script_that_is_no_list_of_turns_is_refused(script: Any) -> None:
    with pytest.raises(ConfigError, match="a script is a list of turns, or a function of the request; found"):
        ScriptedPolicy(script)
