"""Argument names of other toolkits, above all AgentPress, by the callable that takes them. Tables only.

A value is agentkit's name, or an explanation after a colon if there is no single name. `docs/agentpress.md` shows the
tables `AGENTPRESS_…` to readers; a test keeps the two in sync.
"""

from __future__ import annotations

from typing import Final

from agentkit.foreign.attributes import Words, same

_TO_MODEL: Final = "it belongs to the model: model('openai:…', {}=…) of agentkit.models"
_TO_BODY: Final = "it is a field of the request's body: extra={{'{}': …}}"
_TO_AGENT: Final = "it belongs to the agent: Agent(…, {}=…)"
_TO_RUN: Final = "it belongs to the run: agent.run(…, {}=…)"

_TO_THREAD: Final = (
    "to keep a conversation write threads.say_sync('its id', 'Hello', agent=agent), or `await threads.say(…)`, with "
    "threads = agentkit.ThreadManager()"
)
_MCP: Final = "a server is passed among the tools: tools=[MCPTools('https://…/mcp')], of agentkit.interop.mcp"
_FEW_TOOLS: Final = "to offer only the tools that fit the conversation write Agent(…, offered_tools=10)"
_CHAIN: Final = "a chain is one model: Agent(first_of('openai:gpt-5', 'anthropic:…'))"
_STORED: Final = "to let OpenAI store the conversation write model('responses:…', stateful=True)"
_MODES: Final = "a stream yields every event: async for event in agent.stream('…'), or only the text: .text_stream()"
_GUARD: Final = "guards=Guards({}=[function]) of agentkit; it gets {}"
_CONVERSATION: Final = "messages message_history history chat_history conversation initial_messages"
_KEPT: Final = "thread thread_id session session_id conversation_id previous_response_id memory checkpointer"

_REQUEST: Final[Words] = {
    **{name: _TO_BODY.format(name) for name in ("top_p", "top_k", "seed", "presence_penalty", "frequency_penalty")},
    **{name: _TO_BODY.format(name) for name in ("logit_bias", "metadata", "service_tier", "user")},
    "reasoning_effort": "it is a field of the request's body: extra={'reasoning_effort': 'low'}",
    "thinking": "it is a field of the request's body: extra={'thinking': {…}}",
    "max_output_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "stop_sequences": "stop",
    "parallel_calls": "parallel_tool_calls",
    "streaming": "stream",
    "extra_body": "extra",
    "model_settings": "pass its entries as separate arguments: temperature=…, max_tokens=…",
    **{name: _TO_MODEL.format(name) for name in ("api_key", "base_url", "headers", "max_retries", "format")},
}
"""The settings of a request to a model."""

