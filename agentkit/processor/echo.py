"""What a native model has read from others: a call in its text that already occurs there is a quote, not a call.

Law 12. Pure: messages in, an answer out. Anything that a page, a file or a person says may be quoted in a reply, with
its white space, quotes, escapes and format changed on the way; so what was read is compared as text without all these,
and by the calls that a parser finds in it. In what others say, a call may occur anywhere, not only where a model would
write one. What the provider's own tools return counts like the result of any tool, also in the response that it is in.

The system prompt and the tools' descriptions are instructions: the model may make the calls that they request. But
they contain examples, and a description sent by an MCP server is also a stranger's word; so a call that occurs there
literally, arguments and all, is also a quote.
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
    UserMessage,
)
from agentkit.processor.comparing import bare, examined, names_alone, readings
from agentkit.processor.served import offered_in, texts_of
from agentkit.processor.telling import Telling, as_text, worked_out
from agentkit.processor.textreader import TextReader
from agentkit.schemas.walk import strings
from agentkit.toolspec import ToolSpec

_AFTER_CALL: Final = re.compile(r"\)(?!\s*[,)\]}])")
_WORDS: Final = ("description", "title", "examples", "example", "$comment")


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
        self._bare: dict[str, str] = {}  # instructions, without what changes when they are quoted

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
        served = [*_served(messages), *(block.data for block in blocks if block.index is None and not block.thinking)]
        if self._instructed(call, text, tools.values(), messages, served):
            return CallQuoted(call)
        for message in messages:
            if isinstance(message, ToolMessage | UserMessage) and self._occurs(own, self._known(message), tools):
                return CallQuoted(call, getattr(message, "call_id", None))
        return CallQuoted(call) if any(self._occurs(own, self._told(block), tools) for block in served) else None

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

    def _instructed(
        self,
        call: ToolCall,
        text: str,
        tools: Iterable[ToolSpec],
        messages: Sequence[Message],
        served: Sequence[Mapping[str, Any]],
    ) -> bool:
        """Whether the call occurs literally in the instructions. Without arguments it is only named there."""
        if not call.arguments:
            return False
        prompts = (message.content for message in messages if isinstance(message, SystemMessage))
        described = (words for tool in tools for words in (tool.description, *_explained(tool.parameters)))
        found = (words for block in served for words in _explained(offered_in(block)))
        for passage in (*prompts, *described, *found):
            if passage not in self._bare:
                self._bare[passage] = bare(passage)
            if text in self._bare[passage]:
                return True
        return False

    def _known(self, message: ToolMessage | UserMessage) -> _Read:
        """What is known of a message."""
        read = self._read.get(id(message))
        if read is None:
            parts = [part.text for part in message.content if isinstance(part, TextPart)]
            read = self._examined(message, parts, result=isinstance(message, ToolMessage))
        return read

    def _told(self, block: Mapping[str, Any]) -> _Read:
        """What is known of a block in which a server-side tool may have told something."""
        return self._read.get(id(block)) or self._examined(block, texts_of(block), result=True)

    def _examined(self, source: Message | Mapping[str, Any], parts: Sequence[str], *, result: bool) -> _Read:
        texts = tuple({"\n".join(parts): None, "".join(parts): None})  # servers join them in either way
        forms = [examined(text, decoded=result) for text in texts]  # a user's message is only as a person reads it
        bare_texts = tuple(dict.fromkeys(each for known, _ in forms for each in known))
        seen = frozenset[str]().union(*(seen for _, seen in forms))
        read = _Read(source, result, texts, bare_texts, seen, any(map(worked_out, texts)))
        self._read[id(source)] = read
        return read

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


def _served(messages: Iterable[Message]) -> list[Mapping[str, Any]]:
    """The blocks in which server-side tools may have told something; not those of the model's calls of our tools."""
    written = (part for message in messages if isinstance(message, AssistantMessage) for part in message.content)
    return [part.data for part in written if isinstance(part, ProviderPart) and part.call_id is None]


def _says(event: CallEnd | CallError) -> bool:
    """Whether it says what is called; so does JSON that names a tool without arguments, which is an error."""
    return isinstance(event, CallEnd) or (event.code == "invalid_arguments" and not event.call.arguments)


def _explained(schema: Any) -> Iterator[str]:
    """The prose of a JSON Schema: its descriptions, titles and examples."""
    for key, value in schema.items() if isinstance(schema, Mapping) else ():
        if key in _WORDS:
            yield from strings(value)
        elif isinstance(value, Mapping):
            yield from _explained(value)
        elif isinstance(value, list | tuple):
            for part in value:
                yield from _explained(part)


def _names(name: str, tool: ToolSpec | None) -> set[str]:
    """The tool's name as texts spell it."""
    tag = tool.element.tag if tool is not None and tool.element is not None else name
    return {name, name.replace("_", "-"), tag}
