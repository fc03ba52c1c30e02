"""A tokenizer's chat template: its text before a trajectory's first turn, and between two turns.

Knows a tokenizer and a text format. Renders no turn of the model's: its text stays as it wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal

from agentkit import formats
from agentkit.errors import ConfigError
from agentkit.formats.format import Format
from agentkit.formats.quarantined_text import DeclarationQuarantine
from agentkit.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    Message,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)
from agentkit.models import valid_history
from agentkit.models.text import text_messages
from agentkit.rollout.tokens.answer_frame import AnswerFrame, Slot, frame_of, wordings
from agentkit.rollout.tokens.opened_thinking import PROBE, opener_of, render_probe
from agentkit.rollout.tokens.token_encoding import Outside, TokenEncoder
from agentkit.schemas import flavours
from agentkit.toolspec import ToolSpec

Role = Literal["tool", "user"]

TURN_ENDS: Final = (
    "<|im_end|>",  # ChatML: Qwen, Kimi, LFM2, OLMo, SmolLM, Hermes
    "<|eot_id|>", "<|eom_id|>",  # Llama 3
    "<|eot|>", "<|eom|>",  # Llama 4
    "<|call|>", "<|return|>", "<|end|>",  # gpt-oss; Phi
    "<|observation|>", "<|user|>",  # GLM: the role that speaks next
    "<tool_call|>", "<turn|>", "<end_of_turn>",  # Gemma 4, Gemma 2 and 3
    "<end_function_call>",  # FunctionGemma
    "[e~[",  # MiniMax
    "<seed:eos>",  # Seed-OSS
    "<|END_OF_TURN_TOKEN|>",  # Cohere
    "<|end_of_text|>", "<|endoftext|>",  # Granite
    "<SPECIAL_12>",  # Nemotron
    "<｜end▁of▁sentence｜>",  # DeepSeek
    "</s>",  # Mistral, Llama 2
)  # fmt: skip
"""Tokens with which a model ends its turn, besides the tokenizer's `eos_token`. Source: `generation_config.json` of the
families and their chat templates."""

NEXT_ROLES: Final = frozenset(("<|observation|>", "<|user|>"))
"""Those of them that say who speaks next: none of the others can stand for them."""


class ChatTemplate:
    """A tokenizer's chat template, for conversations that only grow.

    The first prompt is rendered once. The text after a turn is taken from a rendering of an invented conversation, so
    that no turn is ever rendered or tokenized again: the rest of the template's end of the turn (the line break after
    `<|im_end|>`), the results, and the beginning of the next turn.

    Args:
        tokenizer: transformers-like: `apply_chat_template`, `encode`, `decode`, and its added tokens.
        format: how the model writes calls; None for the template's own way, if nothing here has to read it.
        tools: the tools that the model may call.
        end_of_turn: the token with which the model ends its turn; None finds it in the template.
        native: whether the template itself shows the tools and writes their results. None: yes, if it does both and its
            own calls are in the format. Otherwise the tools are taught in the system message, and the results are user
            messages in the format.
        settings: further arguments of the template, such as `{"enable_thinking": False}`.

    Raises:
        ConfigError: the tokenizer has no chat template, or one that cannot be continued; shows the text that was found.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        format: str | Format | None = "hermes",
        tools: Sequence[ToolSpec] = (),
        end_of_turn: str | None = None,
        native: bool | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        if hasattr(tokenizer, "image_processor"):
            raise ConfigError(
                f"{type(tokenizer).__name__} is a processor: pass its tokenizer; pictures have no token ids here"
            )
        self.encoder = TokenEncoder(tokenizer)
        self.tools = tuple(tools)
        self._format = None if format is None else formats.get(format)
        self._settings = dict(settings or {})
        self._ends = self._find_ends(end_of_turn)
        self.end_ids = frozenset(self._ends.values())
        """The tokens with which a turn of the model's may end."""
        own = "" if self._format is None else render_probe(self._format)
        self.ends = {text: id for text, id in self._ends.items() if text not in own}
        """Those of them that are not part of a call, by their spelling: a reader of the turn need not see them."""
        declared = DeclarationQuarantine("hermes" if self._format is None else self._format, self.tools)
        self._shown = [flavours.openai_chat(declared.tool(tool)) for tool in self.tools]
        self._frame = lru_cache(maxsize=128)(self._new_frame)
        self.native = self._is_native() if native is None else native
        """Whether the template itself shows the tools and writes their results."""
        if not self.native and self._format is None and self.tools:
            raise ConfigError("the tokenizer's chat template shows no tools: name a format in which to teach them")
        self._check_frames()

    # ------------------------------------------------------------ the first prompt

    def prompt(self, messages: Sequence[Message], tools: Sequence[ToolSpec] | None = None) -> list[int]:
        """The token ids before the model's first turn.

        Args:
            messages: the conversation that it begins with.
            tools: the tools of this trajectory, if not all.

        Raises:
            ConfigError: the template refuses the messages, or there is a picture among them.
        """
        chosen = self.tools if tools is None else tuple(tools)
        return self.encoder.plain(self._text_of_prompt(messages, chosen))

    def opens_thinking(self, ids: Sequence[int]) -> bool:
        """Return True if a prompt ends by opening thinking, as those of DeepSeek R1 and Qwen 3.5 do.

        The model's text up to the end of thinking is thought: no call in it counts.
        """
        opener = opener_of(self._format)
        return opener is not None and self.encoder.decode(ids[-_OPENING:]).rstrip().endswith(opener)

    def _text_of_prompt(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> str:
        shown: list[dict[str, Any]] = []
        if self.native:
            names = {tool.name for tool in tools}
            shown = [one for one in self._shown if one["function"]["name"] in names]
        elif self._format is not None:
            taught = formats.render_prompt(self._format, tools) if tools else ""
            messages = valid_history.add_instructions(text_messages(messages, self._format, tools), taught)
        try:
            return self._render([_as_chat(m) for m in messages], shown)
        except ConfigError:
            if (merged := _without_system(messages)) is None:
                raise
        return self._render([_as_chat(m) for m in merged], shown)

    # ------------------------------------------------------------ between two turns

    def answers(self, messages: Sequence[ToolMessage | UserMessage], turn: Sequence[int] = ()) -> list[int]:
        """The token ids between a turn of the model's and its next.

        Args:
            messages: the answers to its calls, in order, and a user's messages.
            turn: the token ids of its turn. If they contain no end of it, because the engine omits the end or a stop
                string came first, the end comes first here. Tokens from the end on are not repeated.
        """
        if not messages:
            return []
        if not self.native and any(isinstance(m, ToolMessage) for m in messages):
            return self._after(self._frame(("user",)), [self._joined(messages)], [], turn)
        roles: tuple[Role, ...] = tuple("tool" if isinstance(m, ToolMessage) else "user" for m in messages)
        results = [m for m in messages if isinstance(m, ToolMessage)]
        named = [{"name": self._safe(m.name), "id": self._safe(m.call_id)} for m in results]
        return self._after(self._frame(roles), [[Outside(self._safe(_text_of(m)))] for m in messages], named, turn)

    def _after(
        self,
        frame: AnswerFrame,
        contents: Sequence[Sequence[str | Outside]],
        named: Sequence[Mapping[str, str]],
        turn: Sequence[int],
    ) -> list[int]:
        pieces: list[str | Outside] = [frame.end]  # also the left neighbour with which a tokenizer expects the rest
        for piece in frame.pieces:
            if isinstance(piece, str):
                pieces.append(piece)
            elif piece.what == "content":
                pieces += _fitted(contents[piece.index], piece)
            else:
                pieces.append(Outside(named[piece.index][piece.what]))
        ids = self.encoder.encode(pieces)
        following = ids[ids.index(self._ends[frame.end]) :]
        since = self._since(turn, following[0])
        if since and since == following[: len(since)]:  # the end, and what the model wrote of the rest: Gemma 4
            return following[len(since) :]
        ended = turn and turn[-1] in self.end_ids and frame.end not in NEXT_ROLES
        return following[1:] if ended else following

    @staticmethod
    def _since(turn: Sequence[int], end: int) -> list[int]:
        """A turn from the last place of this token on; empty if it does not contain it."""
        return next((list(turn[at:]) for at in range(len(turn) - 1, -1, -1) if turn[at] == end), [])

    def _joined(self, messages: Sequence[ToolMessage | UserMessage]) -> list[str | Outside]:
        """Answers as one user message in the format. Its own tags around each result are the format's, not a tool's."""
        pieces: list[str | Outside] = []
        for message in messages:
            if isinstance(message, ToolMessage) and self._format is not None:
                around = formats.render_result(
                    self._format, message.name, message.call_id, _INSIDE, message.error, self.tools
                )
                before, _, after = around.partition(_INSIDE)
                pieces += [before, Outside(self._safe(_text_of(message))), after]
            else:
                pieces.append(Outside(self._safe(_text_of(message))))
        return pieces

    def _safe(self, text: str) -> str:
        if self._format is None or _PLAIN(text):
            return text  # no text of `Outside` becomes a control token
        return formats.quarantine(text, self._format, self.tools)

    # ------------------------------------------------------------ what the template does

    def _render(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], prompt: bool = True) -> str:
        try:
            text: str = self.encoder.tokenizer.apply_chat_template(
                messages, tools=tools or None, add_generation_prompt=prompt, tokenize=False, **self._settings
            )
        except Exception as error:
            roles = ", ".join(m["role"] for m in messages)
            said = f"the tokenizer's chat template refuses a conversation of {roles}: {type(error).__name__}: {error}"
            raise ConfigError(said) from error
        return text

    def _find_ends(self, named: str | None) -> dict[str, int]:
        """The tokens that end a turn, and their ids."""
        ids = {text: id for id, text in self.encoder.control.items()}
        if named is not None and named not in ids:
            raise ConfigError(f"end_of_turn={named!r} is not one of the tokenizer's control tokens: {sorted(ids)[:20]}")
        eos = getattr(self.encoder.tokenizer, "eos_token", None)
        texts = (eos, *TURN_ENDS) if named is None else (named, eos)
        found = {text: ids[text] for text in texts if text in ids}
        if not found:
            raise ConfigError("the tokenizer has no token that ends a turn: pass end_of_turn=")
        return found

    def _new_frame(self, roles: tuple[Role, ...], earlier: bool = False) -> AnswerFrame:
        errors: list[str] = []
        for wording in wordings(roles, earlier=earlier):
            try:
                return frame_of(self._render(wording.messages, self._shown if self.native else []), wording, self._ends)
            except ConfigError as error:
                errors.append(str(error))
        raise ConfigError(
            f"the chat template writes no answers of {', '.join(roles)}: {'; '.join(dict.fromkeys(errors))}"
        )

    def _is_native(self) -> bool:
        """Return True if the template shows tools, writes its calls in the format, and writes results."""
        if not self.tools:
            return self._format is None or self._writes_calls(self._format)
        self.native = True  # while it is tried
        try:
            named = self._shown[0]["function"]["name"]
            shown = self._render([{"role": "user", "content": "."}], self._shown)
            plain = self._render([{"role": "user", "content": "."}], [])
            self._frame(("tool",))
        except ConfigError:
            return False
        return shown.count(named) > plain.count(named) and (self._format is None or self._writes_calls(self._format))

    def _writes_calls(self, format: Format) -> bool:
        """Return True if the template writes its calls in this format."""
        for wording in wordings(("tool",), earlier=False):
            try:
                text = self._render(wording.call_messages("probe", "word", "apple"), [])
            except ConfigError:
                continue
            events = formats.parse(text, format, [PROBE], in_code="execute")  # also in what is said to be others' turns
            found = formats.calls(events)[-1:]  # a prompt may contain an example before
            return [(c.name, c.arguments) for c in found] == [("probe", {"word": "apple"})]
        return False

    def _check_frames(self) -> None:
        """Check that the text after a turn does not depend on earlier turns: else it could not be appended."""
        role: Role = "tool" if self.native and self.tools else "user"
        first, later = self._new_frame((role,)), self._new_frame((role,), earlier=True)
        if first.shape != later.shape:
            raise ConfigError(
                f"the chat template writes an answer differently later in a conversation, so that it cannot be "
                f"appended: first {first.shape!r}, later {later.shape!r}"
            )

    @property
    def rewrites(self) -> tuple[str, ...]:
        """The changes, in words, that the template would make in earlier turns if it rendered the conversation again.

        A rollout never does, so that the model keeps reading what it wrote. A server that is sent messages instead of
        token ids does: there the model reads another text than it was trained on.
        """
        return tuple(self._rewritten())

    def _rewritten(self) -> Iterator[str]:
        asked, again = {"role": "user", "content": "One."}, {"role": "user", "content": "Two."}
        thought = "<think>\nzqthought\n</think>\n\n"
        answered = self._render([asked, {"role": "assistant", "content": f"{thought}zqreply"}, again], [])
        if "zqthought" not in answered:
            yield "drops earlier thinking when the user speaks again"
        if self.native and self.tools:
            for wording in wordings(("tool",), earlier=False):
                try:
                    called = self._render(wording.saying(thought), self._shown)
                except ConfigError:
                    continue
                if "zqthought" not in called:
                    yield "drops the thinking before a call when its result comes"
                break
        spaced = self._render([asked, {"role": "assistant", "content": "  zqreply  \n"}, again], [])
        if "  zqreply  \n" not in spaced:
            yield "trims white space around replies"


