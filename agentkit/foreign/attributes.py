"""Attribute names of other toolkits, above all AgentPress, for attributes of agentkit.

Tables only, as in `agentkit.foreign.argument_names`, which has the arguments. A value is agentkit's name, or
an explanation to follow a colon. `agentkit.foreign.absent` turns them into errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Words = Mapping[str, str]


def _same(text: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, text)


_RUN: Final = "write agent.run_sync('…'), or await agent.run('…')"
_STREAM: Final = "write async for event in agent.stream('…')"
_MESSAGES: Final = "the conversation is result.messages; agent.run([*result.messages, 'and now?']) continues it"
_REGISTER: Final = "write registry.register(function), or register_tool(MyTool)"
_CLOSE: Final = "write await x.aclose(), or use it in `async with`"
_SCHEMAS: Final = "write registry.get_openapi_schemas()"
_EXECUTE: Final = "tools are run by an Agent, or by ResponseProcessor(registry)"
_TO_DICT: Final = "it is a frozen value, independent of providers; dataclasses.asdict(…) shows its fields"
_AS_DICTS: Final = "write agentkit.agent.dicts_from(result.messages), for OpenAI's message dicts"
_CLASS: Final = "check its class: isinstance(message, UserMessage), or `match`; the classes are in agentkit.messages"
_PART_CLASS: Final = "check its class: isinstance(part, TextPart), or `match`; the classes are in agentkit.messages"
_EVENT_CLASS: Final = "check its class: isinstance(event, Text), or `match`; the classes are in agentkit.events"

_EVENT: Final[Words] = _same(_EVENT_CLASS, "type", "kind", "event", "event_type", "event_kind", "part_kind")
_CALLED: Final[Words] = {
    **_EVENT,
    **{name: f"write event.call.{name}" for name in ("id", "name", "arguments")},
    **_same("write event.call.id", "call_id", "tool_call_id", "tool_use_id"),
    **_same("write event.call.name", "tool_name", "tool", "function"),
    **_same("call", "tool_call", "function_call", "tool_use"),
    **_same("write event.call.arguments", "args", "input", "parameters", "params"),
}
_ANSWERED: Final[Words] = {
    **_CALLED,
    **{name: f"write event.result.{name}" for name in ("text", "output", "error", "content", "metadata")},
    **_same("write event.result.output", "value", "data"),
    **_same("write event.result.error", "message", "exception"),
    **_same("seconds", "duration", "elapsed"),
}
_SAID: Final[Words] = {**_EVENT, **_same("text", "delta", "content", "chunk", "token", "value", "data")}
_MESSAGE: Final[Words] = {
    **_same(_CLASS, "role", "type", "kind"),
    **_same(
        "write agentkit.agent.dicts_from([message]), for OpenAI's message dict",
        *("model_dump", "model_dump_json", "dict", "to_dict", "json", "to_json"),
    ),
    **_same("content", "parts", "blocks"),
    **_same("messages have no ids or timestamps; threads.get_log(thread_id) has them", "id", "timestamp", "created_at"),
}
_TOKENS: Final[Words] = {
    **_same("input_tokens", "prompt_tokens", "request_tokens"),
    **_same("output_tokens", "completion_tokens", "response_tokens"),
}

_RESULT: Final[Words] = {
    **_same("output", "final_output", "data", "value", "result", "parsed", "output_parsed", "structured_output"),
    **_same("output", "structured_response", "final_answer", "get_output", "final_output_as", "pydantic", "raw"),
    **_same("text", "output_text", "final_text", "response_text", "content", "response", "answer", "reply", "message"),
    **_same("text", "last_message", "final_message", "finish_message"),
    **_same("messages", "all_messages", "to_input_list", "history", "chat_history", "conversation", "input"),
    **_same("new_messages", "new_items", "steps", "intermediate_steps", "items"),
    **_same("finish", "finish_reason", "stop_reason", "status", "end_reason", "state"),
    **_same("pending", "interruptions", "interrupts", "deferred_tool_calls", "required_action"),
    **_same("turns", "num_turns", "requests", "iterations", "num_steps"),
    **{name: f"write result.usage.{name}" for name in ("input_tokens", "output_tokens")},
    **_same("write result.usage.input_tokens + result.usage.output_tokens", "total_tokens"),
    "choices": "there is only one reply: result.text",
    **_same(
        "write [call for m in result.messages if isinstance(m, AssistantMessage) for call in m.calls]",
        *("tool_calls", "calls", "tools_used", "tool_results", "actions"),
    ),
    **_same("usage", "token_usage", "usage_metadata"),
    **_same("errors are raised; result.finish says why the run ended", "error", "exception", "is_error"),
    **_same("the run succeeded if result.finish == 'stop'", "ok", "success", "is_success"),
    **_same("cost", "total_cost", "total_cost_usd", "price"),
    **_same("it is a finished run; to follow a run write agent.stream('…')", "stream", "stream_events", "stream_text"),
    **_same("it is a finished run; to follow a run write agent.stream('…')", "events", "raw_responses"),
    **_same("the provider stores nothing: pass result.messages to the next run", "last_response_id", "response_id"),
    **_same("a run has no state object: write agent.run(result.messages, decisions={call.id: Approved()})", "approve"),
    **_same("a run has no state object: write agent.run(result.messages, decisions={call.id: Approved()})", "to_state"),
    **_same(
        "a run has no state object: write agent.run(result.messages, decisions={call.id: Denied('…')})",
        "reject",
        "deny",
    ),
    **_same("write [m.thinking for m in result.messages if isinstance(m, AssistantMessage)]", "thinking", "reasoning"),
    **_same("measure it with a hook: RunStarted and RunEnded of agentkit.agent", "duration", "elapsed", "timestamp"),
    **_same(_AS_DICTS, "model_dump", "to_dict", "json", "all_messages_json", "to_messages", "openai_messages"),
    "thread_id": "the run has it: run.thread_id of the stream that run_thread returns",
}

_SCRIPT: Final[Words] = _same(
    "requests", "calls", "call_args", "call_args_list", "received", "last_messages", "prompts"
)

_ASKED: Final = "a model is used through an agent: Agent(model).run_sync('…')"
_MODEL: Final[Words] = {
    **_same(_ASKED, "invoke", "ainvoke", "complete", "completions", "chat", "generate", "run", "run_sync", "predict"),
    **_same(_ASKED, "messages", "responses", "create", "call", "query"),
    **_same("pass the tools to the agent: Agent(model, [function])", "bind_tools", "with_tools", "bind"),
    **_same(
        "pass it to the agent: Agent(model, output_type=…); method='function_calling' is output_mode='tool'",
        "with_structured_output",
    ),
    **_same("write agentkit.first_of(model, other, …)", "with_fallbacks", "with_fallback"),
    **_same("name", "model_name", "model_id"),
    **_same(_CLOSE, "close"),
}

ATTRIBUTES: Final[Mapping[str, Words]] = {
    "Agent": {
        **_same(_RUN, "invoke", "ainvoke", "chat", "achat", "ask", "query", "aquery", "execute", "call", "kickoff"),
        **_same(_RUN, "run_async", "prompt", "run_until_done", "acall", "agenerate", "start_chat"),
        **_same(_RUN, "generate", "generate_reply", "complete", "arun", "initiate_chat", "predict", "respond", "send"),
        **_same(_STREAM, "run_stream", "run_streamed", "iter", "astream", "astream_events", "stream_events", "events"),
        **_same(_STREAM, "run_stream_events", "run_stream_sync", "chat_stream", "stream_chat", "stream_sync", "start"),
        **_same("write agent.stream('…').text_stream()", "stream_text", "text_stream", "print_response"),
        **_same("run several: asyncio.gather(agent.run('…'), agent.run('…'))", "batch", "abatch"),
        **_same("as_tool", "to_tool", "as_function", "tool_from", "as_agent_tool"),
        **_same("write agent.registry.register(function)", "add_tool", "add_tools", "register", "register_tool"),
        **_same("write agent.registry.register(function)", "bind_tools", "tool", "tool_plain", "function"),
        **_same("write agent.registry.tools", "tools", "toolsets", "get_all_tools", "functions"),
        **_same(
            "it is Agent(…, system=…), a string or a function of the run's context", "instructions", "system_prompt"
        ),
        **_same("system", "system_message", "set_system", "set_system_prompt", "prompt_template"),
        **_same("it is Agent(…, output_type=…); a pydantic type can have its own validators", "result_type"),
        **_same(
            "it is Agent(…, guards=Guards(reply=[function])) of agentkit; a pydantic output_type can have validators",
            "output_validator",
        ),
        **_same("write Agent(…, output_type=…)", "with_structured_output", "as_structured_llm"),
        **_same("the context of a run is any object: agent.run('…', context=…)", "deps", "deps_type", "context"),
        **_same(f"an agent does not keep a conversation; {_MESSAGES}", "messages", "history", "memory", "chat_history"),
        **_same(f"an agent does not keep a conversation; {_MESSAGES}", "add_message", "reset", "clear", "all_messages"),
        **_same(
            "create another one: Agent(…); pass the settings of one run to it: agent.run('…', temperature=0)", "clone"
        ),
        **_same("write agent.run('…', temperature=0); for other arguments create another Agent(…)", "override", "bind"),
        **_same("settings", "model_settings", "model_kwargs", "temperature", "max_tokens"),
        **_same("max_turns", "max_iterations", "max_steps"),
        **_same("output_retries", "max_retries", "retries", "max_result_retries"),
        **_same("model", "llm", "client"),
        **_same("hooks", "callbacks", "handlers", "on_event", "on"),
        **_same(
            "make the agent a tool of another: Agent(…, tools=[agent.as_tool('name', '…')])", "handoffs", "handoff"
        ),
        **_same("each run has its own: result.usage", "usage"),
        **_same("each run has its own: agent.run_sync('…').output", "final_output", "output", "result", "last_result"),
        **_same("write agent.registry.tools", "get_tools", "toolset"),
        **_same("pass decisions about calls to the next run: agent.run(result.messages, decisions={…})", "approve"),
        **_same("pass decisions about calls to the next run: agent.run(result.messages, decisions={…})", "resume"),
        **_same(f"an agent does not keep a conversation; {_MESSAGES}", "get_state", "state", "load_state", "save"),
        **_same("in the terminal: agentkit chat --model openai:gpt-5 --tools module:function", "to_cli", "to_cli_sync"),
        **_same(_CLOSE, "close", "shutdown"),
    },
    "RunResult": _RESULT,
    "RunStream": {
        **_same("write async for event in run", "stream_events", "events", "stream", "stream_responses"),
        **_same("write async for text in run.text_stream()", "stream_text", "text_deltas", "stream_out"),
        **_same(
            "write async for value in run.partial_output()", "stream_output", "stream_structured", "partial_outputs"
        ),
        **_same(
            "await the run, or iterate over it and then read .result", "get_output", "get_final_result", "wait", "join"
        ),
        **_same(
            "await the run, or iterate over it and then read .result.output", "final_output", "data", "final_result"
        ),
        **_same("await the run, or iterate over it and then read .result.messages", "all_messages", "to_input_list"),
        **_same("over", "is_complete", "done", "is_done", "finished_at"),
        **_same("cancel", "stop", "abort", "interrupt"),
        **_same(_CLOSE, "close"),
    },
    "Turn": {
        **_same("write turn.message.text", "text", "content", "output"),
        **_same("write turn.message.calls", "calls", "tool_calls"),
        **_same("results", "answers", "tool_results"),
        **_same("write turn.finish.reason", "finish_reason", "stop_reason"),
        **_same("write async for event in turn", "events", "stream"),
    },
    "ThreadManager": {
        **_same("run_thread", "run", "execute", "invoke", "stream", "stream_thread", "start_run", "run_thread_stream"),
        **_same("say", "chat", "ask", "send", "send_message", "reply"),
        **_same("say_sync", "run_sync", "chat_sync", "run_thread_sync"),
        **_same("write threads.say_sync(thread_id, 'Hello', model): it creates the thread, too", "create_thread_sync"),
        **_same(
            "write threads.say_sync(thread_id, 'Hello', model): it creates the thread, too",
            "add_message_sync",
            "session",
        ),
        **_same("create_thread", "create", "new_thread", "start_thread", "add_thread", "open_thread"),
        **_same("get_thread", "get", "load_thread", "thread"),
        **_same("allow", "always_allow", "always_approve", "add_permission", "grant"),
        **_same("allow_rules", "permissions", "allowed", "list_allowed"),
        **_same("revoke", "disallow", "remove_permission", "ask_again"),
        **_same("list_threads", "list", "threads", "get_threads", "all_threads"),
        **_same("delete_thread", "delete", "remove_thread"),
        **_same("fork_thread", "fork", "branch", "copy_thread", "clone_thread"),
        **_same("resume_thread", "resume", "continue_thread", "cleanup_incomplete_tool_calls"),
        **_same("add_message", "add_messages", "append", "add_user_message", "append_message"),
        **_same(
            "for the messages as models read them write await threads.get_llm_messages(thread_id), for the complete "
            "log await threads.get_log(thread_id)",
            *("get_messages", "messages", "list_messages", "history", "get_history", "load_messages"),
        ),
        **_same("add_tool", "register_tool", "add_tools", "register"),
        **_same("registry", "tools"),
        **_same("store", "db", "database"),
        "response_processor": "each run creates its own; for a separate one write ResponseProcessor(threads.registry)",
        "context_manager": "write ThreadManager(…, compaction=Compaction(…))",
        **_same("deny", "reject", "decline", "refuse"),
        **_same("pending", "pending_calls", "get_pending"),
        **_same("everything is stored immediately", "save", "commit", "flush", "persist"),
        **_same("metadata are set when the thread is created: create_thread(metadata={…})", "update_thread"),
        **_same(_CLOSE, "close", "shutdown"),
    },
    "ToolRegistry": {
        **_same(_REGISTER, "add", "add_tool", "add_tools", "register_tools", "register_class", "tool", "append"),
        **_same("register_function", "register_method", "register_functions"),
        **_same("register_function", "add_function", "function"),
        **_same("unregister", "remove", "delete", "remove_tool", "pop"),
        **_same("get_tool", "get", "get_function", "lookup", "find"),
        **_same("tools", "list", "list_tools", "get_tools", "get_all_tools", "all", "functions", "items", "values"),
        **_same("write list(registry.tools)", "names", "tool_names", "keys", "list_names"),
        **_same(_SCHEMAS, "schemas", "get_schemas", "to_openai", "get_tool_schemas", "definitions", "openai_schemas"),
        **_same(_SCHEMAS, "get_definitions", "json_schemas", "to_json"),
        **_same(_EXECUTE, "execute", "run", "call", "invoke", "dispatch", "call_tool", "execute_tool"),
        "as_tool": "pass the registry itself: Agent(model, registry)",
        "get_available_functions": "write {name: tool.method for name, tool in registry.tools.items()}",
    },
    "MCPTools": {
        **_same("resources", "list_resources", "get_resources", "list_resource_templates", "resource_templates"),
        **_same("read_resource", "get_resource"),
        **_same("prompts", "list_prompts", "get_prompts"),
        **_same("prompt", "get_prompt", "load_prompt"),
        **_same("bound_tools", "list_tools", "get_tools", "tools", "load_tools"),
        **_same("its tools are called by an agent: Agent(model, [tools])", "call_tool"),
    },
    "BoundTool": {
        **_same("method", "func", "function", "fn", "handler", "callable", "coroutine"),
        **_same(_EXECUTE, "run", "call", "execute", "ainvoke", "arun"),
        **_same("write bound.spec.parameters", "parameters", "args_schema", "input_schema", "json_schema", "args"),
        **_same("write bound.spec.parameters", "params_json_schema", "inputSchema"),
        **_same("tag", "tag_name"),
        **{name: f"write bound.policy.{name}" for name in ("requires_approval", "terminates", "exclusive")},
    },
    "ToolCall": {
        **_same("a call is flat: call.name and call.arguments", "function"),
        **_same("arguments", "args", "input", "params", "parameters", "kwargs", "tool_args"),
        **_same("name", "tool_name", "tool", "function_name"),
        **_same("id", "call_id", "tool_call_id", "tool_use_id"),
        **_same("its answer is the ToolMessage whose call_id is the call's id", "output", "result", "answer"),
        **_same("there is only one kind: a ToolCall", "type", "kind"),
        **_same(
            "write agent.run(result.messages, decisions={call.id: Approved()}); in a thread, threads.approve(…)",
            "approve",
        ),
        **_same(
            "write agent.run(result.messages, decisions={call.id: Denied('…')}); in a thread, threads.deny(…)",
            "reject",
            "deny",
        ),
        **_same(_TO_DICT, "model_dump", "dict", "to_dict", "json"),
    },
    "ToolResult": {
        **_same("output", "data", "value", "result", "return_value", "structured_content", "structuredContent"),
        **_same("text", "message", "llm_content", "string"),
        **_same("write `result.error is not None`, or `not result.ok`", "is_error", "isError", "failed"),
        **_same("error", "err", "exception", "error_message"),
        **_same("ok", "is_success", "succeeded", "status"),
        **_same("write ToolResult(error='what went wrong')", "fail", "failure", "from_error", "from_exception"),
        **_same("write ToolResult(output)", "from_output", "success_result", "from_value"),
        **_same("a result does not know its call; the ToolMessage made from it has call_id and name", "call_id", "id"),
        **_same("a result does not know its call; the ToolMessage made from it has call_id and name", "tool_call_id"),
        **_same("images are parts of result.content", "images", "artifact"),
        **_same(_TO_DICT, "model_dump", "to_dict", "dict", "json"),
    },
    "ToolContext": {
        **_same("state", "deps", "context", "dependencies", "runtime", "user_data", "app_state"),
        **_same("call_id", "tool_call_id", "tool_use_id", "id"),
        **_same("name", "tool_name"),
        **_same("a call that needs approval runs only once it has it", "tool_call_approved"),
        **_same("attempt", "retry", "retries", "retry_count"),
        **_same("write context.run.thread_id", "thread_id", "session_id", "conversation_id"),
        **_same("write context.run.id", "run_id"),
        **_same(
            "hooks receive the run and each of its events: Agent(…, hooks=[…])", "messages", "usage", "agent", "model"
        ),
        **_same("what the application passed to agent.run('…', context=…) is context.state", "get", "config", "store"),
        **_same(
            "what the application passed to agent.run('…', context=…) is context.state", "user_id", "user", "session"
        ),
        **_same("a cancelled tool gets asyncio.CancelledError at its next `await`", "cancel", "cancelled"),
    },
    "Tool": {
        **_same("get_schemas", "schemas", "tool_schemas", "get_tool_schemas", "_register_schemas"),
        **_same("fail_response", "error_response", "failure_response"),
        **_same("success_response", "ok_response"),
        **_same("user interfaces are up to the application", "get_metadata", "get_method_metadata"),
    },
    "SystemMessage": {**_MESSAGE, **_same("content", "text", "parts")},
    "UserMessage": {**_MESSAGE, **_same("write [part for part in m.content if isinstance(part, ImagePart)]", "images")},
    "AssistantMessage": {
        **_MESSAGE,
        **_same("calls", "tool_calls", "function_call", "function_calls", "tool_uses"),
        **_same("thinking", "reasoning", "reasoning_content", "thoughts"),
        **_same("text", "message", "output_text"),
        **_same("messages do not have it; result.usage is the run's", "usage", "usage_metadata", "response_metadata"),
        **_same("messages do not have it; result.finish is the run's", "stop_reason", "finish_reason"),
    },
    "ToolMessage": {
        **_MESSAGE,
        **_same("call_id", "tool_call_id", "tool_use_id", "id"),
        **_same("name", "tool_name"),
        **_same("text", "output", "result"),
        **_same("error", "is_error", "status", "code"),
    },
    "TextPart": {**_same(_PART_CLASS, "type", "kind", "part_kind"), **_same("text", "content", "value", "data")},
    "ImagePart": {
        **_same(_PART_CLASS, "type", "kind", "part_kind"),
        **_same("url", "image_url", "href"),
        **_same("data", "bytes", "content", "image"),
        **_same("media_type", "mime_type", "mimeType", "format", "content_type"),
    },
    "FilePart": {
        **_same("kind", "type", "part_kind"),
        **_same("url", "file_url", "href"),
        **_same("data", "bytes", "content", "file_data"),
        **_same("media_type", "mime_type", "mimeType", "format", "content_type"),
        **_same("name", "filename", "title"),
    },
    "ThinkingPart": {
        **_same(_PART_CLASS, "type", "kind", "part_kind"),
        **_same("text", "content", "thinking", "reasoning"),
        **_same("data", "signature"),
    },
    "Text": _SAID,
    "Thinking": {**_SAID, **_same("text", "thinking", "reasoning", "reasoning_content")},
    "Markup": _SAID,
    "ProviderBlock": _EVENT,
    "CallStart": {
        **_EVENT,
        **_same("id", "call_id", "tool_call_id", "tool_use_id"),
        **_same("name", "tool_name", "tool", "function"),
        **_same("they are not known yet: a CallEnd has event.call.arguments", "arguments", "args", "input", "call"),
    },
    "ArgumentDelta": {
        **_EVENT,
        **_same("text", "delta", "args_delta", "arguments", "arguments_delta", "partial_json", "content"),
        **_same("the CallStart of the same index has it", "name", "id", "call_id", "tool_name", "tool_call_id"),
    },
    "CallEnd": {
        **_CALLED,
        **_same("a ToolCompleted or ToolFailed has it, once the tool has run", "result", "output", "text"),
    },
    "CallError": {**_CALLED, **_same("message", "error", "text", "reason", "exception")},
    "CallQuoted": {name: ours for name, ours in _CALLED.items() if name != "call_id"},
    "Usage": {
        **_EVENT,
        **_TOKENS,
        **_same("write usage.input_tokens + usage.output_tokens", "total_tokens", "total"),
        **_same("cached_tokens", "cache_read_tokens", "cache_read_input_tokens", "cached_input_tokens"),
        **_same("cache_write_tokens", "cache_creation_input_tokens"),
        **_same("result.turns counts them", "requests", "request_count"),
        **_same("cached_tokens", "prompt_tokens_details", "input_tokens_details"),
        **_same("reasoning_tokens", "completion_tokens_details", "output_tokens_details"),
        **_same("write result.cost, with budget=Budget(prices={…})", "cost", "total_cost"),
    },
    "ModelSelected": {
        **_EVENT,
        **_same("model", "name", "model_name", "model_id"),
        **_same("failed", "error", "errors", "exceptions"),
    },
    "Finish": {
        **_EVENT,
        **_same("reason", "finish_reason", "stop_reason", "finish", "status"),
        **_same(
            "it only says why a response ended; for the run write run.result.text or run.result.output",
            "text",
            "output",
        ),
        **_same("it only says why a response ended; the result of the run is run.result", "result", "message"),
        **_same("a Usage event has it", "usage"),
    },
    "ToolStarted": {
        **_CALLED,
        **_same("a ToolCompleted or ToolFailed has it, once the tool has run", "result", "output", "text"),
    },
    "ToolCompleted": _ANSWERED,
    "ToolFailed": _ANSWERED,
    "ToolSkipped": {**_ANSWERED, **_same("it was not run, so it has no duration", "seconds", "duration", "elapsed")},
    "ApprovalRequired": {
        **_CALLED,
        **_same(
            "write agent.run(result.messages, decisions={event.call.id: Approved()}); in a thread, threads.approve(…)",
            *("approve", "reject", "deny", "respond"),
        ),
    },
    "ResponseProcessor": {
        **_same("process", "process_streaming_response", "process_non_streaming_response", "run", "stream", "feed"),
        **_same("process", "process_response", "parse", "execute"),
    },
    "SdkModel": _MODEL,
    "ModelChain": {**_MODEL, **_same("models", "fallback_models", "fallbacks", "runnables")},
    "ScriptedModel": {**_MODEL, **_SCRIPT},
    "TextCalling": _MODEL,
    "Thread": {
        **_same("id", "thread_id", "session_id"),
        **_same("created", "created_at"),
        **_same("updated", "updated_at", "modified"),
        **_same("write await threads.get_llm_messages(thread.id)", "messages", "history", "get_messages"),
        **_same("applications keep it in metadata: thread.metadata['title']", "title", "name"),
        **_same("write threads.run_thread(thread.id, …)", "run", "send"),
    },
    "OpenAPISchema": {
        **_same("a tool has it once it is registered: registry.get_openapi_schemas(names=['…'])[0]", "schema"),
        **_same("only a declaration of @xml_schema has one", "tag_name", "mappings", "example"),
    },
    "XMLSchema": {
        **_same("a tool has it once it is registered: registry.get_openapi_schemas(names=['…'])[0]", "schema"),
        **_same("pass them to the decorator: @xml_schema(mappings=[…])", "add_mapping"),
        **_same("tag_name", "tag", "name"),
    },
    "BothSchemas": {
        **_same("a tool has it once it is registered: registry.get_openapi_schemas(names=['…'])[0]", "schema"),
        **_same(
            "AgentPress has SchemaType.OPENAPI under the function's name and SchemaType.XML under the tag; here both "
            "keys lead to one entry, which has both: read schema.openapi or schema.xml_schema, or entry.schema and "
            "entry.xml_schema",
            *("schema_type",),
        ),
    },
    "AgentkitError": _same("write str(error)", "message", "msg", "reason"),
    "ProviderError": {
        **_same("status", "status_code", "http_status"),
        **_same("body", "response", "json_body"),
        **_same("kind", "type", "error_type"),
    },
}
"""By class: the foreign names of its attributes."""