AGENT: Final[Words] = {
    **_REQUEST,
    **same("system", "instructions system_prompt system_message prompt developer"),
    **same("tools", "functions toolset toolsets registry tool_registry"),
    **same("model", "llm model_name llm_model"),
    **same("max_turns", "max_iterations max_steps recursion_limit max_loops request_limit"),
    **same("hooks", "callbacks handlers on_event hook listeners event_stream_handler"),
    **same("output_retries", "max_output_retries result_retries"),
    **same(
        "output_retries=… for an invalid output, reply_retries=… for no answer; tools' errors go to the model",
        "retries tool_retries",
    ),
    **same("output_type", "result_type response_model response_format output_schema"),
    **same("config", "processor_config tool_config"),
    **same("budget", "usage_limits limits max_cost"),
    **same("pass the conversation to the run: agent.run([*messages, 'and now?'])", _CONVERSATION),
    "context": _TO_RUN.format("context"),
    "deps": _TO_RUN.format("context"),
    "deps_type": _TO_RUN.format("context"),
    "handoffs": "make the agent a tool of another: tools=[other.as_tool('name', 'what it is good at')]",
    "sub_agents": "make the agent a tool of another: tools=[other.as_tool('name', 'what it is good at')]",
    **same(_TO_THREAD, _KEPT),
    **same("pass what tools need from the application as agent.run(…, context=…)", "context_schema state_schema"),
    **{name: _GUARD.format("request", "a ModelRequest and the run") for name in ("input_guardrails", "before_model")},
    **{
        name: _GUARD.format("call", "a ToolCall and its ToolContext") for name in ("before_tool_callback", "tool_hooks")
    },
    **same(_GUARD.format("reply", "an AssistantMessage and the run"), "output_guardrails output_validators"),
    **same(_GUARD.format("reply", "an AssistantMessage and the run"), "after_model after_model_callback"),
    "end_strategy": "calls_with_output",
    **same("guards", "guardrails middleware plugins pre_hooks post_hooks capabilities"),
    "tool_use_behavior": "to let a tool end the run write @openapi_schema(terminates=True)",
    **same("to require approval for a tool write @openapi_schema(requires_approval=True)", "interrupt_on"),
    **same("to require approval for a tool write @openapi_schema(requires_approval=True)", "interrupt_before"),
    **same(
        "pass the description for other agents when it becomes a tool: agent.as_tool('name', 'description')",
        "description handoff_description",
    ),
    "timeout": "for one tool it is ProcessorConfig(timeout=…), for a whole run Budget(seconds=…)",
    **same("hooks receive every event: hooks=[lambda event, run: print(event)]", "verbose debug"),
    **same("tracing is done by a hook: hooks=[OpenTelemetry()] of agentkit.telemetry", "instrument tracing"),
    **same(
        "long conversations are compacted in a thread: ThreadManager(compaction=Compaction(…)) of agentkit.threads",
        "history_processors context_manager summarization",
    ),
    **same("system", "state_modifier messages_modifier instruction"),
    **same("output_type", "schema output_model output"),
    **same(_MCP, "mcp_servers mcp"),
    **same(_CHAIN, "fallback_models fallback_model fallbacks"),
    **same("offered_tools", "tool_limit max_tools tools_top_k limit"),
    **same(_FEW_TOOLS, "prepare_tools tool_search tool_filter tool_retriever retrieve_tools_function defer_loading"),
}

RUN: Final[Words] = {
    **_REQUEST,
    **same("prompt", "message input user_prompt query question task content text"),
    **same("the conversation is the prompt: agent.run(messages), or agent.run([*messages, 'and now?'])", _CONVERSATION),
    **same("output_type", "result_type response_model response_format output_schema"),
    **same("context", "deps state dependencies"),
    **same("cancel", "cancellation_event cancel_event cancellation_token"),
    **same("decisions", "approvals approved approve decision resume deferred_tool_results"),
    **same(_TO_THREAD, f"{_KEPT} config"),
    **same(_MODES, "stream_mode version"),
    "run_config": "pass each setting as an argument: temperature=…, context=…",
    "usage": "each run has its own, result.usage; to limit several together use Agent(…, budget=Budget(…))",
    **same("output_type", "schema output_model"),
}

GUARDS: Final[Words] = {
    **same("request", "input inputs input_guardrails before_model before_model_callback"),
    **same("call", "tool tools calls before_tool before_tool_callback"),
    **same("reply", "output outputs output_guardrails after_model after_model_callback"),
}

AGENTPRESS_RUN_THREAD: Final[Words] = {
    "llm_model": "model",
    "llm_temperature": "temperature",
    "llm_max_tokens": "max_tokens",
    "native_max_auto_continues": "max_turns",
    "max_xml_tool_calls": "to limit the number of calls use processor_config=ProcessorConfig(max_calls=…)",
    "include_xml_examples": "omit it: a model with a text format is always taught it, with an example",
    "enable_thinking": "it is a field of the request's body: extra={'reasoning_effort': 'low'}",
    "reasoning_effort": "it is a field of the request's body: extra={'reasoning_effort': 'low'}",
    "enable_context_manager": "conversations are compacted by compaction=Compaction(…) of agentkit.threads",
    "generation": "tracing is done by a hook: ThreadManager(hooks=[…])",
    "latest_user_message_content": "add it first: await threads.add_message(thread_id, 'the text')",
    "cancellation_event": "cancel",
}