_PLAIN: Final = re.compile(r"[\w .:,-]*\Z", re.ASCII).match  # numbers, words, names, ids: no marker is made of these
_OPENING: Final = 24  # tokens: more than an opener and the line breaks after it have, even if each letter is one
_INSIDE: Final = "zq00000in"  # where a result's text goes, in its format's frame


NO_PICTURES: Final = (
    "there is a picture or a file in the prompt, and a tokenizer has no tokens for it: omit tokenizer=, so that the "
    "policy gets messages, or remove it"
)


def has_media(message: Message) -> bool:
    """Return True if a message has an image or a file."""
    return any(isinstance(part, ImagePart | FilePart) for part in getattr(message, "content", ()))


def _fitted(parts: Sequence[str | Outside], slot: Slot) -> list[str | Outside]:
    """A content as the template writes it."""
    fitted: list[str | Outside] = []
    for at, part in enumerate(parts):
        text = part if isinstance(part, str) else part.text
        text = slot.render(text, first=at == 0, last=at == len(parts) - 1)
        fitted.append(text if isinstance(part, str) else Outside(text))
    return fitted


def _text_of(message: ToolMessage | UserMessage) -> str:
    """A message's text; a picture or a file, for which there are no tokens here, in words."""
    said = (p.text if isinstance(p, TextPart) else f"({_size(p)}, not shown)" for p in message.content)
    return "".join(said)


