"""Untrusted input: the texts that a native model has read and did not write. If they name a tool, its call is refused.

Pure: messages in, an answer out. A page, a file or a person may contain a call, and a reply may quote it, in another
format and with other words. So calls are not compared. If a text that the model has read names the tool, the call may
be a quote, and the model must make it natively. Which names count depends on the text:

- In tool output, including the provider's, a name of several words counts anywhere (`delete_file`), since it does not
  occur by chance; a single word counts only in the form of a call (`run(…)`, `<run>`).
- A user who names a tool wants it called, as does a model that announces it: in their texts, any name must have the
  form of a call. Of an earlier reply, only what is text counts: a call that was made can be repeated.
- agentkit's own answers to calls do not count.
- The instructions, those of the tools' declarations included, may ask for calls. But an example in them that is
  repeated literally, arguments and all, is a quote.

A name may also be divided: texts that follow one another are also searched as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

from agentkit.checks.message_values import text_in
from agentkit.checks.tool_names import MODULES
from agentkit.events import CallQuoted, ProviderBlock
from agentkit.messages import (
    AssistantMessage,
    FilePart,
    Message,
    ProviderPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
)
from agentkit.processor.plain_text import bare, layers, plain
from agentkit.processor.provider_tool_output import offered_in, texts_of
from agentkit.schemas.walk import strings
from agentkit.toolspec import ToolSpec

_OWN_ANSWERS: Final = frozenset(
    (
        "unknown_tool", "invalid_json", "invalid_arguments", "truncated_call", "ambiguous_call",
        "denied", "skipped", "limit", "cancelled", "interrupted",
    )
)  # fmt: skip
"""The codes of the errors that agentkit words."""

_NEAR: Final = 80  # characters before a name, and after it, that show whether it has the form of a call
_COMPOUND: Final = re.compile(r"[^\W_][-_.]+[^\W_]|[a-z0-9][A-Z]")
_BEFORE: Final = re.compile(
    r"(?:<\s{0,8}/?\s{0,8}"  # <run, and below tool: run
    r"|(?:name|tool|func|action|call|invoke|recipient|\bto)[^\s<>:=\"'`]{0,24}\s{0,8}[\"'`]{0,2}\s{0,8}[:=>\]]{1,3}\s{0,8}"
    r")[\"'`]{0,2}\s{0,8}\Z"
)
_AFTER: Final = re.compile(r"[^\S\n]{0,8}[\"'`]{0,2}\s{0,8}(?:[({]|<arg|<\||\[args\]|\n[^\n({]{0,40}\{)")  # run(
_NAMESPACE: Final = re.compile(
    rf"(?:(?:{'|'.join(MODULES)})[._/:]+|(?:[a-z0-9-]{{1,64}}__|[\w-]{{1,64}}[.:]){{1,3}})\Z"
)
_NUMBER: Final = re.compile(r"\A:\d{1,9}")  # name:0
_KEY: Final = re.compile(r"\s{0,8}[\"']{1,2}\s{0,8}:")  # "run":
_IN_LIST: Final = re.compile(r"[\[{,:]\s{0,40}[\"']{1,2}\s{0,8}\Z")  # ["run"

_Speaker = Literal["tool", "user", "model"]


class _Passage(NamedTuple):
    """A text that the model has read.

    Attributes:
        speaker: who said it.
        tool: the tool that returned it, if any.
        call_id: the call that it is the result of, if any.
        own: whether its code is that of an error that agentkit words: such an error may name the tool that was called,
            and any tool if that does not exist. (A tool may give its own error the code, with any text.)
        texts: the text in plain characters, and what its escapes stand for.
    """

    speaker: _Speaker
    tool: str
    call_id: str | None
    texts: tuple[str, ...]
    own: bool = False


class UntrustedInput:
    """The texts of a conversation, examined when a reply seems to contain a call.

    Each message and block is examined once, in time linear in its length.

    Args:
        messages: returns the conversation so far; called when there is something to compare.

    Attributes:
        copied: the calls of replies, as written, that the conversation already contains literally: certainly quotes.
    """

    def __init__(self, messages: Callable[[], Iterable[Message]]) -> None:
        self.copied: set[str] = set()
        self._messages = messages
        self._known: dict[int, tuple[object, _Passage]] = {}  # with the message, which is kept alive: the key is its id
        self._bare: dict[str, str] = {}  # instructions, without what changes when they are repeated

    def find_quote(
        self, call: ToolCall, tools: Mapping[str, ToolSpec], blocks: Iterable[ProviderBlock] = ()
    ) -> CallQuoted | None:
        """Return where the call's tool is named already; None if the call is the model's own.

        Args:
            call: found in a reply's text.
            tools: the offered tools, by name.
            blocks: the provider's blocks in the reply, as far as they come before the call.
        """
        messages = [*self._messages()]
        served = [block.data for block in blocks if block.index is None and not block.thinking]
        if call.arguments and self._is_example(bare(call.raw), tools, messages, served):
            self.copied.add(call.raw)
            return CallQuoted(call)
        names = _finder(call.name, tools.get(call.name))
        every = chain((each for message in messages for each in self._passages(message)), map(self._of_block, served))
        passages = [each for each in every if not (each.own and (each.tool == call.name or each.tool not in tools))]
        for passage in passages:
            if any(names(text, passage.speaker == "tool") for text in passage.texts):
                if any(bare(call.raw) in bare(text) for text in passage.texts):
                    self.copied.add(call.raw)
                return CallQuoted(call, passage.call_id)
        for several in _sequences(passages):
            whole = "".join(passage.texts[-1] for passage in several)
            decoded = layers(whole)[-1]  # it may have an escape in two halves
            if names(decoded, all(passage.speaker == "tool" for passage in several)):
                return CallQuoted(call)
        return None

    def _passages(self, message: Message) -> Iterator[_Passage]:
        """Return the texts of a message and of the blocks in it."""
        match message:
            case SystemMessage():
                return
            case ToolMessage(call_id, tool):
                yield self._examined(message, "tool", message.content, tool, call_id, own=message.error in _OWN_ANSWERS)
            case AssistantMessage():
                yield self._examined(message, "model", message.content)
                yield from map(self._of_block, _served(message))
            case _:
                yield self._examined(message, "user", message.content)

    def _examined(
        self,
        message: Message,
        speaker: _Speaker,
        parts: Iterable[object],
        tool: str = "",
        call_id: str | None = None,
        own: bool = False,
    ) -> _Passage:
        if id(message) not in self._known:
            files = [text_in(part.data, part.media_type) or "" for part in parts if isinstance(part, FilePart)]
            texts = [part.text for part in parts if isinstance(part, TextPart)] + files
            self._known[id(message)] = message, _Passage(speaker, tool, call_id, _forms(texts), own)
        return self._known[id(message)][1]

    def _of_block(self, block: Mapping[str, Any]) -> _Passage:
        """Return the text of a server-side tool in a block."""
        if id(block) not in self._known:
            self._known[id(block)] = block, _Passage("tool", "", None, _forms(texts_of(block)))
        return self._known[id(block)][1]

    def _is_example(
        self,
        raw: str,
        tools: Mapping[str, ToolSpec],
        messages: Sequence[Message],
        served: Sequence[Mapping[str, Any]],
    ) -> bool:
        """Return whether the instructions contain this call literally."""
        blocks = (block for some in (*map(_served, messages), served) for block in some)
        passages = (
            *(message.content for message in messages if isinstance(message, SystemMessage)),
            *(words for tool in tools.values() for words in (tool.description, *strings(tool.parameters))),
            *(words for block in blocks for words in strings(offered_in(block))),
        )
        for passage in passages:
            if passage not in self._bare:
                self._bare[passage] = bare(passage)
        return any(raw in self._bare[passage] for passage in passages)


def _forms(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the forms in which texts are searched: servers join them in either way."""
    joined = dict.fromkeys(("\n".join(texts), "".join(texts)))
    return tuple(dict.fromkeys(plain(layer) for whole in joined for layer in layers(whole)))


