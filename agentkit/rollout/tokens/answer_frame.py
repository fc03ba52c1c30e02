"""A chat template's text between two turns, with slots for the answers. Pure text; no tokenizer.

It is taken from a rendering of an invented conversation, in which every name, id and content is a word that occurs
nowhere else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from agentkit.errors import ConfigError

SlotForm = Literal["as it is", "trimmed", "JSON", "ASCII JSON"]


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for something of an answer.

    Args:
        what: its content, or the name or id of the call that it answers.
        index: which answer: its place among all of them for a content, among the tools' results for a name or id.
        as_: how the template writes it.
    """

    what: Literal["content", "name", "id"]
    index: int
    as_: SlotForm = "as it is"

    def render(self, text: str, *, first: bool = True, last: bool = True) -> str:
        """Return a piece of a text as the template writes it: the first, the last, both, or one between."""
        match self.as_:
            case "as it is":
                return text
            case "trimmed":
                text = text.lstrip() if first else text
                return text.rstrip() if last else text
            case _:
                return json.dumps(text, ensure_ascii=self.as_ == "ASCII JSON")[1:-1]


@dataclass(frozen=True, slots=True)
class AnswerFrame:
    """The template's text after a turn of the model's.

    Args:
        end: the token that ends its turn.
        pieces: the parts after it: the template's text, and slots.
    """

    end: str
    pieces: tuple[str | Slot, ...]

    @property
    def shape(self) -> str:
        """It as one text, to compare and to show."""
        return self.end + "".join(p if isinstance(p, str) else f"{{{p.what}, {p.as_}}}" for p in self.pieces)


def _word(number: int) -> str:
    """A word that occurs nowhere else: nine letters and digits, as Mistral's templates want ids to be."""
    return f"zq{number:05d}xw"


_WORD: Final = re.compile(r"zq(\d{5})xw")
_ASKED, _LAST, _CONTENT, _NAME, _ID, _EARLIER = 1, 2, 1000, 2000, 3000, 9000
_MOST: Final = _NAME - _CONTENT
_AROUND: Final = (' \n"', '"\\\té<\n ')
"""The text around a content's word, so that its rendering shows whether it was trimmed or written as JSON."""


