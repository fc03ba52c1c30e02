"""SGLang (https://github.com/sgl-project/sglang): formats as its tool parsers, `--tool-call-parser agentkit_hermes`.

SGLang calls `register_formats` in each of its processes before it reads its arguments: the entry point group
`sglang.srt.plugins`. Source: SGLang 0.5.23, `sglang/srt/function_call/`, `sglang/srt/plugins/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from agentkit.formats import Format, ToolSpec
from agentkit.formats.format import PythonCall
from agentkit.interop.peers import SGLANG, require
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
from agentkit.schemas.typed import values


def register_formats(names: Iterable[str | Format] | None = None) -> list[str]:
    """Register formats as SGLang's tool parsers.

    Args:
        names: formats, by name or declaration, and `auto`, which reads any of them; None for all of the catalogue.

    Returns:
        The names that `--tool-call-parser` may have: `agentkit_` and the format's name, and `agentkit_auto`.

    Raises:
        ConfigError: SGLang is not installed.
        FormatError: a format is unknown.
    """
    module = require(SGLANG, "sglang.srt.function_call.function_call_parser")
    choices = parser_choices(names)
    for read in choices:
        module.FunctionCallParser.ToolCallParserEnum[read.name] = _detector_class(read)
    return [read.name for read in choices]


def _detector_class(read: ReadFormats) -> type[Any]:
    base = require(SGLANG, "sglang.srt.function_call.base_format_detector").BaseFormatDetector
    members = {
        "__doc__": f"agentkit's tool parser {read.name}.",
        "read": read,
        "types": require(SGLANG, "sglang.srt.function_call.core_types"),
    }
    return type(read.name.title().replace("_", "").replace("-", ""), (FormatDetector, base), members)


class FormatDetector:
    """The methods of SGLang's `BaseFormatDetector`, for one format; one object reads one reply.

    SGLang makes the ids of calls. `prev_tool_call_arr`, from which it would complete a call's arguments, stays empty.
    """

    read: ClassVar[ReadFormats]
    types: ClassVar[Any]

    def __init__(self) -> None:
        super().__init__()
        self._reply: ServerReply | None = None

    def has_tool_call(self, text: str) -> bool:
        """Return False if a text certainly holds no call: it has no mark with which one begins."""
        python = any(isinstance(part, PythonCall) for f in self.read.formats for s in f.shapes for part in s.call)
        return any(mark in text for mark in ("<[{(" if python else "<[{"))

    def detect_and_parse(self, text: str, tools: Sequence[Any]) -> Any:
        """Read a whole reply."""
        content, calls = whole_reply(self.read, tool_specs(tools), text)
        made = [
            self.types.ToolCallItem(tool_index=index, name=call.name, parameters=values.dump(dict(call.arguments)))
            for index, call in enumerate(calls)
        ]
        return self.types.StreamingParseResult(normal_text=content, calls=made)

    def parse_streaming_increment(self, new_text: str, tools: Sequence[Any]) -> Any:
        """Read on; only the new text counts."""
        if self._reply is None:
            self._reply = ServerReply(self.read, tool_specs(tools))
        return self._result(self._reply.feed(new_text))

    def finish(self, tools: Sequence[Any]) -> Any:
        """End a streamed reply; returns what was held back."""
        return self._result(self._reply.finish() if self._reply is not None else [])

    def _result(self, pieces: Sequence[str | CallPiece]) -> Any:
        calls = [
            self.types.ToolCallItem(tool_index=piece.index, name=piece.name, parameters=piece.arguments)
            for piece in pieces
            if isinstance(piece, CallPiece)
        ]
        text = "".join(piece for piece in pieces if isinstance(piece, str))
        return self.types.StreamingParseResult(normal_text=text, calls=calls)

    # ------------------------------------------------------------ constraints

    def supports_structural_tag(self) -> bool:
        """False: not the older tags that SGLang itself makes of `structure_info`; see `get_structural_tag`."""
        return False

    def parses_required_natively(self) -> bool:
        """True: forced calls are written in the format, never as a JSON array."""
        return True

    def structure_info(self) -> Any:
        """Not used, as `supports_structural_tag` is False."""
        raise NotImplementedError("agentkit's detectors have their own structural tags: get_structural_tag")

    def get_structural_tag(
        self,
        tools: Sequence[Any] | None = None,
        tool_choice: Any = "auto",
        thinking_mode: bool = False,
        parallel_tool_calls: bool = True,
    ) -> Any:
        """The format's grammar for forced calls, and for any if a tool is strict; None if it has none."""
        return boundary(
            lambda: self._tag(tool_specs(tools), tool_choice, thinking_mode, parallel_tool_calls is not False), None
        )

    def _tag(self, offered: Sequence[ToolSpec], tool_choice: Any, thinking: bool, parallel: bool) -> Any:
        choice = tool_choice if isinstance(tool_choice, str) else None
        if choice is None:
            offered = [tool for tool in offered if tool.name == tool_choice.function.name]
        tag = call_grammar(self.read, offered, choice, parallel=parallel, may_think=thinking)
        if tag is None:
            return None
        return require(SGLANG, "xgrammar").StructuralTag.model_validate(tag)
