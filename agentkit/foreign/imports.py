"""Names that `from agentkit import …` does not have: those of other modules, and those of other toolkits.

Tables only, loaded at the first such error. Attribute names are in `agentkit.foreign.attributes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentkit.foreign.attributes import same

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
_DECIDE: Final = "write agent.run(result, decisions={call.id: agentkit.Approved()}), or Denied('…')"
_TYPE: Final = "write agentkit.Agent(…, output_type=YourType)"
_NO_LIMIT: Final = (
    "limits do not raise: result.finish says which one ended the run, such as 'max_turns' or 'token_budget'"
)
_SYSTEM: Final = "instructions are a string, or a function that returns one: Agent(…, system=…)"
_TRACES: Final = "write agentkit.Agent(…, hooks=[agentkit.telemetry.OpenTelemetry()])"
_OWN: Final = "user interfaces are up to the application"

FOREIGN: Final[Mapping[str, str]] = {
    **same(_DECORATE, "tool tool_schema tools Tools Toolkit Toolset schema register_tool function_tool tool_plain"),
    **same(_DECORATE, "FunctionTool StructuredTool BaseTool ToolDefinition FunctionToolset ToolNode kernel_function"),
    **same(_DECORATE, "ai_function as_tool beta_tool AbstractToolset CombinedToolset PrefixedToolset RenamedToolset"),
    **same(
        "to offer only the tools that fit the conversation write Agent(…, offered_tools=10)",
        "ToolSearch ToolSearchTool ToolSearchToolset ToolSelector LLMToolSelectorMiddleware DeferredLoadingToolset "
        "PreparedToolset FilteredToolset",
    ),
    **same(_AGENT, "AgentExecutor create_react_agent create_agent create_tool_calling_agent ReActAgent"),
    **same(_AGENT, "initialize_agent StateGraph MessageGraph LLMChain CodeAgent ToolCallingAgent FunctionAgent"),
    **same(_AGENT, "AssistantAgent ChatAgent AgentRunner ConversableAgent LlmAgent Graph BaseNode AgentSpec"),
    **same("an agent runs itself: agent.run_sync('…'), or await agent.run('…')", "Runner run run_sync"),
    **same(
        "agents can be tools of others: Agent(…, tools=[other.as_tool('name', 'what it is good at')])",
        "handoff Handoff Crew Swarm Team",
    ),
    **same("write agentkit.ToolContext", "RunContext RunContextWrapper ToolRuntime InjectedState Context"),
    **same(_MODEL, "ChatOpenAI ChatAnthropic AsyncOpenAI OpenAI Anthropic AsyncAnthropic init_chat_model LiteLLMModel"),
    **same(_MODEL, "OpenAIChatModel OpenAIChatCompletionsModel LLM OpenAIResponsesModel OpenAIProvider"),
    **same(_MODEL, "set_default_openai_client set_default_openai_key GoogleModel ChatGoogleGenerativeAI ChatVertexAI"),
    **same(_MODEL, "Gemini Client InferenceClientModel OpenAIServerModel make_llm_api_call LLMError GoogleProvider"),
    **same(_MODEL, "BedrockConverseModel BedrockProvider ChatBedrock ChatBedrockConverse"),
    **same("write agentkit.first_of('openai:gpt-5', 'anthropic:…')", "FallbackModel ModelFallbackMiddleware"),
    **same("write agentkit.first_of('openai:gpt-5', 'anthropic:…')", "RunnableWithFallbacks fallback"),
    **same("each setting is an argument: Agent(…, temperature=0), or agent.run('…', temperature=0)", "ModelSettings"),
    **same("each setting is an argument: Agent(…, temperature=0), or agent.run('…', temperature=0)", "RunConfig"),
    "UsageLimits": "write agentkit.Budget(tokens=…)",
    **same("it is in agentkit.events: from agentkit.events import Usage", "RunUsage RequestUsage TokenUsage"),
    **same(_THREADS, "Session SQLiteSession MemorySaver InMemorySaver SqliteSaver PostgresSaver"),
    **same(_THREADS, "ConversationBufferMemory Memory ChatMemoryBuffer DBConnection checkpointer Threads"),
    **same(_THREADS, "ThreadStorage Conversation"),
    **same("write agentkit.threads.Store, or an implementation such as agentkit.threads.SQLiteStore", "ThreadStore"),
    **same("write agentkit.threads.Store, or an implementation such as agentkit.threads.SQLiteStore", "BaseStore"),
    **same(_HOOKS, "AgentHooks RunHooks BaseCallbackHandler Callback trace"),
    **same(_GUARDS, "InputGuardrail OutputGuardrail input_guardrail output_guardrail AgentMiddleware Middleware Hooks"),
    **same(_GUARDS, "AbstractCapability Capability ProcessHistory SkipToolExecution SkipModelRequest"),
    **same(_APPROVAL, "interrupt Command HumanInTheLoopMiddleware DeferredToolRequests ApprovalRequiredToolset"),
    **same(_APPROVAL, "CallDeferred ExternalToolset"),
    **same(_DECIDE, "ToolApproved ToolDenied DeferredToolResults"),
    "ApprovalRequired": f"{_APPROVAL}; the event is agentkit.events.ApprovalRequired",
    **same(
        "write agentkit.interop.mcp.MCPTools('https://…/mcp') or MCPTools(['npx', '-y', 'server'])",
        "MCPServerStdio MCPServerStreamableHTTP MCPServerStreamableHttp MCPServerSSE MCPServerSse MCPServer MCPToolset "
        "MCPClient MultiServerMCPClient FastMCPToolset",
    ),
    **same(
        _TYPE,
        "NativeOutput PromptedOutput AgentOutputSchema PydanticOutputParser ProviderStrategy TextOutput StructuredDict",
    ),
    **same("write agentkit.Agent(…, output_type=YourType, output_mode='tool')", "ToolOutput ToolStrategy"),
    **same("write agentkit.messages.UserMessage", "HumanMessage UserPromptPart"),
    **same("write agentkit.messages.AssistantMessage", "AIMessage ModelResponse ChatMessage AIMessageChunk"),
    **same("write agentkit.messages.SystemMessage", "SystemPromptPart DeveloperMessage"),
    **same("write agentkit.messages.ToolMessage", "ToolReturnPart FunctionMessage RetryPromptPart"),
    **same("write agentkit.messages.Message", "ModelMessage BaseMessage"),
    "ToolReturn": "write agentkit.ToolResult",
    **same(
        "write agentkit.events.Event, or one of its classes",
        "AgentStreamEvent PartStartEvent PartEndEvent FinalResultEvent",
    ),
    **same("write agentkit.events.Text", "TextDelta PartDeltaEvent TextPartDelta ResponseTextDeltaEvent"),
    **same("write agentkit.events.ToolStarted or ToolCompleted", "FunctionToolCallEvent FunctionToolResultEvent"),
    **same("write agentkit.ImagePart", "ImageUrl ImageContent Image InputImage BinaryImage"),
    **same("write agentkit.FilePart", "DocumentUrl AudioUrl VideoUrl FileUrl Attachment InputFile UploadedFile"),
    "BinaryContent": "write agentkit.ImagePart for an image, agentkit.FilePart for other files",
    **same("write agentkit.testing.ScriptedModel", "TestModel FunctionModel FakeListChatModel MockModel"),
    **same(
        "in a tool return ToolResult(error='what to do instead'), or raise any exception: the model reads it; in a "
        "guard of replies return agentkit.AskAgain",
        "ModelRetry ToolException",
    ),
    **same(_NO_LIMIT, "MaxTurnsExceeded GraphRecursionError UsageLimitExceeded"),
    "ItemHelpers": "the text of a run is result.text, its messages are result.messages",
    **same("write agentkit.agent.dicts_from(messages)", "messages_to_dict convert_to_openai_messages message_to_dict"),
    "ModelMessagesTypeAdapter": "write agentkit.agent.dicts_from(messages), or keep them in an agentkit.ThreadManager",
    **same("write agentkit.agent.messages_from(dicts)", "messages_from_dict convert_to_messages"),
    "capture_run_messages": "the messages up to a failure are in the error's result: error.result.messages",
    "RunnableConfig": "the settings of a run are arguments: agent.run('…', temperature=0, context=…)",
    **same("write agentkit.agent.RunStream", "RunResultStreaming StreamedRunResult AgentStream AgentRun"),
    **same("write agentkit.RunResult", "AgentRunResult RunOutput"),
    "UnexpectedModelBehavior": "write agentkit.OutputError, which result.output raises if there is none",
    "UserError": "write agentkit.ConfigError",
    **same("write agentkit.AgentkitError", "AgentError AgentRunError"),
    **same("write agentkit.ProviderError", "ModelHTTPError ModelAPIError FallbackExceptionGroup"),
    **same("to let a tool end the run write @openapi_schema(terminates=True)", "StopAtTools ToolsToFinalOutputResult"),
    **same("to let a tool end the run write @openapi_schema(terminates=True)", "END"),
    **same(_SYSTEM, "PromptTemplate SystemPrompt ChatPromptTemplate TemplateStr"),
    **same(_TRACES, "InstrumentationSettings InstrumentedModel LangSmith"),
    **same("tools for the web are in agentkit_tools.web and agentkit_tools.search", "WebSearchTool WebFetchTool"),
    "CodeExecutionTool": "tools that run code are in agentkit_tools.python and agentkit_tools.shell",
    **same("events of AG-UI and the AI SDK are written by agentkit.gateway.events", "AGUIAdapter VercelAIAdapter"),
    # AgentPress
    "XMLTagSchema": "write @xml_schema(tag_name=…, mappings=[…])",
    "XMLNodeMapping": "write an entry of @xml_schema(mappings=[…]), or agentkit.tool.XMLMapping",
    "custom_schema": "pass a hand-written schema to @openapi_schema({…})",
    "usage_example": "write @xml_schema(example=…); other formats' examples are generated from the schema",
    **same(_OWN, "tool_metadata method_metadata"),
    "ContextManager": "write agentkit.threads.Compaction",
    "StateManager": "state belongs to the tools; a thread's own values are create_thread(metadata=…)",
}
"""Names of other toolkits, and what to write instead."""