def _sequences(passages: Sequence[_Passage]) -> Iterator[Sequence[_Passage]]:
    """Return the texts that are searched as one: all but replies, results in order, results by tool, replies."""
    replies = [passage for passage in passages if passage.speaker == "model"]
    others = [passage for passage in passages if passage.speaker != "model"]
    results = [passage for passage in others if passage.speaker == "tool"]
    pages = sorted(results, key=lambda passage: passage.tool)  # those of one tool follow one another
    return (several for several in (others, results, pages, replies) if len(several) > 1)


def _served(message: Message) -> list[Mapping[str, Any]]:
    """Return the blocks that may have texts of server-side tools; not those of the model's calls of our tools."""
    parts = message.content if isinstance(message, AssistantMessage) else ()
    return [part.data for part in parts if isinstance(part, ProviderPart) and part.call_id is None]


def _finder(name: str, tool: ToolSpec | None) -> Callable[[str, bool], bool]:
    """Return a function that says if a text names this tool: in the form of a call, or anywhere, if allowed.

    Args:
        name: the tool's name.
        tool: its specification; it may also be called by its tag.
    """
    own = {name} if tool is None or tool.element is None else {name, tool.element.tag}
    compound = any(map(_COMPOUND.search, own))
    words = {re.sub(r"[-_.]", between, plain(each)) for each in own for between in "-_."} | set(map(plain, own))
    start = rf"(?:(?<![a-z0-9_])_{{0,2}}|(?<=[a-z0-9]__)|{'|'.join(f'(?<={each}_)' for each in MODULES)})"
    word = re.compile(rf"{start}(?:{'|'.join(map(re.escape, words))})(?=_{{0,2}}(?![a-z0-9_]))")

    def names(text: str, anywhere: bool) -> bool:
        if not any(each in text for each in words):
            return False
        return any((anywhere and compound) or _has_form(text, *found.span()) for found in word.finditer(text))

    return names


def _has_form(text: str, start: int, end: int) -> bool:
    """Return whether the text around a name makes it that of a call."""
    before = _NAMESPACE.sub("", text[max(start - _NEAR, 0) : start])
    after = _NUMBER.sub("", text[end : end + _NEAR])
    in_json = after.lstrip()[:1] in ("'", '"') and (_IN_LIST.search(before) or _KEY.match(after))
    return bool(in_json or _AFTER.match(after) or _BEFORE.search(before))
