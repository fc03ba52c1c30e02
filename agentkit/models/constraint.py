"""Calls in text constrained by a grammar: the request fields for it, and how to detect a server that ignores them.

Knows the servers by their table, and the grammars by their interface. As a rule, a server silently ignores a field that
it does not know; so each reply to a forced choice is checked for what a grammar would not have allowed, and
`check_constraint` requests a word that no model writes on its own.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Final, NamedTuple, Self

from agentkit.checks.bounds import refuse
from agentkit.errors import ConfigError, ProviderError
from agentkit.events import Finish, SourceEvent, Text
from agentkit.formats.engine import get
from agentkit.formats.format import Format
from agentkit.grammar import ThinkingRule, exactly, grammar, openings, why_no_grammar
from agentkit.messages import AssistantMessage, user
from agentkit.models.base import Model, ModelRequest, continues
from agentkit.models.servers import CONSTRAINED, SERVERS, Constrained, GrammarField
from agentkit.toolspec import OutputSchema, ToolSpec

ODD: Final = "agentkit-7"  # the word that `check_constraint` lets a model say: no model says it unforced
HEAD: Final = 60  # characters at the beginning of a reply that show whether its grammar was enforced

_ENOUGH: Final = 2_000  # tokens: a model that thinks writes its thoughts before the word
_BLAMES: Final = re.compile(
    r"grammar|structur|guided|response_format|regex|one backend per engine|xgrammar|llguidance", re.IGNORECASE
)
_TWICE: Final = "constrained= and extra={{{!r}: …}} both define what a reply must be; omit one"
_REFUSALS: Final = ("bad_request", "server", "stream")
_Key = tuple[tuple[ToolSpec, ...], str, bool, OutputSchema | None]


class ConstrainedReply(NamedTuple):
    """A reply constrained by a grammar.

    Args:
        provider: the provider that answers.
        field: how the server expects the grammar.
        fields: the fields of the request.
        openings: what the reply starts with, apart from white space; empty if that may be anything.
        forced: what was asked of it, in words.
    """

    provider: str
    field: GrammarField
    fields: Mapping[str, Any]
    openings: tuple[str, ...]
    forced: str = "a call was forced"

    async def watch(self, events: AsyncIterator[SourceEvent]) -> AsyncGenerator[SourceEvent, None]:
        """The events of the reply.

        Raises:
            ProviderError: the server refused the grammar, or did not enforce it.
        """
        head = ""
        try:
            async for event in events:
                if isinstance(event, Text) and len(head) < HEAD:
                    head = f"{head}{event.text}".lstrip()[:HEAD]
                elif isinstance(event, Finish) and not self._may_be(head, event):
                    raise enforcement_error(self.field, self.provider, f"{self.forced}, yet the reply begins {head!r}")
                yield event
        except ProviderError as error:
            _explain(self.field, error)
            raise

    def _may_be(self, head: str, ending: Finish) -> bool:
        """Return whether the grammar allows a reply that begins like this."""
        if not self.openings or not head or ending.reason in ("refusal", "content_filter", "error"):
            return True
        return any(head.startswith(o[:HEAD]) or o.startswith(head) for o in self.openings)


class Constraint:
    """The grammar of a model's replies, as its server expects it.

    Args:
        model: the model, which may or may not continue its own last message.
        format: how calls look.
        field: how the server expects a grammar.
        thinking: whether thinking may or must come first.
    """

    def __init__(self, model: Model, format: Format, field: GrammarField, thinking: ThinkingRule) -> None:
        self.field = field
        self._model = model
        self._provider = str(getattr(model, "provider", model.name))
        self._format = format
        self._thinking: ThinkingRule = thinking
        self._last: tuple[_Key, ConstrainedReply] | None = None

    @classmethod
    def of(cls, model: Model, format: str | Format | None, asked: Constrained) -> Self:
        """The constraint of a model, by the server that was named for it.

        Raises:
            ConfigError: the server is unknown or accepts no grammar; or there is no format; or `asked` is not one of
                the words.
            FormatError: no format has that name.
        """
        refuse("TextCalling", {"constrained": asked}, {"constrained": CONSTRAINED})
        field = _field_of(model)
        if format is None:
            raise ConfigError(
                f"{model.name}: constrained= constrains calls in text by a grammar: also name their format, as in "
                "format='hermes'"
            )
        thinking: ThinkingRule = "may_think" if isinstance(asked, bool) else asked
        declared = get(format)
        if reason := why_no_grammar(declared, thinking):
            raise ConfigError(f"{model.name}: constrained={asked!r} is not possible: {reason}")
        own = getattr(getattr(model, "settings", None), "extra", None) or {}
        if field.name in own:
            raise ConfigError(f"{model.name}: {_TWICE.format(field.name)}")
        return cls(model, declared, field, thinking)

    def constrain(self, request: ModelRequest) -> ConstrainedReply | None:
        """The constraint on the reply to a request.

        None if there is neither a tool nor an output's schema, or if the model continues its own message: a grammar
        describes a reply from its beginning. Schema keywords that no grammar can express are omitted: arguments and
        outputs are checked for them when they are read.

        Raises:
            ConfigError: the request already has such a field.
        """
        if not (request.tools or request.output_schema) or (
            continues(self._model) and isinstance(request.messages[-1], AssistantMessage)
        ):
            return None
        if self.field.name in request.extra:
            raise ConfigError(f"{self._model.name}: {_TWICE.format(self.field.name)}")
        parallel = request.parallel_tool_calls is not False
        choice = request.tool_choice if request.tools else "auto"
        key = (tuple(request.tools), choice, parallel, request.output_schema)
        if self._last is None or self._last[0] != key:
            self._last = key, self._made(*key)
        return self._last[1]

    def _made(
        self, tools: tuple[ToolSpec, ...], choice: str, parallel: bool, output: OutputSchema | None
    ) -> ConstrainedReply:
        target = self.field.target
        made = grammar(
            self._format, tools, target=target, tool_choice=choice, parallel=parallel, thinking=self._thinking,
            strict=False, output=output,
        )  # fmt: skip
        free = choice in ("auto", "none") and output is None
        known = not free and self._thinking != "begun_thinking"
        starts = openings(self._format, tools, target=target, tool_choice=choice, output=output) if known else ()
        said = "a call was forced" if output is None else "a call or JSON was forced"
        return ConstrainedReply(self._provider, self.field, {self.field.name: made}, starts, said)

    async def check(self) -> None:
        """Make one request whose grammar allows one odd word; see `check_constraint`."""
        extra = {self.field.name: exactly(ODD, target=self.field.target)}
        request = ModelRequest([user("Say hello.")], stream=False, max_tokens=_ENOUGH, extra=extra)
        said, reason = "", ""
        try:
            async for event in self._model.stream(request):
                if isinstance(event, Text):
                    said += event.text
                elif isinstance(event, Finish):
                    reason = event.reason
        except ProviderError as error:
            _explain(self.field, error)
            raise
        if said.strip() == ODD:
            return
        if not said.strip() and reason == "length":
            found = f"nothing is known about {self.field.name!r}: the model was still thinking after {_ENOUGH:,} tokens"
            raise ProviderError(f"{self._provider}: {found}", kind="stream", provider=self._provider)
        found = f"the model was to say {ODD!r}, but said {said[:HEAD]!r}"
        raise enforcement_error(self.field, self._provider, found)


def _explain(field: GrammarField, error: ProviderError) -> None:
    """Add to the failure of a constrained request that blames the grammar: the field's name, and what to do."""
    if error.kind in _REFUSALS and field.needs not in str(error) and _BLAMES.search(f"{error} {error.body}"):
        more = f"the field {field.name!r}, which constrained= adds, was refused: {field.needs}"
        error.args = (f"{error}; {more}; or leave `constrained` out",)