RUN_THREAD: Final[Words] = {
    **_REQUEST,
    **same("thread_id", "thread id session session_id conversation_id"),
    **AGENTPRESS_RUN_THREAD,
    **same("system_prompt", "instructions system system_message"),
    **same("processor_config", "config processor"),
    **same("model", "llm model_name"),
    **same("max_turns", "max_iterations max_steps"),
    **same("output_type", "result_type response_model response_format output_schema"),
    **same("context", "deps state"),
    **same("add it first: await threads.add_message(thread_id, 'the text')", "prompt message messages input"),
    "tools": "the manager has the tools: threads.add_tool(MyTool), or threads.add_tool(function)",
    "agent": "to run your own agent write run_agent(thread_id, agent)",
    "hooks": "it belongs to the manager: ThreadManager(hooks=[…])",
    "decisions": "decisions about a thread's calls are stored: call approve(…) or deny(…), then run the thread",
}

AGENTPRESS_CREATE_THREAD: Final[Words] = {
    "account_id": "pass application data about a thread as metadata={'account_id': …}",
    "project_id": "pass application data about a thread as metadata={'project_id': …}",
    "is_public": "pass application data about a thread as metadata={'is_public': …}",
}

CREATE_THREAD: Final[Words] = {
    **AGENTPRESS_CREATE_THREAD,
    **same("thread_id", "id name new_id"),
    **same("exist_ok", "exists_ok if_not_exists get_or_create if_exists"),
    **same("messages", "message history prompt"),
    **same("pass application data about a thread as metadata={…}", "title user_id"),
    "system_prompt": "a thread does not store it: pass it to run_thread(thread_id, system_prompt)",
}

AGENTPRESS_ADD_MESSAGE: Final[Words] = {
    "type": "it is part of the message: message={'role': 'user', 'content': …}",
    "content": "message",
    "is_llm_message": "omit it: models read every message of a thread",
    "metadata": "messages do not have it; pass application data about the thread as create_thread(metadata=…)",
    "agent_id": "messages do not have it; pass application data about the thread as create_thread(metadata=…)",
    "agent_version_id": "messages do not have it; pass application data about the thread as create_thread(metadata=…)",
}

ADD_MESSAGE: Final[Words] = {
    **AGENTPRESS_ADD_MESSAGE,
    "role": "it is part of the message: message={'role': 'user', 'content': …}",
    **same("message", "text prompt messages input"),
    "id": "client_id",
}

AGENTPRESS_PROCESSOR_CONFIG: Final[Words] = {
    "xml_tool_calling": "list the text formats whose calls run: formats='xml'; formats=() for none",
    "native_tool_calling": "native",
    "execute_tools": "omit the tools, or let a person decide: requires_approval=True",
    "execute_on_stream": "write execute='stream' for True, execute='end' for False",
    "tool_execution_strategy": "strategy",
    "xml_adding_strategy": "set the role of results with result_role='user' or 'tool'",
    "max_xml_tool_calls": "max_calls",
}

PROCESSOR_CONFIG: Final[Words] = {
    **AGENTPRESS_PROCESSOR_CONFIG,
    "format": "formats",
    "parallel": "strategy",
    "max_tool_calls": "max_calls",
    **same("timeout", "tool_timeout seconds"),
    **same("requires_approval", "approval approve"),
}

THREAD_MANAGER: Final[Words] = {
    **same("store", "path db database url dsn"),
    **same("registry", "tools tool_registry"),
    "model": "pass a model to each run: run_thread(thread_id, model='openai:gpt-5')",
    "system_prompt": "pass it to each run: run_thread(thread_id, 'You are brief.', 'openai:gpt-5')",
    "callbacks": "hooks",
}

