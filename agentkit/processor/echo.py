"""What a native model has read from others: a call in its text that already occurs there is a quote, not a call.

Law 12. Pure: messages in, an answer out. Anything that a page, a file or a person says may be quoted in a reply, with
its white space, quotes, escapes and format changed on the way; so what was read is compared as text without all these,
and by the calls that a parser finds in it. In what others say, a call may occur anywhere, not only where a model would
write one. What the provider's own tools return counts like the result of any tool, also in the response that it is in.

What an earlier reply shows as text is a source as well: a call in it was not run when it could be read, because it was
quoted, drafted or described. So a quote stays one when its own source is no longer in the conversation: a temporary
message, the system prompt of an earlier run, the results of a transcript that was imported as text. A call that was
made or attempted is not a part of that text, and can be repeated.

Sources that follow one another are also compared as one (see `agentkit.processor.seams`): a file that is read page by
page, messages that a user sent in pieces. But only if the call stands in them whole and in order.

The system prompt and what declares the tools are instructions: the model may make the calls that they request. But
they contain examples, and what an MCP server declares is also a stranger's word; so a call that occurs there literally,
arguments and all, is also a quote: in any string of a description or a schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from agentkit.events import CallEnd, CallError, CallQuoted, ProviderBlock
from agentkit.messages import (
    AssistantMessage,
    Message,
    ProviderPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
)
from agentkit.processor.comparing import bare, examined, names_alone, readings
from agentkit.processor.seams import Page, Seams
from agentkit.processor.served import offered_in, texts_of
from agentkit.processor.telling import Telling, as_text, worked_out
from agentkit.processor.textreader import TextReader
from agentkit.schemas.walk import strings
from agentkit.toolspec import ToolSpec

_AFTER_CALL: Final = re.compile(r"\)(?!\s*[,)\]}])")
_APART: Final = "\n\0\n"  # between texts that are searched as one


def _made_plain(text: str, tools: Iterable[str]) -> Iterator[str]:
    """The text with its calls of a tool moved to where a parser looks for them.

    A Python-style call (`so delete(path="a")`, `x = tools.delete("a")`) begins a line, and the tool's name in an
    object gets the key `name`, regardless of its original key (`{"tool": "delete", …}`). In the second text, a closing
    parenthesis also ends its line: with what follows (`delete("a") and say so`), the call could be part of a condition.
    """
    names = "|".join(map(re.escape, tools))
    text = re.sub(rf"""(["'])[\w-]{{1,32}}\1(?=\s{{0,64}}:\s{{0,64}}["'](?:{names})["'])""", '"name"', text)
    text = re.sub(rf"(?<!\w)(?=(?:{names})\s{{0,64}}\()", "\n", text)
    yield text
    yield _AFTER_CALL.sub(")\n\n", text)


class _Meaning(NamedTuple):
    name: str
    arguments: frozenset[tuple[str, str]]


def _given(call: ToolCall, tool: ToolSpec | None) -> Iterator[tuple[str, Any]]:
    """The arguments that differ from their defaults: values may be text or typed."""
    known = tool.parameters.get("properties", {}) if tool is not None else {}
    default = {name: bare(as_text(of["default"])) for name, of in known.items() if "default" in of}
    return ((name, v) for name, v in call.arguments.items() if name not in default or default[name] != bare(as_text(v)))


def _meaning(call: ToolCall, tool: ToolSpec | None) -> _Meaning:
    """A call in a form that is the same for any format: values may be text or typed, and defaults omitted."""
    return _Meaning(call.name, frozenset((name, bare(as_text(value))) for name, value in _given(call, tool)))


class _Own(NamedTuple):
    """The call of a reply: its text, what it means, and what tells it."""

    text: str
    meaning: _Meaning
    telling: Telling


@dataclass(slots=True)
class _Read:
    """What was read at once, as far as it was examined: its texts, bare, the characters that are visible, its calls.

    Attributes:
        source: the message or the provider's block, which is kept alive: its identity is the key.
        result: whether a tool returned it.
    """

    source: Message | Mapping[str, Any]
    result: bool
    texts: tuple[str, ...]
    bare: tuple[str, ...]
    visible: frozenset[str]
    worked_out: bool
    calls: frozenset[_Meaning] | None = None
    tools: Mapping[str, ToolSpec] | None = None
    alone: dict[re.Pattern[str], bool] = field(default_factory=dict)

    @property
    def call_id(self) -> str | None:
        """The call that it is the result of, if any."""
        return self.source.call_id if isinstance(self.source, ToolMessage) else None

    def names_alone(self, word: re.Pattern[str]) -> bool:
        """Whether it contains this word."""
        if word not in self.alone:
            self.alone[word] = any(names_alone(text, word) for text in self.texts)
        return self.alone[word]


class Heard:
    """What a conversation has said to the model, examined when a reply seems to contain a call.

    Each message and block is examined once, in time linear in its length, and read for calls only if it names the tool.

    Args:
        messages: returns the conversation so far; called when there is something to compare.
        new_parsers: creates parsers that find calls of these tools in every format, even in code and quotes.
    """

    def __init__(
        self,
        messages: Callable[[], Iterable[Message]],
        new_parsers: Callable[[Sequence[ToolSpec]], Sequence[TextReader]],
    ) -> None:
        self._messages = messages
        self._new_parsers = new_parsers
        self._read: dict[int, _Read] = {}
        self._seams: dict[tuple[str, str], _Read] = {}
        self._bare: dict[str, str] = {}  # instructions, without what changes when they are quoted
        self._declared: tuple[Mapping[str, ToolSpec], str] | None = None  # the same of tools

    def quoted(
        self, call: ToolCall, tools: Mapping[str, ToolSpec], blocks: Iterable[ProviderBlock] = ()
    ) -> CallQuoted | None:
        """Where the call already occurs; None if it is the model's own.

        Args:
            call: found in a reply's text.
            tools: the tools whose calls are looked for, by name.
            blocks: the provider's blocks in the reply, as far as they come before the call.
        """
        tool = tools.get(call.name)
        text = bare(call.raw)
        telling = Telling(_names(call.name, tool), (value for _, value in _given(call, tool)), call.raw, text)
        own = _Own(text, _meaning(call, tool), telling)
        messages = list(self._messages())
        told = [block.data for block in blocks if block.index is None and not block.thinking]
        if self._instructed(call, text, tools, messages, told):
            return CallQuoted(call)
        reads = [*(read for message in messages for read in self._known(message)), *map(self._told, told)]
        for read in reads:
            if self._occurs(own, read, tools):
                return CallQuoted(call, read.call_id)
        begin = next(self._divided(own, call.raw, reads, tools), None)
        return CallQuoted(call, begin.call_id) if begin is not None else None

    def _occurs(self, own: _Own, read: _Read, tools: Mapping[str, ToolSpec]) -> bool:
        """Whether the call is in what was read: as it is written, in other words, or in another format."""
        text, meaning, telling = own
        if any(text in bare_text for bare_text in read.bare):
            return True
        if not telling.named(read.bare):
            return False
        result = read.result
        if result and telling.alone is not None and telling.marked(read.visible) and read.names_alone(telling.alone):
            return True
        told = telling.in_result if result else telling.in_message
        if told(read.bare, read.visible):
            return True
        possible = read.worked_out or telling.possible(read.bare, read.visible)
        return possible and meaning in self._calls(read, tools)

    def _divided(self, own: _Own, raw: str, reads: Sequence[_Read], tools: Mapping[str, ToolSpec]) -> Iterator[_Read]:
        """In what the call begins that is divided over several."""
        for several in _sequences(reads):
            seams = Seams([Page(read.texts[-1], read.bare, read.result) for read in several])
            if (begin := seams.began(raw, own.text)) is not None:
                yield several[begin]
            size = 2 << own.telling.extent.bit_length()  # one for most calls, so that a seam is read for calls once
            for at in seams.possible(own.telling):
                if own.meaning in self._calls(self._seam(several[at].source, seams.sides(at, size)), tools):
                    yield several[at]

    def _seam(self, source: Message | Mapping[str, Any], sides: tuple[str, str]) -> _Read:
        """What is known of the end of a source and of what follows it."""
        if sides not in self._seams:
            self._seams[sides] = _examined(source, sides, result=True)
        return self._seams[sides]

    def _instructed(
        self,
        call: ToolCall,
        text: str,
        tools: Mapping[str, ToolSpec],
        messages: Sequence[Message],
        told: Sequence[Mapping[str, Any]],
    ) -> bool:
        """Whether the call occurs literally in the instructions. Without arguments it is only named there."""
        if not call.arguments:
            return False
        if self._declared is None or self._declared[0] != tools:
            declared = (words for tool in tools.values() for words in (tool.description, *strings(tool.parameters)))
            self._declared = tools, bare(_APART.join(declared))
        if text in self._declared[1]:
            return True
        prompts = (message.content for message in messages if isinstance(message, SystemMessage))
        served = (block for blocks in (*map(_served, messages), told) for block in blocks)
        for passage in (*prompts, *(words for block in served for words in strings(offered_in(block)))):
            if passage not in self._bare:
                self._bare[passage] = bare(passage)
            if text in self._bare[passage]:
                return True
        return False

    def _known(self, message: Message) -> Iterable[_Read]:
        """What is known of a message, and of the blocks in it."""
        if isinstance(message, SystemMessage):
            return ()
        read = self._read.get(id(message))
        if read is None:
            parts = [part.text for part in message.content if isinstance(part, TextPart)]
            read = self._read[id(message)] = _examined(message, parts, result=isinstance(message, ToolMessage))
        return (read, *map(self._told, _served(message)))

    def _told(self, block: Mapping[str, Any]) -> _Read:
        """What is known of a block in which a server-side tool may have told something."""
        if id(block) not in self._read:
            self._read[id(block)] = _examined(block, texts_of(block), result=True)
        return self._read[id(block)]

    def _calls(self, read: _Read, tools: Mapping[str, ToolSpec]) -> frozenset[_Meaning]:
        """The calls in a message, regardless of who wrote them."""
        if read.calls is None or read.tools != tools:
            found: set[_Meaning] = set()
            texts = [known for text in read.texts for known in readings(text)]
            for text in dict.fromkeys((*texts, *(plain for known in texts for plain in _made_plain(known, tools)))):
                for parser in self._new_parsers(tuple(tools.values())):
                    events = (*parser.feed(text), *parser.close())
                    calls = [event.call for event in events if isinstance(event, CallEnd | CallError) and _says(event)]
                    found |= {_meaning(call, tools.get(call.name)) for call in calls}
            read.calls, read.tools = frozenset(found), tools
        return read.calls


def _examined(source: Message | Mapping[str, Any], parts: Sequence[str], *, result: bool) -> _Read:
    texts = tuple({"\n".join(parts): None, "".join(parts): None})  # servers join them in either way
    forms = [examined(text, decoded=result) for text in texts]  # a user's message is only as a person reads it
    bare_texts = tuple(dict.fromkeys(each for known, _ in forms for each in known))
    seen = frozenset[str]().union(*(seen for _, seen in forms))
    return _Read(source, result, texts, bare_texts, seen, any(map(worked_out, texts)))


def _sequences(reads: Sequence[_Read]) -> Iterator[Sequence[_Read]]:
    """What is read as one: all that others said, what each tool returned, and the replies, whatever came in between."""
    own = [read for read in reads if isinstance(read.source, AssistantMessage)]
    reads = [read for read in reads if not isinstance(read.source, AssistantMessage)]
    yield from (reads, own)
    of_tools: dict[str, list[_Read]] = {}
    for read in reads:
        if isinstance(read.source, ToolMessage):
            of_tools.setdefault(read.source.name, []).append(read)
    yield from (of_tool for of_tool in of_tools.values() if len(of_tool) < len(reads))


def _served(message: Message) -> list[Mapping[str, Any]]:
    """The blocks in which server-side tools may have told something; not those of the model's calls of our tools."""
    parts = message.content if isinstance(message, AssistantMessage) else ()
    return [part.data for part in parts if isinstance(part, ProviderPart) and part.call_id is None]


def _says(event: CallEnd | CallError) -> bool:
    """Whether it says what is called; so does JSON that names a tool without arguments, which is an error."""
    return isinstance(event, CallEnd) or (event.code == "invalid_arguments" and not event.call.arguments)


def _names(name: str, tool: ToolSpec | None) -> set[str]:
    """The tool's name as texts spell it."""
    tag = tool.element.tag if tool is not None and tool.element is not None else name
    return {name, name.replace("_", "-"), tag}
