"""The commands of a chat's slash words."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from agentkit.checks.spelling import did_you_mean, then
from agentkit.checks.visible_text import visible
from agentkit.cli.chat_session import ChatSession
from agentkit.cli.edited_arguments import read_arguments
from agentkit.cli.flag_words import APPROVALS
from agentkit.cli.kept_rules import numbered_rule, rule_lines
from agentkit.cli.slash_words import WORDS, SlashWord, unknown
from agentkit.cli.terminal import block, plain, truncate, width
from agentkit.errors import AgentkitError, ConfigError
from agentkit.threads import AllowRule

NATIVE: Final = "native"
KEYS: Final = (
    "Esc or Ctrl-C stops an answer. Ctrl-C twice or Ctrl-D ends the chat. Alt-Enter, or \\ and Enter, starts a new "
    "line. To send a message starting with /, type //."
)
CLIPBOARD: Final = 100_000  # bytes: terminals ignore a longer text


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
            "allowed": ["add ", "revoke "],
        }

    def _help(self, rest: str) -> None:
        written = {word: f"/{word} {given}".rstrip() for word, (given, _) in WORDS.items()}
        longest = max(map(len, written.values()))
        for word, (_, does) in WORDS.items():
            if longest + 2 + len(does) <= width():
                self.screen.line(f"{self.screen.style(written[word].ljust(longest), 'bold')}  {does}")
            else:
                self.screen.line(self.screen.style(written[word], "bold"))
                self.screen.line(f"    {does}")
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
            instead = "write ask, always or never; for one tool, /allowed add TOOL"
            raise ConfigError(f"/approve {rest}{then(did_you_mean(rest, APPROVALS), instead)}")
        approvals = self.conversation.approvals
        approvals.choice = rest or approvals.choice
        self.screen.line(f"calls that wait for approval: {approvals.choice}")

    def _allowed(self, rest: str) -> None:
        kept, run = self.conversation.kept, self.conversation.loop.run
        what, _, given = rest.partition(" ")
        if what == "add" and given:
            tool, _, patterns = given.strip().partition(" ")
            run(kept.allow(AllowRule(tool, read_arguments(patterns)) if patterns.strip() else tool))
        elif what == "revoke":
            run(kept.revoke(numbered_rule(run(kept.allow_rules()), given.strip())))
        elif rest:
            raise ConfigError("/allowed lists them; /allowed add TOOL, or TOOL and patterns as JSON; /allowed revoke N")
        for line in rule_lines(run(kept.allow_rules())):
            self.screen.line(line)

    def _raw(self, rest: str) -> None:
        lines = list(self.conversation.record.raw(width(), self.screen.style))
        for line in lines or [self.screen.style("there is no response yet", "dim")]:
            self.screen.line(line)

    def _usage(self, rest: str) -> None:
        record = self.conversation.record
        usage, n = record.usage, record.responses
        cached = f", {usage.cached_tokens:,} of them cached" if usage.cached_tokens else ""
        self.screen.line(
            f"{n} response{'s' * (n != 1)}: {usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out; "
            f"context: {record.context:,}"
        )

    def _copy(self, rest: str) -> None:
        text = self.conversation.record.text.encode()
        if not self.screen.drawn:
            raise ConfigError("/copy: this terminal has no clipboard")
        if not text or len(text) > CLIPBOARD:
            raise ConfigError(f"/copy: {'the answer is too long' if text else 'there is no answer yet'}")
        self.screen.out.write(f"\x1b]52;c;{base64.b64encode(text).decode()}\x07")
        self.screen.note("sent to the terminal for its clipboard; tmux may ignore it")

    def _retry(self, rest: str) -> int:
        return self.conversation.retry()

    def _clear(self, rest: str) -> None:
        self.conversation.clear()
        self.screen.note("an empty conversation, in memory only")