MODEL: Final[Words] = {
    **{name: text for name, text in _REQUEST.items() if text.startswith("it is a field")},
    **same("name", "model model_name id"),
    **same("api_key", "key token openai_api_key anthropic_api_key"),
    **same("base_url", "url api_base endpoint host"),
    **same("format", "formats tool_format tool_parser"),
    **same("max_tokens", "max_output_tokens max_completion_tokens"),
    **same("max_retries", "retries num_retries"),
    **same(_CHAIN, "fallback_models fallback_model fallbacks"),
    **same(_STORED, "store previous_response_id use_previous_response_id use_responses_api"),
    "extra_body": "extra",
    "extra_headers": "headers",
    "client": "http_client",
    "system": _TO_AGENT.format("system"),
    "tools": _TO_AGENT.format("tools"),
    "provider": "it is the first part of the name: model('openai:gpt-5')",
    **same("it is a header: headers={'OpenAI-Organization': …}", "organization project"),
}

FIRST_OF: Final[Words] = {
    **same("pass them directly: first_of('openai:gpt-5', model)", "models fallback_models fallbacks"),
    **same("omit it: ProviderError.kind decides, as first_of says", "fallback_on exceptions_to_handle"),
    **{name: _TO_MODEL.format(name) for name in ("max_tokens", "temperature", "max_retries", "timeout", "format")},
}

XML_SCHEMA: Final[Words] = {
    "tag": "tag_name",
    "mapping": "mappings",
    "examples": "example",
    "text": "content",
    "params": "mappings",
    "parameters": "mappings",
    "attrs": "attributes",
    **same("elements", "children child_elements nodes tags"),
    "body": "content",
    **same("pass the tag as @xml_schema(name=…), and the positions of its parameters as mappings=[…]", "schema root"),
    "description": "describe a tool in its docstring, or with @openapi_schema(description=…)",
}

XML_MAPPING: Final[Words] = {
    **same("param_name", "param name parameter field"),
    **same("node_type", "type kind node"),
    **same("path", "xpath attribute tag"),
}

OPENAPI_SCHEMA: Final[Words] = {
    **same("parameters", "params properties"),
    **same("name", "tool_name name_override function_name"),
    **same("description", "desc doc description_override tool_description docstring"),
    **same("pass a schema as positional argument: @openapi_schema({…})", "schema input_schema args_schema json_schema"),
    **same("requires_approval", "requires_confirmation require_confirmation human_approval approve approval"),
    **same("requires_approval", "needs_approval confirm"),
    "args_validator": "to check calls write a guard: Agent(…, guards=Guards(call=[function]))",
    **same("omit it: docstrings are always parsed", "docstring_format require_parameter_descriptions"),
    **same("a tool's error is sent to the model, which may call it again", "retries max_retries"),
    **same("annotate a parameter with ToolContext to receive what the application passed to the run", "takes_ctx"),
    **same("annotate a parameter with ToolContext to receive what the application passed to the run", "inject_context"),
    **same(_FEW_TOOLS, "defer_loading deferred"),
    **same("choose an agent's tools with Agent(…, tools=[…])", "is_enabled prepare enabled"),
    **same("omit it: nothing would read it", "tags metadata category"),
    **same("terminates", "terminal final return_direct"),
    "seconds": "timeout",
    "max_chars": "max_output",
    **same("exclusive", "one_at_a_time sequential lock"),
    **same("one_thread", "same_thread check_same_thread thread worker"),
    "parallel": "write exclusive=True for one call at a time",
    "strict": "for strict schemas write registry.get_openapi_schemas('strict')",
}

AS_TOOL: Final[Words] = {
    "tool_name": "name",
    **same("description", "tool_description desc"),
    "custom_output_extractor": "the caller reads the agent's final reply; output_type sets its type",
    "max_turns": _TO_AGENT.format("max_turns"),
}

