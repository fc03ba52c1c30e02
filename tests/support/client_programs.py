"""Programs of many clients, each as its own documentation shows it: two tools, a loop, streamed or whole.

Knows no agentkit: it also runs in other environments, as a process that reads jobs and writes what a client saw, one
JSON object a line. See `benchmarks/gateway_clients.py`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

QUESTION: Final = "How warm is it in Oslo?"
RESULTS: Final = {"find_city": "city-3143244-found", "celsius": "seven-degrees", "fahrenheit": "forty-five-degrees"}
CITY: Final = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "country": {"type": "string"}},
    "required": ["name", "country"],
}
WEATHER: Final = {
    "type": "object",
    "properties": {"city": {"type": "integer"}, "unit": {"type": "string"}},
    "required": ["city", "unit"],
}
TOOLS: Final = (("find_city", "Find a city.", CITY), ("read_weather", "Read the weather of a city.", WEATHER))
TURNS: Final = 5
"""Requests after which a program gives up."""


class Seen(NamedTuple):
    """What a client saw: the calls that it ran, and all text, in which white space does not count."""

    calls: list[tuple[str, dict[str, Any]]]
    text: str


class Tools:
    """The tools, and the calls that were made."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def find_city(self, name: str, country: str) -> str:
        """Find a city."""
        self.calls.append(("find_city", {"name": name, "country": country}))
        return RESULTS["find_city"]

    def read_weather(self, city: int, unit: str) -> str:
        """Read the weather of a city."""
        self.calls.append(("read_weather", {"city": city, "unit": unit}))
        return RESULTS[unit]

    def call(self, name: str, arguments: Any) -> str:
        found = json.loads(arguments) if isinstance(arguments, str) else arguments
        result: str = getattr(self, name)(**found)
        return result

    def seen(self, texts: Iterable[str]) -> Seen:
        return Seen(self.calls, " ".join(" ".join(texts).split()))


# ---------------------------------------------------------------- SDKs


def openai_chat(url: str, model: str, streamed: bool) -> Seen:
    """The openai package, chat completions; its own accumulation of a stream."""
    import openai

    client, tools, texts = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0), Tools(), []
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    offered: Any = [
        {"type": "function", "function": {"name": name, "description": words, "parameters": schema}}
        for name, words, schema in TOOLS
    ]
    for _ in range(TURNS):
        text = []
        if streamed:
            with client.chat.completions.stream(model=model, messages=messages, tools=offered) as stream:
                text = [event.delta for event in stream if event.type == "content.delta"]
                choice = stream.get_final_completion().choices[0]
            assert "".join(text) == (choice.message.content or "")
        else:
            choice = client.chat.completions.create(model=model, messages=messages, tools=offered).choices[0]
        said = choice.message
        texts.append(said.content or "")
        assert choice.finish_reason == ("tool_calls" if said.tool_calls else "stop"), choice.finish_reason
        if not said.tool_calls:
            break
        messages.append(said.model_dump(exclude_none=True))
        for call in said.tool_calls:
            result = tools.call(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    client.close()
    return tools.seen(texts)


def openai_responses(url: str, model: str, streamed: bool) -> Seen:
    """The openai package, responses; its own accumulation of a stream."""
    import openai

    client, tools, texts = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0), Tools(), []
    items: list[Any] = [{"role": "user", "content": QUESTION}]
    offered: Any = [
        {"type": "function", "name": name, "description": words, "parameters": schema} for name, words, schema in TOOLS
    ]
    for _ in range(TURNS):
        if streamed:
            with client.responses.stream(model=model, input=items, tools=offered, store=False) as stream:
                text = [event.delta for event in stream if event.type == "response.output_text.delta"]
                response: Any = stream.get_final_response()
            assert "".join(text) == response.output_text
        else:
            response = client.responses.create(model=model, input=items, tools=offered, store=False)
        texts.append(response.output_text)
        assert response.status == "completed", response.status
        calls = [item for item in response.output if item.type == "function_call"]
        items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]
        if not calls:
            break
        for call in calls:
            result = tools.call(call.name, call.arguments)
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    client.close()
    return tools.seen(texts)


