"""Tool parsers by name, as verl and open-instruct know them: token ids or text in, content and calls out.

Every one reads by the text formats; a name is a table's entry.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, TypeVar

from agentkit import formats
from agentkit.errors import ConfigError, FormatError
from agentkit.events import CallEnd, CallError, Event, Text
from agentkit.formats.format import Format, Tag, edge
from agentkit.rollout.tokens.opened_thinking import can_open
from agentkit.rollout.tokens.stop_strings import stop_strings
from agentkit.rollout.tokens.token_encoding import TokenEncoder
from agentkit.rollout.tokens.turn_reading import events_of
from agentkit.toolspec import ToolSpec


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call as verl's parsers give it.

    Args:
        name: the function name; empty if the text was too damaged to tell it.
        arguments: its arguments as JSON text. For a call that could not be read what is wrong with it, in words: never
            JSON, so that a program that reads it as such has an error to report, and nothing to run.
        tool_call_id: the id that the model wrote; None if its format has none.
    """

    name: str
    arguments: str
    tool_call_id: str | None = None


class UnknownParser(ConfigError, ValueError):
    """There is no tool parser of this name. A `ValueError`, as verl's documents have it."""


VERL_NAMES: Final[Mapping[str, str]] = {
    "hermes": "hermes",
    "gpt-oss": "harmony",
    "qwen3_coder": "qwen3_coder",
    "glm": "glm45",
    "seed": "seed_oss",
    "minimax": "minimax_m2",
    "kimi": "kimi_k2",
    "gemma4": "gemma4",
    "deepseek_v4": "deepseek_v4",
}
"""The names of verl's parsers, each with its format. Source: verl 0.9.1, `tool_parser.py`."""

OPEN_INSTRUCT_NAMES: Final[Mapping[str, str]] = {
    "legacy": "legacy",
    "dr_tulu": "dr_tulu",
    "vllm_hermes": "hermes",
    "vllm_llama3_json": "llama3_json",
    "vllm_olmo3": "olmo3",
    "vllm_qwen3_coder": "qwen3_coder",
    "vllm_qwen3_xml": "qwen3_coder",
}
"""The names of open-instruct's parsers. Source: `open_instruct/environments/tools/parsers.py`."""

_STOPS: Final[Mapping[str, str]] = {
    "glm45": "<|observation|>",
    "kimi_k2": "<|im_end|>",
    "gemma4": "<tool_call|>",
    "harmony": "<|call|>",
}
"""The token at which an engine must stop, in formats after whose calls a model continues. Source: verl's parsers."""

_PADDING: Final = ("pad_token_id", "eos_token_id")


