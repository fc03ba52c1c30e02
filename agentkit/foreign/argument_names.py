"""Argument names of other toolkits, above all AgentPress, by the callable that takes them. Tables only.

A value is agentkit's name, or an explanation after a colon if there is no single name. `docs/agentpress.md` shows the
tables `AGENTPRESS_…` to readers; a test keeps the two in sync.
"""

from __future__ import annotations

from typing import Final

from agentkit.foreign.attributes import Words

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
_CONVERSATION: Final = ("messages", "message_history", "history", "chat_history", "conversation", "initial_messages")
_KEPT: Final = (
    *("thread", "thread_id", "session", "session_id", "conversation_id", "previous_response_id"),
    *("memory", "checkpointer"),
)

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
    **dict.fromkeys(("instructions", "system_prompt", "system_message", "prompt", "developer"), "system"),
    **dict.fromkeys(("functions", "toolset", "toolsets", "registry", "tool_registry"), "tools"),
    **dict.fromkeys(("llm", "model_name", "llm_model"), "model"),
    **dict.fromkeys(("max_iterations", "max_steps", "recursion_limit", "max_loops", "request_limit"), "max_turns"),
    **dict.fromkeys(("callbacks", "handlers", "on_event", "hook", "listeners"), "hooks"),
    **dict.fromkeys(("max_output_retries", "result_retries"), "output_retries"),
    "retries": "output_retries=… for an invalid output, reply_retries=… for no answer; tools' errors go to the model",
    **dict.fromkeys(("result_type", "response_model", "response_format", "output_schema"), "output_type"),
    **dict.fromkeys(("processor_config", "tool_config"), "config"),
    **dict.fromkeys(("usage_limits", "limits", "max_cost"), "budget"),
    **dict.fromkeys(_CONVERSATION, "pass the conversation to the run: agent.run([*messages, 'and now?'])"),
    "context": _TO_RUN.format("context"),
    "deps": _TO_RUN.format("context"),
    "deps_type": _TO_RUN.format("context"),
    "handoffs": "make the agent a tool of another: tools=[other.as_tool('name', 'what it is good at')]",
    "sub_agents": "make the agent a tool of another: tools=[other.as_tool('name', 'what it is good at')]",
    **dict.fromkeys(_KEPT, _TO_THREAD),
    **dict.fromkeys(
        ("context_schema", "state_schema"), "pass what tools need from the application as agent.run(…, context=…)"
    ),
    **{name: _GUARD.format("request", "a ModelRequest and the run") for name in ("input_guardrails", "before_model")},
    **{
        name: _GUARD.format("call", "a ToolCall and its ToolContext") for name in ("before_tool_callback", "tool_hooks")
    },
    **dict.fromkeys(
        ("output_guardrails", "output_validators", "after_model", "after_model_callback"),
        _GUARD.format("reply", "an AssistantMessage and the run"),
    ),
    "end_strategy": "calls_with_output",
    **dict.fromkeys(("guardrails", "middleware", "plugins", "pre_hooks", "post_hooks"), "guards"),
    "tool_use_behavior": "to let a tool end the run write @openapi_schema(terminates=True)",
    **dict.fromkeys(
        ("interrupt_on", "interrupt_before"),
        "to require approval for a tool write @openapi_schema(requires_approval=True)",
    ),
    **dict.fromkeys(
        ("description", "handoff_description"),
        "pass the description for other agents when it becomes a tool: agent.as_tool('name', 'description')",
    ),
    "timeout": "for one tool it is ProcessorConfig(timeout=…), for a whole run Budget(seconds=…)",
    **dict.fromkeys(("verbose", "debug"), "hooks receive every event: hooks=[lambda event, run: print(event)]"),
    **dict.fromkeys(
        ("instrument", "tracing"), "tracing is done by a hook: hooks=[OpenTelemetry()] of agentkit.telemetry"
    ),
    **dict.fromkeys(
        ("history_processors", "context_manager", "summarization"),
        "long conversations are compacted in a thread: ThreadManager(compaction=Compaction(…)) of agentkit.threads",
    ),
    **dict.fromkeys(("state_modifier", "messages_modifier", "instruction"), "system"),
    **dict.fromkeys(("schema", "output_model", "output"), "output_type"),
    **dict.fromkeys(("mcp_servers", "mcp"), _MCP),
    **dict.fromkeys(("fallback_models", "fallback_model", "fallbacks"), _CHAIN),
    **dict.fromkeys(("tool_limit", "max_tools", "tools_top_k", "limit"), "offered_tools"),
    **dict.fromkeys(
        ("prepare_tools", "tool_search", "tool_filter", "tool_retriever", "retrieve_tools_function", "defer_loading"),
        _FEW_TOOLS,
    ),
}