def anthropic_messages(url: str, model: str, streamed: bool) -> Seen:
    """The anthropic package; its own accumulation of a stream."""
    import anthropic

    client, tools, texts = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0), Tools(), []
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    offered: Any = [{"name": name, "description": words, "input_schema": schema} for name, words, schema in TOOLS]
    asked: dict[str, Any] = {"model": model, "max_tokens": 500, "tools": offered}
    for _ in range(TURNS):
        if streamed:
            with client.messages.stream(messages=messages, **asked) as stream:
                text = [*stream.text_stream]
                message = stream.get_final_message()
            assert "".join(text) == "".join(block.text for block in message.content if block.type == "text")
        else:
            message = client.messages.create(messages=messages, **asked)
        texts += [block.text for block in message.content if block.type == "text"]
        calls = [block for block in message.content if block.type == "tool_use"]
        assert message.stop_reason == ("tool_use" if calls else "end_turn"), message.stop_reason
        if not calls:
            break
        messages.append({"role": "assistant", "content": [block.model_dump() for block in message.content]})
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": tools.call(call.name, call.input)}
            for call in calls
        ]
        messages.append({"role": "user", "content": results})
    client.close()
    return tools.seen(texts)


# ---------------------------------------------------------------- toolkits


def _agents(url: str, model: str, streamed: bool, kind: str) -> Seen:
    import openai
    from agents import (
        Agent,
        OpenAIChatCompletionsModel,
        OpenAIResponsesModel,
        Runner,
        function_tool,
        set_tracing_disabled,
    )

    set_tracing_disabled(True)
    tools = Tools()

    async def run() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
            form = OpenAIChatCompletionsModel if kind == "chat" else OpenAIResponsesModel

            async def find_city(name: str, country: str) -> str:
                """Find a city."""
                return tools.find_city(name, country)

            async def read_weather(city: int, unit: str) -> str:
                """Read the weather of a city."""
                return tools.read_weather(city, unit)

            offered: Any = [function_tool(find_city), function_tool(read_weather)]
            agent = Agent("agent", model=form(model, client), tools=offered)
            if not streamed:
                result: Any = await Runner.run(agent, QUESTION, max_turns=TURNS)
                messages = [item for item in result.new_items if item.type == "message_output_item"]
                return [part.text for item in messages for part in item.raw_item.content]
            result = Runner.run_streamed(agent, QUESTION, max_turns=TURNS)
            texts = []
            async for event in result.stream_events():
                if event.type == "raw_response_event":
                    if event.data.type == "response.output_text.delta":
                        texts.append(event.data.delta)
                    elif event.data.type == "response.completed":
                        texts.append(" ")
            assert result.final_output
            return ["".join(texts)]

    return tools.seen(asyncio.run(run()))


def openai_agents_chat(url: str, model: str, streamed: bool) -> Seen:
    """openai-agents over chat completions."""
    return _agents(url, model, streamed, "chat")


def openai_agents_responses(url: str, model: str, streamed: bool) -> Seen:
    """openai-agents over responses."""
    return _agents(url, model, streamed, "responses")


def _pydantic(client: Any, made: Callable[[Any], Any], streamed: bool) -> Seen:
    from pydantic_ai import Agent, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta, Tool

    tools = Tools()
    offered = [Tool(tool, sequential=True) for tool in (tools.find_city, tools.read_weather)]

    async def run() -> list[str]:
        async with client:
            return await seen(Agent(made(client), tools=offered))

    async def seen(agent: Any) -> list[str]:
        if not streamed:
            result = await agent.run(QUESTION)
            parts = [part for message in result.all_messages() for part in message.parts]
            return [part.content for part in parts if isinstance(part, TextPart)]
        texts = []
        async with agent.run_stream_events(QUESTION) as events:
            async for event in events:
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                    texts.append(" " + event.part.content)
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                    texts.append(event.delta.content_delta)
        return ["".join(texts)]

    return tools.seen(asyncio.run(run()))


def _pydantic_openai(form: str, url: str, model: str, streamed: bool) -> Seen:
    import openai
    from pydantic_ai.models import openai as models
    from pydantic_ai.providers.openai import OpenAIProvider

    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    return _pydantic(client, lambda c: getattr(models, form)(model, provider=OpenAIProvider(openai_client=c)), streamed)


def pydantic_ai_chat(url: str, model: str, streamed: bool) -> Seen:
    """pydantic-ai over chat completions."""
    return _pydantic_openai("OpenAIChatModel", url, model, streamed)


def pydantic_ai_responses(url: str, model: str, streamed: bool) -> Seen:
    """pydantic-ai over responses."""
    return _pydantic_openai("OpenAIResponsesModel", url, model, streamed)