def _size(part: ImagePart | FilePart) -> str:
    what = "picture" if isinstance(part, ImagePart) else part.kind
    return f"{part.media_type}, {len(part.data)} bytes" if part.data is not None else f"a {what} by its address"


def _without_system(messages: Sequence[Message]) -> list[Message] | None:
    """The conversation for a template that knows no system message: it begins the first user's. None if it cannot."""
    match messages:
        case [SystemMessage(system), UserMessage(content), *rest]:
            return [UserMessage((f"{system}\n\n", *content)), *rest]
    return None


def _as_chat(message: Message) -> dict[str, Any]:
    """A message as chat templates expect it."""
    match message:
        case SystemMessage(content):
            return {"role": "system", "content": content}
        case UserMessage():
            if has_media(message):
                raise ConfigError(NO_PICTURES)
            return {"role": "user", "content": message.text}
        case ToolMessage():
            return {"role": "tool", "tool_call_id": message.call_id, "name": message.name, "content": _text_of(message)}
        case AssistantMessage():
            chat: dict[str, Any] = {"role": "assistant", "content": message.text}
            if message.thinking:
                chat["reasoning_content"] = message.thinking
            if message.calls:
                chat["tool_calls"] = [
                    {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": dict(c.arguments)}}
                    for c in message.calls
                ]
            return chat