RUN: Final[Words] = {
    **_REQUEST,
    **dict.fromkeys(("message", "input", "user_prompt", "query", "question", "task", "content", "text"), "prompt"),
    **dict.fromkeys(
        _CONVERSATION, "the conversation is the prompt: agent.run(messages), or agent.run([*messages, 'and now?'])"
    ),
    **dict.fromkeys(("result_type", "response_model", "response_format", "output_schema"), "output_type"),
    **dict.fromkeys(("deps", "state", "dependencies"), "context"),
    **dict.fromkeys(("cancellation_event", "cancel_event", "cancellation_token"), "cancel"),
    **dict.fromkeys(("approvals", "approved", "approve", "decision", "resume", "deferred_tool_results"), "decisions"),
    **dict.fromkeys((*_KEPT, "config"), _TO_THREAD),
    **dict.fromkeys(("stream_mode", "version"), _MODES),
    "run_config": "pass each setting as an argument: temperature=…, context=…",
    "usage": "each run has its own, result.usage; to limit several together use Agent(…, budget=Budget(…))",
    **dict.fromkeys(("schema", "output_model"), "output_type"),
}

GUARDS: Final[Words] = {
    **dict.fromkeys(("input", "inputs", "input_guardrails", "before_model", "before_model_callback"), "request"),
    **dict.fromkeys(("tool", "tools", "calls", "before_tool", "before_tool_callback"), "call"),
    **dict.fromkeys(("output", "outputs", "output_guardrails", "after_model", "after_model_callback"), "reply"),
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
    **dict.fromkeys(("thread", "id", "session", "session_id", "conversation_id"), "thread_id"),
    **AGENTPRESS_RUN_THREAD,
    **dict.fromkeys(("instructions", "system", "system_message"), "system_prompt"),
    **dict.fromkeys(("config", "processor"), "processor_config"),
    **dict.fromkeys(("llm", "model_name"), "model"),
    **dict.fromkeys(("max_iterations", "max_steps"), "max_turns"),
    **dict.fromkeys(("result_type", "response_model", "response_format", "output_schema"), "output_type"),
    **dict.fromkeys(("deps", "state"), "context"),
    **dict.fromkeys(
        ("prompt", "message", "messages", "input"), "add it first: await threads.add_message(thread_id, 'the text')"
    ),
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
    **dict.fromkeys(("id", "name", "new_id"), "thread_id"),
    **dict.fromkeys(("exists_ok", "if_not_exists", "get_or_create", "if_exists"), "exist_ok"),
    **dict.fromkeys(("message", "history", "prompt"), "messages"),
    **dict.fromkeys(("title", "user_id"), "pass application data about a thread as metadata={…}"),
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
    **dict.fromkeys(("text", "prompt", "messages", "input"), "message"),
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
    **dict.fromkeys(("tool_timeout", "seconds"), "timeout"),
    **dict.fromkeys(("approval", "approve"), "requires_approval"),
}

THREAD_MANAGER: Final[Words] = {
    **dict.fromkeys(("path", "db", "database", "url", "dsn"), "store"),
    **dict.fromkeys(("tools", "tool_registry"), "registry"),
    "model": "pass a model to each run: run_thread(thread_id, model='openai:gpt-5')",
    "system_prompt": "pass it to each run: run_thread(thread_id, 'You are brief.', 'openai:gpt-5')",
    "callbacks": "hooks",
}

