"""The commands of a chat's slash words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from agentkit.checks.spelling import did_you_mean, then
from agentkit.cli.chat_session import ChatSession
from agentkit.cli.flag_words import APPROVALS
from agentkit.cli.slash_words import WORDS, SlashWord, unknown
from agentkit.cli.terminal import block, plain, truncate, visible, width
from agentkit.errors import AgentkitError, ConfigError

NATIVE: Final = "native"
KEYS: Final = (
    "Ctrl-C stops an answer. Alt-Enter, or a backslash before Enter, begins another line. What begins with // "
    "is sent with one slash."
)


class ChatCommands:
    """Runs a user's slash words in a conversation."""

    def __init__(self, conversation: ChatSession) -> None:
        self.conversation = conversation
        self.screen = conversation.screen
        self._models = [conversation.agent.model.name]  # those that answered in this session, to be completed

    def do(self, word: SlashWord) -> int:
        """Do it; the exit status, if it started a run."""
        if not word.name:
            self.screen.line(plain(unknown(word.found)))
            return 0
        act: Callable[[str], int | None] = getattr(self, f"_{word.name}")
        try:
            return act(word.rest) or 0
        except AgentkitError as e:
            self.screen.show_error(e)
            return 0

    def choices(self) -> Mapping[str, Sequence[str]]:
        """Return each word, with the words that may follow it."""
        from agentkit import formats
        from agentkit.models.model_strings import PROVIDERS

        return {
            **dict.fromkeys(WORDS, ()),
            "tools": [spec.name for spec in self.conversation.agent.registry.specs()],
            "model": [*self._models, *(f"{prefix}:" for prefix in PROVIDERS)],
            "format": [NATIVE, *formats.names()],
            "approve": APPROVALS,
        }

    def _help(self, rest: str) -> None:
        longest = max(map(len, WORDS)) + 1
        for word, does in WORDS.items():
            self.screen.line(f"{self.screen.style(f'/{word}'.ljust(longest), 'bold')}  {does}")
        for line in block(KEYS, width()):
            self.screen.line(line)

    def _tools(self, rest: str) -> None:
        from agentkit.cli.inspect import describe_tool

        specs = {spec.name: spec for spec in self.conversation.agent.registry.specs()}
        if rest and rest not in specs:
            raise ConfigError(f"there is no tool {rest!r}{then(did_you_mean(rest, specs), '/tools lists them')}")
        if rest:
            for line in describe_tool(specs[rest]):
                self.screen.line(plain(line))
            return
        for name, spec in specs.items():
            about = truncate(spec.description, max(width() - len(name) - 2, 10))
            self.screen.line(f"{self.screen.style(plain(name), 'bold')}  {about}")
        if not specs:
            self.screen.line("the model has no tools: start the chat with --tools module:Class")

    def _model(self, rest: str) -> None:
        if rest:
            self.conversation.answer_with(self.conversation.choice.with_model(rest))
            self._models = list(dict.fromkeys([*self._models, rest]))
        self._tell()

    def _format(self, rest: str) -> None:
        if rest:
            self.conversation.answer_with(self.conversation.choice.with_format(None if rest == NATIVE else rest))
        self._tell()

    def _tell(self) -> None:
        model = self.conversation.agent.model
        self.screen.line(f"{visible(model.name)}, {f'calls in {model.format}' if model.format else 'native calls'}")

    def _thread(self, rest: str) -> int | None:
        if not rest:
            name = self.conversation.thread
            self.screen.line("in memory only; /thread NAME keeps it" if name is None else f"thread {visible(name)}")
            return None
        return self.conversation.move(rest)

    def _approve(self, rest: str) -> None:
        if rest and rest not in APPROVALS:
            raise ConfigError(f"/approve {rest}{then(did_you_mean(rest, APPROVALS), 'write ask, always or never')}")
        self.conversation.approve = rest or self.conversation.approve
        self.screen.line(f"calls that wait for approval: {self.conversation.approve}")
