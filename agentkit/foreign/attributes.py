"""Attribute names of other toolkits, above all AgentPress, for attributes of agentkit.

Tables only, as in `agentkit.foreign.argument_names`, which has the arguments. A value is agentkit's name, or
an explanation to follow a colon. `agentkit.foreign.absent` turns them into errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Words = Mapping[str, str]


def same(text: str, names: str) -> dict[str, str]:
    """Give one text to several names, which have spaces between them."""
    return dict.fromkeys(names.split(), text)


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

_EVENT: Final[Words] = same(_EVENT_CLASS, "type kind event event_type event_kind part_kind")
_CALLED: Final[Words] = {
    **_EVENT,
    **{name: f"write event.call.{name}" for name in ("id", "name", "arguments")},
    **same("write event.call.id", "call_id tool_call_id tool_use_id"),
    **same("write event.call.name", "tool_name tool function"),
    **same("call", "tool_call function_call tool_use"),
    **same("write event.call.arguments", "args input parameters params"),
}
_ANSWERED: Final[Words] = {
    **_CALLED,
    **{name: f"write event.result.{name}" for name in ("text", "output", "error", "content", "metadata")},
    **same("write event.result.output", "value data"),
    **same("write event.result.error", "message exception"),
    **same("seconds", "duration elapsed"),
}
_SAID: Final[Words] = {**_EVENT, **same("text", "delta content content_delta chunk token value data")}
_MESSAGE: Final[Words] = {
    **same(_CLASS, "role type kind"),
    **same("write agentkit.agent.dicts_from([message]), for OpenAI's message dict", "model_dump model_dump_json dict"),
    **same("write agentkit.agent.dicts_from([message]), for OpenAI's message dict", "to_dict json to_json"),
    **same("content", "parts blocks"),
    **same("messages have no ids or timestamps; threads.get_log(thread_id) has them", "id timestamp created_at"),
}
_TOKENS: Final[Words] = {
    **same("input_tokens", "prompt_tokens request_tokens"),
    **same("output_tokens", "completion_tokens response_tokens"),
}

_RESULT: Final[Words] = {
    **same("output", "final_output data value result parsed output_parsed structured_output structured_response"),
    **same("output", "final_answer get_output final_output_as pydantic raw"),
    **same("text", "output_text final_text response_text content response answer reply message last_message"),
    **same("text", "final_message finish_message"),
    **same("messages", "all_messages to_input_list history chat_history conversation input"),
    **same("new_messages", "new_items steps intermediate_steps items"),
    **same("finish", "finish_reason stop_reason status end_reason state"),
    **same("pending", "interruptions interrupts deferred_tool_calls required_action"),
    **same("turns", "num_turns requests iterations num_steps"),
    **{name: f"write result.usage.{name}" for name in ("input_tokens", "output_tokens")},
    "total_tokens": "write result.usage.input_tokens + result.usage.output_tokens",
    "choices": "there is only one reply: result.text",
    **same(
        "write [call for m in result.messages if isinstance(m, AssistantMessage) for call in m.calls]",
        "tool_calls calls tools_used tool_results actions",
    ),
    **same("usage", "token_usage usage_metadata"),
    **same("errors are raised; result.finish says why the run ended", "error exception is_error"),
    **same("the run succeeded if result.finish == 'stop'", "ok success is_success"),
    **same("cost", "total_cost total_cost_usd price"),
    **same("it is a finished run; to follow a run write agent.stream('…')", "stream stream_events stream_text events"),
    **same("it is a finished run; to follow a run write agent.stream('…')", "raw_responses"),
    **same("pass result.messages to the next run, even if stateful", "last_response_id response_id"),
    **same("a run has no state object: write agent.run(result.messages, decisions={call.id: Approved()})", "approve"),
    **same("a run has no state object: write agent.run(result.messages, decisions={call.id: Approved()})", "to_state"),
    **same("a run has no state object: write agent.run(result.messages, decisions={call.id: Denied('…')})", "reject"),
    **same("a run has no state object: write agent.run(result.messages, decisions={call.id: Denied('…')})", "deny"),
    **same("write [m.thinking for m in result.messages if isinstance(m, AssistantMessage)]", "thinking reasoning"),
    **same("measure it with a hook: RunStarted and RunEnded of agentkit.agent", "duration elapsed timestamp"),
    **same(_AS_DICTS, "model_dump to_dict json all_messages_json new_messages_json to_messages openai_messages"),
    "thread_id": "the run has it: run.thread_id of the stream that run_thread returns",
}

_SCRIPT: Final[Words] = same("requests", "calls call_args call_args_list received last_messages prompts")

_ASKED: Final = "a model is used through an agent: Agent(model).run_sync('…')"
_MODEL: Final[Words] = {
    **same(_ASKED, "invoke ainvoke complete completions chat generate run run_sync predict messages responses create"),
    **same(_ASKED, "call query"),
    **same("pass the tools to the agent: Agent(model, [function])", "bind_tools with_tools bind"),
    **same(
        "pass it to the agent: Agent(model, output_type=…); method='function_calling' is output_mode='tool'",
        "with_structured_output",
    ),
    **same("write agentkit.first_of(model, other, …)", "with_fallbacks with_fallback"),
    **same("name", "model_name model_id"),
    "close": _CLOSE,
}

ATTRIBUTES: Final[Mapping[str, Words]] = {
    "Agent": {
        **same(_RUN, "invoke ainvoke chat achat ask query aquery execute call kickoff run_async prompt run_until_done"),
        **same(_RUN, "acall agenerate start_chat generate generate_reply complete arun initiate_chat predict respond"),
        **same(_RUN, "send"),
        **same(_STREAM, "run_stream run_streamed iter astream astream_events stream_events events run_stream_events"),
        **same(_STREAM, "run_stream_sync chat_stream stream_chat stream_sync start"),
        **same("write agent.stream('…').text_stream()", "stream_text text_stream print_response"),
        **same("run several: asyncio.gather(agent.run('…'), agent.run('…'))", "batch abatch"),
        **same("as_tool", "to_tool as_function tool_from as_agent_tool"),
        **same("write agent.registry.register(function)", "add_tool add_tools register register_tool bind_tools tool"),
        **same("write agent.registry.register(function)", "tool_plain function"),
        **same("write agent.registry.tools", "tools toolsets get_all_tools functions get_tools toolset"),
        **same("it is Agent(…, system=…), a string or a function of the run's context", "instructions system_prompt"),
        **same("system", "system_message set_system set_system_prompt prompt_template"),
        "result_type": "it is Agent(…, output_type=…); a pydantic type can have its own validators",
        **same(
            "it is Agent(…, guards=Guards(reply=[function])) of agentkit; a pydantic output_type can have validators",
            "output_validator",
        ),
        **same("write Agent(…, output_type=…)", "with_structured_output as_structured_llm"),
        **same("the context of a run is any object: agent.run('…', context=…)", "deps deps_type context"),
        **same(f"an agent does not keep a conversation; {_MESSAGES}", "messages history memory chat_history"),
        **same(f"an agent does not keep a conversation; {_MESSAGES}", "add_message reset clear all_messages"),
        "clone": "create another one: Agent(…); pass the settings of one run to it: agent.run('…', temperature=0)",
        **same("write agent.run('…', temperature=0); for other arguments create another Agent(…)", "override bind"),
        **same("settings", "model_settings model_kwargs temperature max_tokens"),
        **same("max_turns", "max_iterations max_steps"),
        **same("output_retries", "max_retries retries max_result_retries"),
        **same("model", "llm client"),
        **same("hooks", "callbacks handlers on_event on event_stream_handler"),
        **same("make the agent a tool of another: Agent(…, tools=[agent.as_tool('name', '…')])", "handoffs handoff"),
        "usage": "each run has its own: result.usage",
        **same("each run has its own: agent.run_sync('…').output", "final_output output result last_result"),
        **same("tracing is done by a hook: hooks=[OpenTelemetry()] of agentkit.telemetry", "instrument instrument_all"),
        **same("pass decisions about calls to the next run: agent.run(result.messages, decisions={…})", "approve"),
        **same("pass decisions about calls to the next run: agent.run(result.messages, decisions={…})", "resume"),
        **same(f"an agent does not keep a conversation; {_MESSAGES}", "get_state state load_state save"),
        "to_web": "in the browser: agentkit ui --model openai:gpt-5 --tools module:function",
        **same("in the terminal: agentkit chat --model openai:gpt-5 --tools module:function", "to_cli to_cli_sync"),
        **same(_CLOSE, "close shutdown"),
    },
    "RunResult": _RESULT,
    "RunStream": {
        **same("write async for event in run", "stream_events events stream stream_responses stream_response"),
        **same("write async for text in run.text_stream()", "stream_text text_deltas stream_out"),
        **same("write async for value in run.partial_output()", "stream_output stream_structured partial_outputs"),
        **same("await the run, or iterate over it and then read .result", "get_output get_final_result wait join"),
        **same("await the run, or iterate over it and then read .result.output", "final_output data final_result"),
        **same("await the run, or iterate over it and then read .result.messages", "all_messages to_input_list"),
        **same("over", "is_complete done is_done finished_at"),
        **same("cancel", "stop abort interrupt"),
        "close": _CLOSE,
    },
    "Turn": {
        **same("write turn.message.text", "text content output"),
        **same("write turn.message.calls", "calls tool_calls"),
        **same("results", "answers tool_results"),
        **same("write turn.finish.reason", "finish_reason stop_reason"),
        **same("write async for event in turn", "events stream"),
    },
    "ThreadManager": {
        **same("run_thread", "run execute invoke stream stream_thread start_run run_thread_stream"),
        **same("say", "chat ask send send_message reply"),
        **same("say_sync", "run_sync chat_sync run_thread_sync"),
        **same("write threads.say_sync(thread_id, 'Hello', model): it creates the thread, too", "create_thread_sync"),
        **same("write threads.say_sync(thread_id, 'Hello', model): it creates the thread, too", "add_message_sync"),
        **same("write threads.say_sync(thread_id, 'Hello', model): it creates the thread, too", "session"),
        **same("create_thread", "create new_thread start_thread add_thread open_thread"),
        **same("get_thread", "get load_thread thread"),
        **same("allow", "always_allow always_approve add_permission grant"),
        **same("allow_rules", "permissions allowed list_allowed"),
        **same("revoke", "disallow remove_permission ask_again"),
        **same("list_threads", "list threads get_threads all_threads"),
        **same("delete_thread", "delete remove_thread"),
        **same("fork_thread", "fork branch copy_thread clone_thread"),
        **same("resume_thread", "resume continue_thread cleanup_incomplete_tool_calls"),
        **same("add_message", "add_messages append add_user_message append_message"),
        **same(
            "for the messages as models read them write await threads.get_llm_messages(thread_id), for the complete "
            "log await threads.get_log(thread_id)",
            "get_messages messages list_messages history get_history load_messages",
        ),
        **same("add_tool", "register_tool add_tools register"),
        "tools": "registry",
        **same("store", "db database"),
        "response_processor": "each run creates its own; for a separate one write ResponseProcessor(threads.registry)",
        "context_manager": "write ThreadManager(…, compaction=Compaction(…))",
        **same("deny", "reject decline refuse"),
        **same("pending", "pending_calls get_pending"),
        **same("everything is stored immediately", "save commit flush persist"),
        "update_thread": "metadata are set when the thread is created: create_thread(metadata={…})",
        **same(_CLOSE, "close shutdown"),
    },
    "ToolRegistry": {
        **same(_REGISTER, "add add_tool add_tools register_tools register_class tool append"),
        **same("register_function", "register_method register_functions add_function function"),
        **same("unregister", "remove delete remove_tool pop"),
        **same("get_tool", "get get_function lookup find"),
        **same("tools", "list list_tools get_tools get_all_tools all functions items values"),
        **same("write list(registry.tools)", "names tool_names keys list_names"),
        **same(_SCHEMAS, "schemas get_schemas to_openai get_tool_schemas definitions openai_schemas get_definitions"),
        **same(_SCHEMAS, "json_schemas to_json"),
        **same(_EXECUTE, "execute run call invoke dispatch call_tool execute_tool"),
        "as_tool": "pass the registry itself: Agent(model, registry)",
        "get_available_functions": "write {name: tool.method for name, tool in registry.tools.items()}",
    },
    "MCPTools": {
        **same("resources", "list_resources get_resources list_resource_templates resource_templates"),
        "get_resource": "read_resource",
        **same("prompts", "list_prompts get_prompts"),
        **same("prompt", "get_prompt load_prompt"),
        **same("bound_tools", "list_tools get_tools tools load_tools"),
        "call_tool": "its tools are called by an agent: Agent(model, [tools])",
    },
    "BoundTool": {
        **same("method", "func function fn handler callable coroutine"),
        **same(_EXECUTE, "run call execute ainvoke arun"),
        **same("write bound.spec.parameters", "parameters args_schema input_schema json_schema args"),
        **same("write bound.spec.parameters", "params_json_schema inputSchema"),
        "tag_name": "tag",
        **{name: f"write bound.policy.{name}" for name in ("requires_approval", "terminates", "exclusive")},
    },
    "ToolCall": {
        "function": "a call is flat: call.name and call.arguments",
        **same("arguments", "args input params parameters kwargs tool_args args_as_dict args_as_json_str"),
        **same("name", "tool_name tool function_name"),
        **same("id", "call_id tool_call_id tool_use_id"),
        **same("its answer is the ToolMessage whose call_id is the call's id", "output result answer"),
        **same("there is only one kind: a ToolCall", "type kind part_kind"),
        "approve": "write agent.run(result.messages, decisions={call.id: Approved()}); in a thread, threads.approve(…)",
        **same(
            "write agent.run(result.messages, decisions={call.id: Denied('…')}); in a thread, threads.deny(…)",
            "reject deny",
        ),
        **same(_TO_DICT, "model_dump dict to_dict json"),
    },
    "ToolResult": {
        **same("output", "data value result return_value structured_content structuredContent"),
        **same("text", "message llm_content string"),
        **same("write `result.error is not None`, or `not result.ok`", "is_error isError failed"),
        **same("error", "err exception error_message"),
        **same("ok", "is_success succeeded status"),
        **same("write ToolResult(error='what went wrong')", "fail failure from_error from_exception"),
        **same("write ToolResult(output)", "from_output success_result from_value"),
        **same("a result does not know its call; the ToolMessage made from it has call_id and name", "call_id id"),
        **same("a result does not know its call; the ToolMessage made from it has call_id and name", "tool_call_id"),
        **same("images are parts of result.content", "images artifact"),
        **same(_TO_DICT, "model_dump to_dict dict json"),
    },
    "ToolContext": {
        **same("state", "deps context dependencies runtime user_data app_state"),
        **same("call_id", "tool_call_id tool_use_id id"),
        "tool_name": "name",
        "tool_call_approved": "a call that needs approval runs only once it has it",
        **same("attempt", "retry retries retry_count"),
        **same("write context.run.thread_id", "thread_id session_id conversation_id"),
        "run_id": "write context.run.id",
        **same("hooks receive the run and each of its events: Agent(…, hooks=[…])", "messages usage prompt model"),
        "agent": "write context.run.agent",
        **same("what the application passed to agent.run('…', context=…) is context.state", "get config store user_id"),
        **same("what the application passed to agent.run('…', context=…) is context.state", "user session"),
        **same("a cancelled tool gets asyncio.CancelledError at its next `await`", "cancel cancelled"),
    },
    "Tool": {
        **same("get_schemas", "schemas tool_schemas get_tool_schemas _register_schemas"),
        **same("fail_response", "error_response failure_response"),
        "ok_response": "success_response",
        **same("user interfaces are up to the application", "get_metadata get_method_metadata"),
    },
    "SystemMessage": {**_MESSAGE, **same("content", "text parts")},
    "UserMessage": {**_MESSAGE, **same("write [part for part in m.content if isinstance(part, ImagePart)]", "images")},
    "AssistantMessage": {
        **_MESSAGE,
        **same("calls", "tool_calls function_call function_calls tool_uses"),
        **same("thinking", "reasoning reasoning_content thoughts"),
        **same("text", "message output_text"),
        **same("messages do not have it; result.usage is the run's", "usage usage_metadata response_metadata"),
        **same("messages do not have it; result.finish is the run's", "stop_reason finish_reason"),
    },
    "ToolMessage": {
        **_MESSAGE,
        **same("call_id", "tool_call_id tool_use_id id"),
        "tool_name": "name",
        **same("text", "output result"),
        **same("error", "is_error status code"),
    },
    "TextPart": {**same(_PART_CLASS, "type kind part_kind"), **same("text", "content value data")},
    "ImagePart": {
        **same(_PART_CLASS, "type kind part_kind"),
        **same("url", "image_url href"),
        **same("data", "bytes content image"),
        "from_path": "pass the bytes of the file: ImagePart(data, media_type='image/jpeg')",
        **same("media_type", "mime_type mimeType format content_type"),
    },
    "FilePart": {
        **same("kind", "type part_kind"),
        **same("url", "file_url href"),
        **same("data", "bytes content file_data"),
        **same("media_type", "mime_type mimeType format content_type"),
        **same("name", "filename title"),
    },
    "ThinkingPart": {
        **same(_PART_CLASS, "type kind part_kind"),
        **same("text", "content thinking reasoning"),
        "signature": "data",
    },
    "Text": _SAID,
    "Thinking": {**_SAID, **same("text", "thinking reasoning reasoning_content")},
    "Markup": _SAID,
    "ProviderBlock": _EVENT,
    "CallStart": {
        **_EVENT,
        **same("id", "call_id tool_call_id tool_use_id"),
        **same("name", "tool_name tool function"),
        **same("they are not known yet: a CallEnd has event.call.arguments", "arguments args input call"),
    },
    "ArgumentDelta": {
        **_EVENT,
        **same("text", "delta args_delta arguments arguments_delta partial_json content"),
        **same("the CallStart of the same index has it", "name id call_id tool_name tool_call_id"),
    },
    "CallEnd": {
        **_CALLED,
        **same("a ToolCompleted or ToolFailed has it, once the tool has run", "result output text"),
    },
    "CallError": {**_CALLED, **same("message", "error text reason exception")},
    "CallQuoted": {name: ours for name, ours in _CALLED.items() if name != "call_id"},
    "Usage": {
        **_EVENT,
        **_TOKENS,
        **same("write usage.input_tokens + usage.output_tokens", "total_tokens total"),
        **same("cached_tokens", "cache_read_tokens cache_read_input_tokens cached_input_tokens"),
        "cache_creation_input_tokens": "cache_write_tokens",
        **same("result.turns counts them", "requests request_count"),
        **same("cached_tokens", "prompt_tokens_details input_tokens_details"),
        **same("reasoning_tokens", "completion_tokens_details output_tokens_details"),
        **same("write result.cost, with budget=Budget(prices={…})", "cost total_cost"),
    },
    "ModelSelected": {
        **_EVENT,
        **same("model", "name model_name model_id"),
        **same("failed", "error errors exceptions"),
    },
    "Finish": {
        **_EVENT,
        **same("reason", "finish_reason stop_reason finish status"),
        **same("it only says why a response ended; for the run write run.result.text or run.result.output", "text"),
        **same("it only says why a response ended; for the run write run.result.text or run.result.output", "output"),
        **same("it only says why a response ended; the result of the run is run.result", "result message"),
        "usage": "a Usage event has it",
    },
    "ToolStarted": {
        **_CALLED,
        **same("a ToolCompleted or ToolFailed has it, once the tool has run", "result output text"),
    },
    "ToolCompleted": _ANSWERED,
    "ToolFailed": _ANSWERED,
    "ToolSkipped": {**_ANSWERED, **same("it was not run, so it has no duration", "seconds duration elapsed")},
    "ApprovalRequired": {
        **_CALLED,
        **same(
            "write agent.run(result.messages, decisions={event.call.id: Approved()}); in a thread, threads.approve(…)",
            "approve reject deny respond",
        ),
    },
    "ResponseProcessor": {
        **same("process", "process_streaming_response process_non_streaming_response run stream feed process_response"),
        **same("process", "parse execute"),
    },
    "SdkModel": _MODEL,
    "ModelChain": {**_MODEL, **same("models", "fallback_models fallbacks runnables")},
    "ScriptedModel": {**_MODEL, **_SCRIPT},
    "TextCalling": _MODEL,
    "Thread": {
        **same("id", "thread_id session_id"),
        "created_at": "created",
        **same("updated", "updated_at modified"),
        **same("write await threads.get_llm_messages(thread.id)", "messages history get_messages"),
        **same("applications keep it in metadata: thread.metadata['title']", "title name"),
        **same("write threads.run_thread(thread.id, …)", "run send"),
    },
    "OpenAPISchema": {
        "schema": "a tool has it once it is registered: registry.get_openapi_schemas(names=['…'])[0]",
        **same("only a declaration of @xml_schema has one", "tag_name mappings example"),
    },
    "XMLSchema": {
        "schema": "a tool has it once it is registered: registry.get_openapi_schemas(names=['…'])[0]",
        "add_mapping": "pass them to the decorator: @xml_schema(mappings=[…])",
        **same("tag_name", "tag name"),
    },
    "BothSchemas": {
        "schema": "a tool has it once it is registered: registry.get_openapi_schemas(names=['…'])[0]",
        **same(
            "AgentPress has SchemaType.OPENAPI under the function's name and SchemaType.XML under the tag; here both "
            "keys lead to one entry, which has both: read schema.openapi or schema.xml_schema, or entry.schema and "
            "entry.xml_schema",
            "schema_type",
        ),
    },
    "AgentkitError": same("write str(error)", "message msg reason"),
    "ProviderError": {
        **same("status", "status_code http_status"),
        **same("body", "response json_body"),
        **same("kind", "type error_type"),
    },
}
"""By class: the foreign names of its attributes."""