MODEL: Final[Words] = {
    **{name: text for name, text in _REQUEST.items() if text.startswith("it is a field")},
    **dict.fromkeys(("model", "model_name", "id"), "name"),
    **dict.fromkeys(("key", "token", "openai_api_key", "anthropic_api_key"), "api_key"),
    **dict.fromkeys(("url", "api_base", "endpoint", "host"), "base_url"),
    **dict.fromkeys(("formats", "tool_format", "tool_parser"), "format"),
    **dict.fromkeys(("max_output_tokens", "max_completion_tokens"), "max_tokens"),
    **dict.fromkeys(("retries", "num_retries"), "max_retries"),
    **dict.fromkeys(("fallback_models", "fallback_model", "fallbacks"), _CHAIN),
    **dict.fromkeys(("store", "previous_response_id", "use_previous_response_id", "use_responses_api"), _STORED),
    "extra_body": "extra",
    "extra_headers": "headers",
    "client": "http_client",
    "system": _TO_AGENT.format("system"),
    "tools": _TO_AGENT.format("tools"),
    "provider": "it is the first part of the name: model('openai:gpt-5')",
    **dict.fromkeys(("organization", "project"), "it is a header: headers={'OpenAI-Organization': …}"),
}

FIRST_OF: Final[Words] = {
    **dict.fromkeys(("models", "fallback_models", "fallbacks"), "pass them directly: first_of('openai:gpt-5', model)"),
    **dict.fromkeys(("fallback_on", "exceptions_to_handle"), "omit it: ProviderError.kind decides, as first_of says"),
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
    **dict.fromkeys(("children", "child_elements", "nodes", "tags"), "elements"),
    "body": "content",
    **dict.fromkeys(
        ("schema", "root"), "pass the tag as @xml_schema(name=…), and the positions of its parameters as mappings=[…]"
    ),
    "description": "describe a tool in its docstring, or with @openapi_schema(description=…)",
}

XML_MAPPING: Final[Words] = {
    **dict.fromkeys(("param", "name", "parameter", "field"), "param_name"),
    **dict.fromkeys(("type", "kind", "node"), "node_type"),
    **dict.fromkeys(("xpath", "attribute", "tag"), "path"),
}

OPENAPI_SCHEMA: Final[Words] = {
    "desc": "description",
    "doc": "description",
    "approval": "requires_approval",
    "needs_approval": "requires_approval",
    "confirm": "requires_approval",
    "params": "parameters",
    "properties": "parameters",
    **dict.fromkeys(("tool_name", "name_override", "function_name"), "name"),
    **dict.fromkeys(("description_override", "tool_description", "docstring"), "description"),
    **dict.fromkeys(
        ("schema", "input_schema", "args_schema", "json_schema"),
        "pass a schema as positional argument: @openapi_schema({…})",
    ),
    **dict.fromkeys(
        ("requires_confirmation", "require_confirmation", "human_approval", "approve"), "requires_approval"
    ),
    **dict.fromkeys(("retries", "max_retries"), "a tool's error is sent to the model, which may call it again"),
    **dict.fromkeys(
        ("takes_ctx", "inject_context"),
        "annotate a parameter with ToolContext to receive what the application passed to the run",
    ),
    **dict.fromkeys(("defer_loading", "deferred"), _FEW_TOOLS),
    **dict.fromkeys(("is_enabled", "prepare", "enabled"), "choose an agent's tools with Agent(…, tools=[…])"),
    **dict.fromkeys(("tags", "metadata", "category"), "omit it: nothing would read it"),
    "terminal": "terminates",
    "final": "terminates",
    "return_direct": "terminates",
    "seconds": "timeout",
    "max_chars": "max_output",
    "one_at_a_time": "exclusive",
    "sequential": "exclusive",
    "lock": "exclusive",
    **dict.fromkeys(("same_thread", "check_same_thread", "thread", "worker"), "one_thread"),
    "parallel": "write exclusive=True for one call at a time",
    "strict": "for strict schemas write registry.get_openapi_schemas('strict')",
}

AS_TOOL: Final[Words] = {
    "tool_name": "name",
    **dict.fromkeys(("tool_description", "desc"), "description"),
    "custom_output_extractor": "the caller reads the agent's final reply; output_type sets its type",
    "max_turns": _TO_AGENT.format("max_turns"),
}

SCRIPTED: Final[Words] = {
    **dict.fromkeys(("responses", "turns", "messages", "replies", "outputs"), "script"),
    **dict.fromkeys(("model_name", "model"), "name"),
}