def _field_of(model: Model) -> GrammarField:
    """How the server of a model expects a grammar."""
    server = getattr(model, "server", None)
    field = SERVERS[server].grammar if server is not None else "none was named with server="
    if getattr(model, "is_official_host", False):
        field = "the provider's own API does not; let the model call natively"
    elif not model.name.startswith("openai:"):
        field = "name one, with chat completions: model('openai:…', base_url=…, server=…)"
    if isinstance(field, GrammarField):
        return field
    known = ", ".join(name for name, server in SERVERS.items() if isinstance(server.grammar, GrammarField))
    said = f"{model.name}: constrained= needs a server that constrains replies by a grammar"
    raise ConfigError(f"{said}: {field}; those that do are {known}")


def enforcement_error(field: GrammarField, provider: str, found: str) -> ProviderError:
    """The failure of a reply that its grammar would not have allowed."""
    return ProviderError(
        f"{provider}: {found}: the server did not enforce the grammar in {field.name!r}. A server that does not "
        f"know the field silently ignores it, and a gateway may drop it; {field.needs}",
        kind="stream",
        provider=provider,
    )


async def check_constraint(model: Model) -> None:
    """Make sure that the server of a constrained model enforces the grammars that it is sent.

    Servers silently ignore fields that they do not know. So one short request is made whose grammar allows a single odd
    word, which no model says unforced. Worth its few tokens once for each server, such as when a service starts; no
    other request waits for it.

    Args:
        model: the return value of `model(…, constrained=True)`.

    Raises:
        ConfigError: the model is not constrained.
        ProviderError: the server ignored the grammar, or refused it; or it failed otherwise.
    """
    found = getattr(model, "constraint", None)
    if not isinstance(found, Constraint):
        raise ConfigError(
            f"{model!r} is not constrained: create it with model(…, format=…, server=…, constrained=True)"
        )
    await found.check()