SCRIPTED: Final[Words] = {
    **same(
        "script", "responses turns messages replies outputs function custom_output_text custom_output_args call_tools"
    ),
    **same("name", "model_name model"),
}

APPROVED: Final[Words] = {
    **same("arguments", "args override_args edited_args"),
    **same("an approval does not have it; in a thread write threads.approve(thread_id, call_id, by='Eve')", "by"),
    **same("an approval does not have it; in a thread write threads.approve(thread_id, call_id, by='Eve')", "reason"),
    **same("an approval does not have it; in a thread write threads.approve(thread_id, call_id, by='Eve')", "message"),
    **same(
        "a conversation in memory forgets it; in a thread write threads.approve(thread_id, call_id, remember=True)",
        "remember always always_approve",
    ),
}
APPROVE: Final[Words] = {
    **same("arguments", "args override_args edited_args"),
    **same("remember", "always_approve always always_allow rule"),
}
ALLOW: Final[Words] = {
    **same("rule", "tool name tool_name"),
    **same("write a rule: AllowRule('run', {'command': 'git status *'})", "args arguments pattern"),
    **same("registry", "tools agent"),
}
ALLOW_RULE: Final[Words] = {
    **same("tool", "name tool_name function"),
    **same("arguments", "args pattern patterns input"),
}
DENIED: Final[Words] = same("reason", "message why feedback text")

REGISTRY: Final[Words] = same("pass them directly: ToolRegistry(add, MyTool())", "tools functions")

TOOL_RESULT: Final[Words] = {
    **same("output", "result value data text message return_value"),
    **same("error", "err exception error_message"),
    **same("content", "images parts"),
    "ok": "success",
    "is_error": "write error='what went wrong'",
    "score": "reward",
    "meta": "metadata",
}

BUDGET: Final[Words] = {
    **same("tokens", "max_tokens token_limit total_tokens input_tokens_limit output_tokens_limit total_tokens_limit"),
    **same("cost", "max_cost usd dollars money cost_limit"),
    **same("seconds", "timeout max_seconds time"),
    **same("tool_calls", "max_calls calls tool_call_limit"),
    **same("limit the turns with Agent(max_turns=…)", "turns max_turns requests request_limit"),
    "price": "prices",
}

FLAVOURS: Final[Words] = {
    **same("chat", "openai completions chat_completions mistral ollama vllm"),
    **same("responses", "openai_responses response"),
    "openai_strict": "strict",
    "claude": "anthropic",
    **same("gemini", "google vertex"),
}

TOOL_CHOICE: Final[Words] = {"any": "required", "must": "required", "force": "required", "off": "none"}

_NATIVE: Final = "omit the format to use the provider's native calls"

CONTEXTS: Final = frozenset(("context", "ctx", "run_context", "tool_context", "wrapper", "runtime", "state", "deps"))
"""Other toolkits' names for a parameter that receives what the application passed to the run."""

CONTEXT_TYPES: Final = frozenset(("RunContext", "RunContextWrapper", "ToolRuntime", "InjectedState", "Context"))
"""Other toolkits' names for its type."""

FORMATS: Final[Words] = {
    **same(_NATIVE, "native anthropic json function_calling tools none"),
}

MCP_TOOLS: Final[Words] = {
    **same("the command is one list: MCPTools(['npx', '-y', 'server-time'])", "args arguments"),
    **same("server", "command url server_params transport"),
    **same("only", "tools tool_names allowed_tools include_tools tool_filter"),
    **same("prefix", "tool_name_prefix tool_prefix"),
    "process_tool_call": "to check calls write a guard: Agent(…, guards=Guards(call=[function]))",
    "sampling_model": "sample",
    **same("env", "environment environ"),
    **same("timeout", "read_timeout tool_timeout timeout_seconds"),
}