class ToolParser:
    """Reads the calls of one format.

    Args:
        tokenizer: transformers-like; None if only texts are read.
        format: the format, by name or as declared.
        tools: the tools that may be called, if they are not passed with each response.
    """

    _registry: ClassVar[dict[str, Callable[[Any], ToolParser]]] = {}

    def __init__(self, tokenizer: Any = None, format: str | Format = "hermes", tools: Sequence[Any] = ()) -> None:
        self.tokenizer = tokenizer
        self.format = formats.get(format)
        self.tools = as_specs(tools)
        self._encoder = None if tokenizer is None else TokenEncoder(tokenizer)

    def __repr__(self) -> str:
        return f"ToolParser(format={self.format.name!r})"

    @classmethod
    def get_tool_parser(cls, name: str, tokenizer: Any = None) -> ToolParser:
        """The parser of this name: one that was registered, one of verl's or open-instruct's, or any format's.

        Raises:
            UnknownParser: there is none; says which there are.
        """
        if (made := cls._registry.get(name)) is not None:
            return made(tokenizer)
        try:
            return ToolParser(tokenizer, VERL_NAMES.get(name, OPEN_INSTRUCT_NAMES.get(name, name)))
        except FormatError as error:
            known = ", ".join(sorted({*cls._registry, *VERL_NAMES, *OPEN_INSTRUCT_NAMES}))
            said = f"Unknown tool parser: {name}; known are {known}, and every format ({error})"
            raise UnknownParser(said) from error

    @classmethod
    def register(cls, name: str) -> Callable[[P], P]:
        """Decorate a class, or a function that takes a tokenizer: `get_tool_parser` finds it under this name first."""

        def registered(made: P) -> P:
            cls._registry[name] = made
            return made

        return registered

    @property
    def tool_call_start_token(self) -> str:
        """How a call begins, such as `<tool_call>`."""
        return _spelt(self.format.shapes[0].opening)

    @property
    def tool_call_end_token(self) -> str:
        """How a call ends, such as `</tool_call>`."""
        shape = self.format.shapes[0]
        return _spelt(shape.section.close if shape.section is not None else shape.call[-1])

    @property
    def stop_token_ids(self) -> list[int]:
        """Tokens at which an engine must stop, because the model continues after a call; most end the turn."""
        token = _STOPS.get(self.format.name)
        if token is None or self._encoder is None:
            return []
        return [id for id, text in self._encoder.control.items() if text == token]

    def stop_strings(self, tools: Sequence[Any] = ()) -> list[str]:
        """Strings at which a sampler stops: open-instruct's `stop_sequences`.

        For `legacy` the end of each tool's tag, for `dr_tulu` that of its call; empty where a model ends its turn. The
        sampler must leave the string in the text (`include_stop_str_in_output`), or the call has no end.
        """
        return list(stop_strings(self.format, as_specs(tools) or self.tools))

    async def extract_tool_calls(
        self, responses_ids: Sequence[int], tools: Sequence[Any] | None = None, *, thinking: bool | None = None
    ) -> tuple[str, list[FunctionCall]]:
        """The text without its calls, and the calls: `content, calls`.

        Args:
            responses_ids: the model's turn. Special tokens are read, padding and the end of the turn are not.
            tools: the tools, as `ToolSpec`, OpenAI's JSON or verl's schemas. Formats that write values as text need
                them for the types: without, every value is a string.
            thinking: whether the prompt opened thinking; None: decided by the text and the tokenizer's chat template.
        """
        return self.extract(self.text(responses_ids), tools, thinking=thinking)

    def extract(
        self, text: str, tools: Sequence[Any] | None = None, *, thinking: bool | None = None
    ) -> tuple[str, list[FunctionCall]]:
        """Return a text without its calls, and the calls.

        Where `thinking` is None, a response began inside thinking if it has the end of thinking without a beginning,
        not as a word of a sentence or quoted, unless the chat template never opens thinking.
        """
        specs = self.tools if tools is None else as_specs(tools)
        events = events_of(text, self.format, specs, thinking=thinking, can_open=lambda: self._can_open)
        return "".join(e.text for e in events if isinstance(e, Text)), list(_calls(events))

    @cached_property
    def _can_open(self) -> bool | None:
        """True if prompts can open thinking; None without a chat template."""
        return can_open(self.tokenizer, self.format)

    def text(self, ids: Sequence[int]) -> str:
        """The text of token ids, without the padding and the end of the turn that follow it.

        Raises:
            ConfigError: there is no tokenizer.
        """
        if self._encoder is None:
            raise ConfigError(f"{self!r} has no tokenizer: pass one, or read texts with extract()")
        ends = {getattr(self.tokenizer, name, None) for name in _PADDING} - set(self.stop_token_ids)
        last = len(ids)
        while last and ids[last - 1] in ends:
            last -= 1
        return self._encoder.decode(ids[:last])


P = TypeVar("P", bound=Callable[[Any], ToolParser])


def get_tool_parser(name: str, tokenizer: Any = None) -> ToolParser:
    """The parser of this name; see `ToolParser.get_tool_parser`.

    Raises:
        UnknownParser: there is none.
    """
    return ToolParser.get_tool_parser(name, tokenizer)


def as_specs(tools: Iterable[Any]) -> tuple[ToolSpec, ...]:
    """Tools as `ToolSpec`, from `ToolSpec`s, from OpenAI's JSON, or from verl's schemas (anything with `model_dump`).

    Raises:
        ConfigError: one of them is none of these.
    """
    return tuple(_as_spec(tool) for tool in tools)


def _spelt(part: Any) -> str:
    """A literal or a tag as it is written; empty for a part that depends on the call."""
    return edge(part).strip() if isinstance(part, str | Tag) else ""


def _as_spec(tool: Any) -> ToolSpec:
    if isinstance(tool, ToolSpec):
        return tool
    shown = tool.model_dump(exclude_unset=True, exclude_none=True) if hasattr(tool, "model_dump") else tool
    function = shown.get("function", shown) if isinstance(shown, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ConfigError(f"a tool must be a ToolSpec or OpenAI's JSON with a function's name, found {tool!r:.200}")
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    return ToolSpec(function["name"], function.get("description") or "", parameters)


def _calls(events: Iterable[Event]) -> Iterable[FunctionCall]:
    for event in events:
        match event:
            case CallEnd():
                arguments = json.dumps(event.call.arguments, ensure_ascii=False)
                yield FunctionCall(event.call.name, arguments, event.call.id or None)
            case CallError():
                yield FunctionCall(event.call.name, f"{event.code}: {event.message}", event.call.id or None)
