"""Names that `from agentkit import …` does not have: those of other modules, and those of other toolkits.

Tables only, loaded at the first such error. Attribute names are in `agentkit.foreign.attributes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_HAVE: Final[Mapping[str, str]] = {
    "agentkit.messages": "AssistantMessage MarkupPart Message ProviderPart SystemMessage ThinkingPart ToolMessage "
    "UserMessage user",
    "agentkit.events": "ApprovalRequired ArgumentDelta CallEnd CallError CallQuoted CallStart Event Finish "
    "FinishReason InventedResult Markup ModelSelected ProviderBlock SourceEvent Text Thinking ToolCompleted ToolEvent "
    "ToolFailed ToolSkipped ToolStarted UnreadCall Usage from_json merge to_json",
    "agentkit.errors": "ERROR_CODES ErrorCode ProviderErrorKind StoreConflict ThreadExists ThreadNotFound",
    "agentkit.agent": "BudgetSpent Decision Hook Lifecycle RunEnded RunFinish RunOptions RunStarted RunStream Settings "
    "TurnEnded TurnStarted dicts_from messages_from",
    "agentkit.interop.mcp": "LocalServer MCPProgress MCPPrompt MCPResource MCPTools RemoteServer mcp_app mcp_server",
    "agentkit.models": "AnthropicModel BedrockModel ClosableModel GeminiModel ModelChain OpenAIModel ResponsesModel "
    "TextCalling",
    "agentkit.threads": "AllowRule Call Compaction Entry Log SQLiteStore Store Thread open_store",
    "agentkit.testing": "Recording Replay STORE_CHECKS ScriptedModel StoreCheck",
    "agentkit.formats": "Element Format Limits Node OutputSchema Parser ToolSpec parse quarantine render_calls "
    "render_output_prompt render_prompt render_result",
    "agentkit.processor": "EventStream Turn",
    "agentkit.telemetry": "OpenTelemetry",
    "agentkit_tools.files": "Files",
    "agentkit.tool": "BoundTool InvalidArguments OpenAPISchema Problem ToolPolicy ToolSource XMLMapping XMLSchema",
}

HOMES: Final[Mapping[str, str]] = {name: module for module, names in _HAVE.items() for name in names.split()}
"""The modules of names that are not in `agentkit` itself."""

MODULES: Final[Mapping[str, str]] = {home.rpartition(".")[2]: f"it is the module {home}" for home in _HAVE}
"""Where the modules themselves are, by the last part of their names."""


def _same(text: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, text)


_DECORATE: Final = "write @openapi_schema above a method, or pass the function itself: Agent(model, [function])"
_AGENT: Final = "write agentkit.Agent('openai:gpt-5', [function]): a model, its tools, and the loop"
_MODEL: Final = "a model is a string: Agent('openai:gpt-5'), or agentkit.model('openai:gpt-5', base_url=…)"
_THREADS: Final = "conversations are kept by agentkit.ThreadManager"
_HOOKS: Final = (
    "write agentkit.Agent(…, hooks=[function]); it receives every event, and those of agentkit.agent.Lifecycle"
)
_GUARDS: Final = (
    "plain functions decide: agentkit.Agent(…, guards=agentkit.Guards(request=[…], call=[…], reply=[…])); "
    "hooks=[…] only observe"
)
_APPROVAL: Final = (
    "to make calls wait for a person write @openapi_schema(requires_approval=True), or a function of the arguments, or "
    "a guard that returns agentkit.AskPerson"
)
_TYPE: Final = "write agentkit.Agent(…, output_type=YourType)"
_NO_LIMIT: Final = (
    "limits do not raise: result.finish says which one ended the run, such as 'max_turns' or 'token_budget'"
)
_OWN: Final = "user interfaces are up to the application"

FOREIGN: Final[Mapping[str, str]] = {
    **_same(_DECORATE, "tool", "tool_schema", "tools", "Tools", "Toolkit", "Toolset", "schema", "register_tool"),
    **_same(_DECORATE, "function_tool", "tool_plain", "FunctionTool", "StructuredTool", "BaseTool", "ToolDefinition"),
    **_same(_DECORATE, "FunctionToolset", "ToolNode", "kernel_function", "ai_function", "as_tool", "beta_tool"),
    **_same(
        "to offer only the tools that fit the conversation write Agent(…, offered_tools=10)",
        *("ToolSearch", "ToolSearchTool", "ToolSearchToolset", "ToolSelector", "LLMToolSelectorMiddleware"),
        *("DeferredLoadingToolset", "PreparedToolset", "FilteredToolset"),
    ),
    **_same(_AGENT, "AgentExecutor", "create_react_agent", "create_agent", "create_tool_calling_agent", "ReActAgent"),
    **_same(_AGENT, "initialize_agent", "StateGraph", "MessageGraph", "LLMChain", "CodeAgent", "ToolCallingAgent"),
    **_same(_AGENT, "FunctionAgent", "AssistantAgent", "ChatAgent", "AgentRunner", "ConversableAgent", "LlmAgent"),
    **_same("an agent runs itself: agent.run_sync('…'), or await agent.run('…')", "Runner", "run", "run_sync"),
    **_same("agents can be tools of others: Agent(…, tools=[other.as_tool('name', 'what it is good at')])", "handoff"),
    **_same(
        "agents can be tools of others: Agent(…, tools=[other.as_tool('name', 'what it is good at')])",
        "Handoff",
        "Crew",
    ),
    **_same(
        "agents can be tools of others: Agent(…, tools=[other.as_tool('name', 'what it is good at')])", "Swarm", "Team"
    ),
    **_same("write agentkit.ToolContext", "RunContext", "RunContextWrapper", "ToolRuntime", "InjectedState", "Context"),
    **_same(_MODEL, "ChatOpenAI", "ChatAnthropic", "AsyncOpenAI", "OpenAI", "Anthropic", "AsyncAnthropic"),
    **_same(_MODEL, "init_chat_model", "LiteLLMModel", "OpenAIChatModel", "OpenAIChatCompletionsModel", "LLM"),
    **_same(_MODEL, "OpenAIResponsesModel", "OpenAIProvider", "set_default_openai_client", "set_default_openai_key"),
    **_same(_MODEL, "GoogleModel", "ChatGoogleGenerativeAI", "ChatVertexAI", "Gemini"),
    **_same(_MODEL, "Client", "InferenceClientModel", "OpenAIServerModel", "make_llm_api_call", "LLMError"),
    **_same("write agentkit.first_of('openai:gpt-5', 'anthropic:…')", "FallbackModel", "ModelFallbackMiddleware"),
    **_same("write agentkit.first_of('openai:gpt-5', 'anthropic:…')", "RunnableWithFallbacks", "fallback"),
    **_same("each setting is an argument: Agent(…, temperature=0), or agent.run('…', temperature=0)", "ModelSettings"),
    **_same("each setting is an argument: Agent(…, temperature=0), or agent.run('…', temperature=0)", "RunConfig"),
    **_same("write agentkit.Budget(tokens=…)", "UsageLimits"),
    **_same("it is in agentkit.events: from agentkit.events import Usage", "RunUsage", "RequestUsage", "TokenUsage"),
    **_same(_THREADS, "Session", "SQLiteSession", "MemorySaver", "InMemorySaver", "SqliteSaver", "PostgresSaver"),
    **_same(_THREADS, "ConversationBufferMemory", "Memory", "ChatMemoryBuffer", "DBConnection", "checkpointer"),
    **_same(_THREADS, "Threads", "ThreadStorage"),
    **_same(
        "write agentkit.threads.Store, or an implementation such as agentkit.threads.SQLiteStore",
        "ThreadStore",
        "BaseStore",
    ),
    **_same(_HOOKS, "AgentHooks", "RunHooks", "BaseCallbackHandler", "Callback", "trace", "Middleware", "Hooks"),
    **_same(_GUARDS, "InputGuardrail", "OutputGuardrail", "input_guardrail", "output_guardrail", "AgentMiddleware"),
    **_same(_APPROVAL, "interrupt", "Command", "HumanInTheLoopMiddleware", "DeferredToolRequests", "ToolApproved"),
    "ApprovalRequiredToolset": _APPROVAL,
    "ApprovalRequired": f"{_APPROVAL}; the event is agentkit.events.ApprovalRequired",
    **_same(
        "write agentkit.interop.mcp.MCPTools('https://…/mcp') or MCPTools(['npx', '-y', 'server'])",
        *("MCPServerStdio", "MCPServerStreamableHTTP", "MCPServerStreamableHttp", "MCPServerSSE", "MCPServerSse"),
        *("MCPServer", "MCPToolset", "MCPClient", "MultiServerMCPClient", "FastMCPToolset"),
    ),
    **_same(_TYPE, "NativeOutput", "PromptedOutput", "AgentOutputSchema", "PydanticOutputParser", "ProviderStrategy"),
    **_same("write agentkit.Agent(…, output_type=YourType, output_mode='tool')", "ToolOutput", "ToolStrategy"),
    **_same("write agentkit.messages.UserMessage", "HumanMessage", "UserPromptPart", "ModelMessage", "BaseMessage"),
    **_same("write agentkit.messages.AssistantMessage", "AIMessage", "ModelResponse", "ChatMessage", "AIMessageChunk"),
    **_same("write agentkit.messages.SystemMessage", "SystemPromptPart", "DeveloperMessage"),
    **_same("write agentkit.messages.ToolMessage", "ToolReturnPart", "FunctionMessage", "ToolReturn"),
    **_same("write agentkit.events.Text", "TextDelta", "PartDeltaEvent", "TextPartDelta", "ResponseTextDeltaEvent"),
    **_same("write agentkit.events.ToolStarted or ToolCompleted", "FunctionToolCallEvent", "FunctionToolResultEvent"),
    **_same("write agentkit.ImagePart", "ImageUrl", "ImageContent", "Image", "InputImage"),
    **_same("write agentkit.FilePart", "DocumentUrl", "AudioUrl", "VideoUrl", "FileUrl", "Attachment", "InputFile"),
    "BinaryContent": "write agentkit.ImagePart for an image, agentkit.FilePart for other files",
    **_same("write agentkit.testing.ScriptedModel", "TestModel", "FunctionModel", "FakeListChatModel", "MockModel"),
    **_same("return ToolResult(error='what to do instead'), or raise any exception: the model reads it", "ModelRetry"),
    **_same(
        "return ToolResult(error='what to do instead'), or raise any exception: the model reads it", "ToolException"
    ),
    **_same(_NO_LIMIT, "MaxTurnsExceeded", "GraphRecursionError", "UsageLimitExceeded"),
    **_same("the text of a run is result.text, its messages are result.messages", "ItemHelpers"),
    **_same(
        "write agentkit.agent.dicts_from(messages)", "messages_to_dict", "convert_to_openai_messages", "message_to_dict"
    ),
    **_same(
        "write agentkit.agent.messages_from(dicts); every prompt accepts such dicts",
        "messages_from_dict",
        "convert_to_messages",
    ),
    **_same("the messages up to a failure are in the error's result: error.result.messages", "capture_run_messages"),
    **_same("the settings of a run are arguments: agent.run('…', temperature=0, context=…)", "RunnableConfig"),
    **_same("write agentkit.agent.RunStream", "RunResultStreaming", "StreamedRunResult", "AgentStream"),
    **_same("write agentkit.RunResult", "AgentRunResult", "RunOutput"),
    **_same("write agentkit.AgentkitError", "AgentError", "AgentRunError", "UnexpectedModelBehavior"),
    **_same("write agentkit.ProviderError", "ModelHTTPError", "ModelAPIError", "FallbackExceptionGroup"),
    **_same(
        "to let a tool end the run write @openapi_schema(terminates=True)",
        "StopAtTools",
        "ToolsToFinalOutputResult",
        "END",
    ),
    **_same(
        "instructions are a string, or a function that returns one: Agent(…, system=…)",
        "PromptTemplate",
        "SystemPrompt",
    ),
    **_same("instructions are a string, or a function that returns one: Agent(…, system=…)", "ChatPromptTemplate"),
    # AgentPress
    "XMLTagSchema": "write @xml_schema(tag_name=…, mappings=[…])",
    "XMLNodeMapping": "write an entry of @xml_schema(mappings=[…]), or agentkit.tool.XMLMapping",
    "custom_schema": "pass a hand-written schema to @openapi_schema({…})",
    "usage_example": "write @xml_schema(example=…); other formats' examples are generated from the schema",
    **_same(_OWN, "tool_metadata", "method_metadata"),
    "ContextManager": "write agentkit.threads.Compaction",
    "StateManager": "state belongs to the tools; a thread's own values are create_thread(metadata=…)",
}
"""Names of other toolkits, and what to write instead."""