APPROVED: Final[Words] = {
    **dict.fromkeys(("args", "override_args", "edited_args"), "arguments"),
    **dict.fromkeys(
        ("by", "reason", "message"),
        "an approval does not have it; in a thread write threads.approve(thread_id, call_id, by='Eve')",
    ),
    **dict.fromkeys(
        ("remember", "always", "always_approve"),
        "a conversation in memory forgets it; in a thread write threads.approve(thread_id, call_id, remember=True)",
    ),
}
APPROVE: Final[Words] = {
    **dict.fromkeys(("args", "override_args", "edited_args"), "arguments"),
    **dict.fromkeys(("always_approve", "always", "always_allow", "rule"), "remember"),
}
ALLOW: Final[Words] = {
    **dict.fromkeys(("tool", "name", "tool_name"), "rule"),
    **dict.fromkeys(("args", "arguments", "pattern"), "write a rule: AllowRule('run', {'command': 'git status *'})"),
    **dict.fromkeys(("tools", "agent"), "registry"),
}
ALLOW_RULE: Final[Words] = {
    **dict.fromkeys(("name", "tool_name", "function"), "tool"),
    **dict.fromkeys(("args", "pattern", "patterns", "input"), "arguments"),
}
DENIED: Final[Words] = {**dict.fromkeys(("message", "why", "feedback", "text"), "reason")}

REGISTRY: Final[Words] = dict.fromkeys(("tools", "functions"), "pass them directly: ToolRegistry(add, MyTool())")

TOOL_RESULT: Final[Words] = {
    **dict.fromkeys(("result", "value", "data", "text", "message", "return_value"), "output"),
    **dict.fromkeys(("err", "exception", "error_message"), "error"),
    **dict.fromkeys(("images", "parts"), "content"),
    "ok": "success",
    "is_error": "write error='what went wrong'",
    "score": "reward",
    "meta": "metadata",
}

BUDGET: Final[Words] = {
    **dict.fromkeys(("max_tokens", "token_limit", "total_tokens"), "tokens"),
    **dict.fromkeys(("max_cost", "usd", "dollars", "money"), "cost"),
    **dict.fromkeys(("timeout", "max_seconds", "time"), "seconds"),
    **dict.fromkeys(("max_calls", "calls", "tool_call_limit"), "tool_calls"),
    "turns": "limit the turns with Agent(max_turns=…)",
    **dict.fromkeys(("requests", "request_limit"), "limit the turns with Agent(max_turns=…)"),
    "max_turns": "limit the turns with Agent(max_turns=…)",
    "price": "prices",
}

FLAVOURS: Final[Words] = {
    **dict.fromkeys(("openai", "completions", "chat_completions", "mistral", "ollama", "vllm"), "chat"),
    **dict.fromkeys(("openai_responses", "response"), "responses"),
    "openai_strict": "strict",
    "claude": "anthropic",
    **dict.fromkeys(("google", "vertex"), "gemini"),
}

TOOL_CHOICE: Final[Words] = {"any": "required", "must": "required", "force": "required", "off": "none"}

_NATIVE: Final = "omit the format to use the provider's native calls"

CONTEXTS: Final = frozenset(("context", "ctx", "run_context", "tool_context", "wrapper", "runtime", "state", "deps"))
"""Other toolkits' names for a parameter that receives what the application passed to the run."""

CONTEXT_TYPES: Final = frozenset(("RunContext", "RunContextWrapper", "ToolRuntime", "InjectedState", "Context"))
"""Other toolkits' names for its type."""

FORMATS: Final[Words] = {
    **dict.fromkeys(("native", "anthropic", "json", "function_calling", "tools", "none"), _NATIVE),
}

MCP_TOOLS: Final[Words] = {
    **dict.fromkeys(("args", "arguments"), "the command is one list: MCPTools(['npx', '-y', 'server-time'])"),
    **dict.fromkeys(("command", "url", "server_params", "transport"), "server"),
    **dict.fromkeys(("tools", "tool_names", "allowed_tools", "include_tools", "tool_filter"), "only"),
    **dict.fromkeys(("tool_name_prefix", "tool_prefix"), "prefix"),
    **dict.fromkeys(("environment", "environ"), "env"),
    **dict.fromkeys(("read_timeout", "tool_timeout", "timeout_seconds"), "timeout"),
}
