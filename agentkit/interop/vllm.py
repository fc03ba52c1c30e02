"""vLLM (https://github.com/vllm-project/vllm): formats as its tool parsers, `--tool-call-parser agentkit_hermes`.

vLLM calls `register_formats` in each of its processes before it reads its arguments: the entry point group
`vllm.general_plugins`. Source: vLLM 0.33.0, `vllm/tool_parsers/abstract_tool_parser.py`,
`vllm/parser/abstract_parser.py`.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from agentkit.errors import ConfigError
from agentkit.formats import Format, ToolSpec
from agentkit.formats.format import CountedName
from agentkit.interop.peers import VLLM, require
from agentkit.interop.server_reply import (
    CallPiece,
    ReadFormats,
    ServerReply,
    boundary,
    call_grammar,
    parser_choices,
    tool_specs,
    whole_reply,
)
from agentkit.processor.processor import call_id
from agentkit.schemas.typed import values

_LOG: Final = logging.getLogger("agentkit.interop")


def register_formats(names: Iterable[str | Format] | None = None) -> list[str]:
    """Register formats as vLLM's tool parsers.

    Args:
        names: formats, by name or declaration, and `auto`, which reads any of them; None for all of the catalogue.

    Returns:
        The names that `--tool-call-parser` may have: `agentkit_` and the format's name, and `agentkit_auto`.

    Raises:
        ConfigError: vLLM is not installed, or is too old.
        FormatError: a format is unknown.
    """
    module = require(VLLM, "vllm.tool_parsers.abstract_tool_parser")
    if not hasattr(module.ToolParser, "engine_based_streaming"):
        raise ConfigError("this vLLM is too old: it does not tell a tool parser that a streamed reply is over")
    choices = parser_choices(names)
    for read in choices:
        module.ToolParserManager.register_module(name=read.name, module=_parser_class(module, read))
    return [read.name for read in choices]


def load_plugin() -> None:
    """Register all formats: the entry point. vLLM would not start if it failed, so that a failure is logged."""
    try:
        register_formats()
    except Exception:  # noqa: BLE001 - whatever a version of vLLM lacks, it starts without our names
        _LOG.exception("agentkit's tool parsers are not registered in vLLM")


def _parser_class(module: Any, read: ReadFormats) -> type[Any]:
    members = {
        "__doc__": f"agentkit's tool parser {read.name}.",
        "read": read,
        # vLLM moved its protocol more than once: these values come from the module that its parsers have them from
        "protocol": sys.modules[module.DeltaMessage.__module__],
        "structured": module.StructuredOutputsParams,
    }
    return type(read.name.title().replace("_", "").replace("-", ""), (FormatToolParser, module.ToolParser), members)


class FormatToolParser:
    """The methods of vLLM's `ToolParser`, for one format; one object reads one reply.

    Attributes:
        supports_required_and_named: False, or vLLM would read forced calls as a JSON array, past this parser.
        engine_based_streaming: vLLM gives each delta once, and calls `finish_streaming` at the end.
    """

    supports_required_and_named: ClassVar = False
    engine_based_streaming: ClassVar = True
    read: ClassVar[ReadFormats]
    protocol: ClassVar[Any]
    structured: ClassVar[Any]
    tools: Any

    def __init__(self, tokenizer: Any, tools: Any = None) -> None:
        super().__init__(tokenizer, tools)  # type: ignore[call-arg]  # vLLM's, which is next in order
        self._reply: ServerReply | None = None
        self._request: Any = None

    def adjust_request(self, request: Any) -> Any:
        """Have the text left as the model writes it, and forced or strict calls constrained to the format's grammar.

        With `tool_choice="auto"` only if a tool is strict and the request has no other constraint.
        """
        if not self._offered(request):
            return request
        request.skip_special_tokens = False  # in some checkpoints `<tool_call>` is one. Source: vllm#25281
        tag = boundary(lambda: self._constraint(request), None)
        if tag is not None:
            request.structured_outputs = self.structured(structural_tag=json.dumps(tag))
            if hasattr(request, "response_format"):
                request.response_format = None
            elif hasattr(request, "text"):
                request.text = None
        return request

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        """Read a whole reply."""
        content, calls = whole_reply(self.read, self._offered(request), model_output)
        made = []
        for index, call in enumerate(calls):
            function = self.protocol.FunctionCall(name=call.name, arguments=values.dump(dict(call.arguments)))
            id = self._id(request, index, call.name)
            if hasattr(function, "id"):
                function.id = id
            made.append(self.protocol.ToolCall(id=id, function=function))
        return self.protocol.ExtractedToolCallInformation(tools_called=bool(made), tool_calls=made, content=content)

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> Any:
        """Read on; only the delta counts."""
        if self._reply is None:
            self._request = request
            self._reply = ServerReply(self.read, self._offered(request))
        return self._message(self._reply.feed(delta_text))

    def finish_streaming(self) -> Any:
        """End a streamed reply; returns what was held back."""
        return self._message(self._reply.finish()) if self._reply is not None else None

    def _message(self, pieces: Sequence[str | CallPiece]) -> Any:
        """A delta of a message; None without any piece."""
        if not pieces:
            return None
        content = "".join(piece for piece in pieces if isinstance(piece, str))
        calls = [self._delta(piece) for piece in pieces if isinstance(piece, CallPiece)]
        return self.protocol.DeltaMessage(content=content or None, tool_calls=calls)

    def _delta(self, piece: CallPiece) -> Any:
        function = self.protocol.DeltaFunctionCall(name=piece.name, arguments=piece.arguments)
        if piece.name is None:
            return self.protocol.DeltaToolCall(index=piece.index, function=function)
        id = self._id(self._request, piece.index, piece.name)
        return self.protocol.DeltaToolCall(index=piece.index, id=id, type="function", function=function)

    def _id(self, request: Any, index: int, name: str) -> str:
        """A new id; in a format that counts calls, as the model reads it in the history: `functions.add:0`."""
        counted = next((part for part in self._call_parts() if isinstance(part, CountedName)), None)
        if counted is None:
            return f"call_{call_id()}"
        before = sum(len(m.get("tool_calls") or ()) for m in _messages(request) if isinstance(m, dict))
        return f"{counted.prefix}{name}:{before + index}"

    def _call_parts(self) -> Sequence[Any]:
        return self.read.single.call if self.read.single is not None else ()

    def _offered(self, request: Any) -> tuple[ToolSpec, ...]:
        """The tools whose calls are read; none if the request forbids calls."""
        if request.tool_choice == "none":
            return ()
        return tool_specs(getattr(request, "tools", None) or self.tools)

    def _constraint(self, request: Any) -> dict[str, Any] | None:
        """The structural tag for a request; thinking may come first: vLLM does not say who reads it."""
        tools, choice = self._offered(request), request.tool_choice
        parallel = request.parallel_tool_calls is not False
        if choice == "required":
            return call_grammar(self.read, tools, "required", parallel=parallel, may_think=True)
        if choice is not None and not isinstance(choice, str):
            named = getattr(getattr(choice, "function", choice), "name", None)
            only = [tool for tool in tools if tool.name == named]
            return call_grammar(self.read, only, None, parallel=False, may_think=True)
        if _strict(request) and request.extract_structured_outputs() is None:
            return call_grammar(self.read, tools, "auto", parallel=parallel, may_think=True)
        return None


def _messages(request: Any) -> Iterable[Any]:
    return getattr(request, "messages", None) or ()


def _strict(request: Any) -> bool:
    return any(getattr(getattr(tool, "function", tool), "strict", None) is True for tool in request.tools or ())