@dataclass(frozen=True, slots=True)
class Wording:
    """An invented conversation, in one of the ways in which templates accept one.

    Args:
        roles: who answers after the model's turn.
        as_text: whether a call's arguments are JSON text.
        one_call: whether the turn has a single call, whatever the number of results.
        earlier: whether there is an earlier turn with an answer.
    """

    roles: tuple[str, ...]
    as_text: bool
    one_call: bool
    earlier: bool

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation, up to the answers."""
        begun: list[dict[str, Any]] = [{"role": "user", "content": _word(_ASKED)}]
        if self.earlier:
            role = self.roles[0]
            begun += [self._turn([_EARLIER], _EARLIER) if role == "tool" else _said(_word(_EARLIER))]
            begun += [self._answer(role, _EARLIER, _EARLIER, _word(_EARLIER))]
            if role == "tool":
                begun += [_said(_word(_EARLIER)), {"role": "user", "content": _word(_EARLIER)}]
        results = [i for i, role in enumerate(self.roles) if role == "tool"]
        turn = self._turn(list(range(len(results))), _LAST) if results else _said(_word(_LAST))
        answers = []
        for at, role in enumerate(self.roles):
            number = results.index(at) if role == "tool" else 0
            answers.append(self._answer(role, number, number, f"{_AROUND[0]}{_word(_CONTENT + at)}{_AROUND[1]}"))
        return [*begun, turn, *answers]

    def call_messages(self, name: str, key: str, value: str) -> list[dict[str, Any]]:
        """Return a conversation that ends with one call."""
        return [{"role": "user", "content": "."}, self._message([self._call(_word(_ID), name, {key: value})])]

    def saying(self, text: str) -> list[dict[str, Any]]:
        """Return the conversation with this text before the call."""
        return [m | {"content": text} if "tool_calls" in m else m for m in self.messages]

    def _turn(self, numbers: Sequence[int], last: int) -> dict[str, Any]:
        numbers = numbers[:1] if self.one_call else numbers
        return self._message([self._call(_word(_ID + n), _word(_NAME + n), {"a": _word(last)}) for n in numbers])

    def _message(self, calls: list[dict[str, Any]]) -> dict[str, Any]:
        return {"role": "assistant", "content": "", "tool_calls": calls}

    def _call(self, id: str, name: str, arguments: dict[str, str]) -> dict[str, Any]:
        written = json.dumps(arguments) if self.as_text else arguments
        return {"id": id, "type": "function", "function": {"name": name, "arguments": written}}

    def _answer(self, role: str, name: int, id: int, content: str) -> dict[str, Any]:
        if role == "user":
            return {"role": "user", "content": content}
        return {"role": "tool", "tool_call_id": _word(_ID + id), "name": _word(_NAME + name), "content": content}


def _said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def wordings(roles: tuple[str, ...], *, earlier: bool) -> Iterator[Wording]:
    """The ways to word a conversation, the usual one first."""
    if "tool" not in roles:
        yield Wording(roles, as_text=False, one_call=False, earlier=earlier)
        return
    if len(roles) > _MOST:
        raise ConfigError(f"{len(roles)} answers to one turn; at most {_MOST} can be told apart")
    several = roles.count("tool") > 1
    for one_call in (False, True) if several else (False,):
        for as_text in (False, True):
            yield Wording(roles, as_text=as_text, one_call=one_call, earlier=earlier)


def frame_of(text: str, wording: Wording, ends: Collection[str]) -> AnswerFrame:
    """The frame in a rendering.

    Raises:
        ConfigError: it does not contain the turn's end, or an answer; shows the text that was found instead.
    """
    words = list(_WORD.finditer(text))
    if not (own := [w.end() for w in words if int(w[1]) == _LAST]):
        raise ConfigError("the model's own turn is missing in its rendering")
    begun = own[-1]
    rest = text[begun:]
    first = next((w for w in _WORD.finditer(rest) if _CONTENT <= int(w[1]) < _NAME), None)
    between = rest[: first.start()] if first is not None else rest  # a call's id may follow its arguments
    found = [(at, -len(end), end) for end in ends if (at := between.find(end)) >= 0]
    if not found:
        raise ConfigError(f"no token that ends a turn follows the model's turn, in {between!r}; pass end_of_turn=")
    at, _, end = min(found)
    pieces = tuple(_pieces(rest[at + len(end) :]))
    missing = set(range(len(wording.roles))) - {p.index for p in pieces if isinstance(p, Slot) and p.what == "content"}
    if missing:
        raise ConfigError(f"answer {min(missing)} ({wording.roles[min(missing)]}) is missing in the rendering {rest!r}")
    return AnswerFrame(end, pieces)


def _pieces(text: str) -> Iterator[str | Slot]:
    """The template's text, and what stands for an answer's."""
    at = 0
    for found in _WORD.finditer(text):
        number = int(found[1])
        start, end, slot = found.start(), found.end(), None
        if _CONTENT <= number < _NAME:
            start, end, how = _content(text, found)
            slot = Slot("content", number - _CONTENT, how)
        elif _NAME <= number < _ID:
            slot = Slot("name", number - _NAME)
        elif _ID <= number < _EARLIER:
            slot = Slot("id", number - _ID)
        else:
            raise ConfigError(f"the chat template repeats an earlier turn after the answers: {text!r}")
        if start < at:
            raise ConfigError(f"two answers overlap in {text!r}")
        if text[at:start]:
            yield text[at:start]
        yield slot
        at = end
    if text[at:]:
        yield text[at:]


def _content(text: str, found: re.Match[str]) -> tuple[int, int, SlotForm]:
    """A content's place, and how it is written."""
    left, right = _AROUND
    ways: list[tuple[str, str, SlotForm]] = [
        (left, right, "as it is"),
        (json.dumps(left, ensure_ascii=False)[1:-1], json.dumps(right, ensure_ascii=False)[1:-1], "JSON"),
        (json.dumps(left)[1:-1], json.dumps(right)[1:-1], "ASCII JSON"),
        (left.lstrip(), right.rstrip(), "trimmed"),
    ]
    for before, after, how in ways:
        start, end = found.start() - len(before), found.end() + len(after)
        if start >= 0 and text[start : found.start()] == before and text[found.end() : end] == after:
            return start, end, how
    shown = text[max(0, found.start() - 20) : found.end() + 20]
    raise ConfigError(f"the chat template changes a result's text in a way that cannot be repeated: {shown!r}")