def pydantic_ai_messages(url: str, model: str, streamed: bool) -> Seen:
    """pydantic-ai over Anthropic's messages."""
    import anthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0)
    return _pydantic(client, lambda c: AnthropicModel(model, provider=AnthropicProvider(anthropic_client=c)), streamed)


def _langchain(made: Any, streamed: bool) -> Seen:
    from langchain_core.messages import HumanMessage, ToolMessage

    tools, texts = Tools(), []
    chat = made.bind_tools([tools.find_city, tools.read_weather])
    messages: list[Any] = [HumanMessage(QUESTION)]
    for _ in range(TURNS):
        if streamed:
            said: Any = None
            for chunk in chat.stream(messages):
                said = chunk if said is None else said + chunk
        else:
            said = chat.invoke(messages)
        text = said.text
        texts.append(text() if callable(text) and not isinstance(text, str) else text)
        assert not said.invalid_tool_calls, said.invalid_tool_calls
        if not said.tool_calls:
            break
        messages.append(said)
        messages += [ToolMessage(tools.call(c["name"], c["args"]), tool_call_id=c["id"]) for c in said.tool_calls]
    return tools.seen(texts)


def langchain_chat(url: str, model: str, streamed: bool) -> Seen:
    """langchain-openai over chat completions."""
    from langchain_openai import ChatOpenAI

    return _langchain(ChatOpenAI(model=model, base_url=f"{url}/v1", api_key="k", max_retries=0), streamed)


def langchain_responses(url: str, model: str, streamed: bool) -> Seen:
    """langchain-openai over responses."""
    from langchain_openai import ChatOpenAI

    made = ChatOpenAI(model=model, base_url=f"{url}/v1", api_key="k", max_retries=0, use_responses_api=True)
    return _langchain(made, streamed)


def langchain_messages(url: str, model: str, streamed: bool) -> Seen:
    """langchain-anthropic."""
    from langchain_anthropic import ChatAnthropic

    return _langchain(ChatAnthropic(model=model, base_url=url, api_key="k", max_retries=0), streamed)


def _llm(form: str, url: str, model: str, streamed: bool) -> Seen:
    import llm
    from llm.default_plugins import openai_models

    tools = Tools()
    made = getattr(openai_models, form)(
        f"c-{model}", model_name=model, api_base=f"{url}/v1", key="k", supports_tools=True, can_stream=True
    )
    made.needs_key = None
    offered = [llm.Tool.function(tools.find_city), llm.Tool.function(tools.read_weather)]
    chain = made.conversation().chain(QUESTION, tools=offered, stream=streamed, chain_limit=TURNS)
    return tools.seen(["".join(response) for response in chain.responses()])


def llm_chat(url: str, model: str, streamed: bool) -> Seen:
    """simonw/llm over chat completions."""
    return _llm("Chat", url, model, streamed)


def llm_responses(url: str, model: str, streamed: bool) -> Seen:
    """simonw/llm over responses."""
    return _llm("Responses", url, model, streamed)


PROGRAMS: Final[dict[str, Callable[[str, str, bool], Seen]]] = {
    "openai chat": openai_chat,
    "openai responses": openai_responses,
    "anthropic": anthropic_messages,
    "openai-agents chat": openai_agents_chat,
    "openai-agents responses": openai_agents_responses,
    "pydantic-ai chat": pydantic_ai_chat,
    "pydantic-ai responses": pydantic_ai_responses,
    "pydantic-ai anthropic": pydantic_ai_messages,
    "langchain-openai chat": langchain_chat,
    "langchain-openai responses": langchain_responses,
    "langchain-anthropic": langchain_messages,
    "llm chat": llm_chat,
    "llm responses": llm_responses,
}
"""What a client can be, by the name that a table shows."""


def answered(jobs: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Run the job of each line: `[client, url, model, streamed]`."""
    for line in jobs:
        client, url, model, streamed = json.loads(line)
        try:
            seen = PROGRAMS[client](url, model, streamed)
            yield {"calls": seen.calls, "text": seen.text}
        except Exception as error:  # noqa: BLE001 - a client's failure is what the table shows
            where = traceback.extract_tb(error.__traceback__)[-1]
            yield {"error": f"{type(error).__name__} at {where.name}:{where.lineno}: {error}"[:600]}


if __name__ == "__main__":
    for found in answered(sys.stdin):
        print(json.dumps(found), flush=True)
