"""Estimates of how many tokens a text or a message has. No tokenizer is used, since every model has its own.

| characters | tokens per character |
|---|---|
| Latin letters | 0.23: pieces of four or five, with the space before them |
| digits | 0.6: single in some models, groups of three in others |
| other ASCII characters | 0.65: single or in pairs, as in code and JSON |
| spaces, line ends | 0.1: most are merged with the word after them |
| letters with accents, Greek, Cyrillic, Arabic, Hebrew | 0.5 |
| Indic scripts, Thai, dashes and quotation marks | 0.8 |
| Chinese, Japanese, Korean | 1 |
| emoji, rare characters | 2 |

Accuracy: at most 22 % above the tokens counted in recorded streams of open models; for four fifths of 75 recorded
responses of OpenAI and Anthropic, most of them a single short call, between 0.46 and 2.0 times the reported count, with
a median of 0.94 (`tests/test_tokens.py`). Prefer a provider's own count where there is one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from agentkit.messages import (
    FilePart,
    ImagePart,
    MarkupPart,
    Message,
    MessagePart,
    ProviderPart,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
)

PER_MESSAGE: Final = 4  # tokens of a message in addition to its content: its role and separators

PER_CALL: Final = 20
"""Tokens of a call in addition to its name and arguments: in recorded responses about 10 (OpenAI) or 35 (Anthropic)."""

PER_IMAGE: Final = 1_600
"""Tokens of an image of any size: the cost of the largest at Anthropic, which scales down larger ones."""

PER_FILE: Final = 2_000
"""Tokens of a file of unknown size (a URL): one page of a PDF costs 1,500 to 3,000 at Anthropic."""

BYTES_PER_TOKEN: Final = {"text": 4, "document": 25, "audio": 500, "video": 400}
"""Of files: a page of 50 kB at that price; 32 tokens for a second of audio at 128 kbit/s, 300 for one of video at
1 Mbit/s. Source: Gemini API, "Understand and count tokens"."""


def _bytes(first: int, last: int) -> bytes:
    return bytes(range(first, last + 1))


# Classes of UTF-8 bytes, each with the weight of one byte. A character is identified by its first byte; the following
# bytes, 0x80 to 0xBF, weigh nothing. Deleting a class of bytes costs about 1 ns per byte, a regular expression 50.
_WEIGHTS: Final = (
    (_bytes(ord("a"), ord("z")) + _bytes(ord("A"), ord("Z")), 0.23),
    (_bytes(0x80, 0xBF), 0.0),
    (b" \t\r\n", 0.1),
    (_bytes(ord("0"), ord("9")), 0.6),
    (_bytes(0x00, 0x7F), 0.65),  # of the remaining bytes
    (_bytes(0xC0, 0xDF), 0.5),
    (_bytes(0xE0, 0xE2), 0.8),
    (_bytes(0xE3, 0xEF), 1.0),
    (_bytes(0xF0, 0xFF), 2.0),
)


def text_tokens(text: str) -> int:
    """The tokens of a text, at least 1 unless it is empty.

    >>> text_tokens("The quick brown fox jumps over the lazy dog.")
    10
    >>> text_tokens("快速的棕色狐狸")
    7
    """
    left, total = text.encode("utf-8", "surrogatepass"), 0.0
    for characters, weight in _WEIGHTS:
        rest = left.translate(None, characters)
        total += weight * (len(left) - len(rest))
        if not rest:
            break
        left = rest
    return max(round(total), 1) if text else 0


def message_tokens(message: Message) -> int:
    """The tokens of a message.

    >>> from agentkit.messages import user
    >>> message_tokens(user("Hello there"))
    6
    """
    if isinstance(message, SystemMessage):
        return PER_MESSAGE + text_tokens(message.content)
    return PER_MESSAGE + sum(map(_part_tokens, message.content))


def messages_tokens(messages: Iterable[Message]) -> int:
    """The tokens of a conversation or part of one."""
    return sum(map(message_tokens, messages))


def json_tokens(value: Any) -> int:
    """The tokens of a value as JSON, such as a tool's schema."""
    return text_tokens(json.dumps(value, ensure_ascii=False, default=str))


def _part_tokens(part: MessagePart) -> int:
    match part:
        case TextPart(text) | MarkupPart(text):
            return text_tokens(text)
        case ThinkingPart(text, _, data):
            # only the length of an encrypted block is known: at most a quarter of its characters
            return text_tokens(text) if text or data is None else len(str(data)) // 4
        case ToolCall(_, name, arguments, _, raw):
            return PER_CALL + text_tokens(name) + (text_tokens(raw) if raw else json_tokens(dict(arguments)))
        case ProviderPart(_, data):
            return json_tokens(dict(data))
        case ImagePart():
            return PER_IMAGE
        case FilePart(data, media_type):
            kind = "text" if media_type.startswith("text/") else part.kind
            return PER_FILE if data is None else max(PER_MESSAGE, len(data) // BYTES_PER_TOKEN[kind])
