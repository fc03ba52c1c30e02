"""Text as token ids, in which only the template's own text becomes control tokens. Knows a tokenizer; no conversation.

A tokenizer reads its control tokens wherever they are: a tool's result with `<|im_end|>` in it would end the turn.
`split_special_tokens=True` does not help: it splits special tokens, but not tokens that were merely added, as
`<tool_call>` is in Qwen's vocabulary; and it is a switch of the tokenizer, shared by all threads that use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agentkit.checks.unicode import clean
from agentkit.errors import ConfigError
from agentkit.formats.control import MARK, token_in

_REPLACED = "\ufffd"


@dataclass(frozen=True, slots=True)
class Outside:
    """Text that neither the template nor the model wrote: nothing in it becomes a control token."""

    text: str


class TokenEncoder:
    """Encodes and decodes with a tokenizer like those of transformers.

    Args:
        tokenizer: has `encode(text, add_special_tokens=False)`, `decode(ids, skip_special_tokens=False)`, and
            `added_tokens_decoder` or `get_added_vocab`.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.control = control_tokens(tokenizer)
        """The ids of the tokenizer's control tokens, and how each is spelt."""
        self._in = lru_cache(maxsize=256)(self._controls_of)
        spellings = sorted(filter(None, self.control.values()), key=len, reverse=True)
        self._spelt = re.compile("|".join(map(re.escape, spellings)) or r"(?!)")

    def encode(self, pieces: Iterable[str | Outside]) -> list[int]:
        """Token ids of a text of which some pieces come from outside.

        The whole is encoded at once, as any other program would. Only if a control token came out that the template's
        pieces do not contain is each piece encoded alone, and outside text cut where the token was.
        """
        pieces = tuple(pieces)
        ids = self.plain("".join(p if isinstance(p, str) else p.text for p in pieces))
        wanted = [id for piece in pieces if isinstance(piece, str) for id in self._in(piece)]
        if self._controls(ids) == wanted:
            return ids
        return [id for p in pieces for id in (self.plain(p) if isinstance(p, str) else self._without_control(p.text))]

    def break_tokens(self, text: str) -> str:
        """Return a text whose control tokens stay text even where it is encoded with others, as in a prompt."""
        return self._spelt.sub(lambda found: f"{found[0][0]}{MARK}{found[0][1:]}", text)

    def plain(self, text: str) -> list[int]:
        """Token ids of a text as it is, control tokens included.

        Raises:
            ConfigError: the tokenizer failed.
        """
        try:
            return list(self.tokenizer.encode(clean(text), add_special_tokens=False)) if text else []
        except Exception as error:
            raise ConfigError(f"the tokenizer cannot encode {text!r:.200}: {type(error).__name__}: {error}") from error

    def following(self, before: Sequence[int], text: str) -> list[int]:
        """Token ids of a text in its place: after these tokens, as in a rendering of the whole.

        A tokenizer may write the first word of a text otherwise than the same word after a control token, or after a
        line break. Where the text would change the tokens before it, which are written already, it is encoded alone.
        """
        at = next((i for i in range(len(before) - 1, -1, -1) if before[i] in self.control), len(before))
        left = self.decode(before[at:])
        for neighbour in (left, "".join(self.control[id] for id in before[at : at + 1]) + left[-1:]):
            own = self.plain(neighbour)
            whole = self.plain(neighbour + text)
            if whole[: len(own)] == own:
                return whole[len(own) :]
        return self.plain(text)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, control tokens included.

        Raises:
            ConfigError: the tokenizer failed, as it does for an id that is not in its vocabulary.
        """
        try:
            text: str = self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        except Exception as error:
            raise ConfigError(
                f"the tokenizer cannot decode {list(ids)[:20]}: {type(error).__name__}: {error}"
            ) from error
        return text

    def _controls(self, ids: Sequence[int]) -> list[int]:
        control = self.control
        return [id for id in ids if id in control]

    def _controls_of(self, text: str) -> list[int]:
        return self._controls(self.plain(text))

    def _without_control(self, text: str) -> list[int]:
        """The text halved until no part contains a control token."""
        ids = self.plain(text)
        if not self._controls(ids):
            return ids
        if len(text) == 1:  # this character is a control token itself
            return self.plain(_REPLACED)
        half = len(text) // 2
        return self._without_control(text[:half]) + self._without_control(text[half:])


def control_tokens(tokenizer: Any) -> dict[int, str]:
    """The tokens that a tokenizer reads as more than text, by id.

    These are its special tokens, and all others that were added to it and are spelt as markup, such as `<tool_call>`.
    Not those that were added as ordinary text: runs of spaces, words.
    """
    found = {id: str(token) for id, token in _added(tokenizer).items()}
    special = set(getattr(tokenizer, "all_special_ids", ()))
    special |= {id for id, token in _added(tokenizer).items() if getattr(token, "special", False)}
    names = {id: found.get(id, "") for id in special}
    return names | {id: text for id, text in found.items() if _is_markup(text)}


def _added(tokenizer: Any) -> dict[int, Any]:
    """The tokens that were added to a tokenizer's own vocabulary."""
    if (by_id := getattr(tokenizer, "added_tokens_decoder", None)) is not None:
        return dict(by_id)
    return {id: text for text, id in getattr(tokenizer, "get_added_vocab", dict)().items()}


_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")  # SentencePiece's spelling of a byte for which there is no token


def _is_markup(text: str) -> bool:
    if _BYTE.fullmatch(text):
        return False
    edges = text.strip()[:1], text.strip()[-1:]
    return edges in (("<", ">"), ("[", "]"), ("{", "}")) or token_in(text) != ""
