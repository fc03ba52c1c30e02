"""A chain of models: the next one is asked if the one before it fails in a way in which another may not.

Knows models by their protocol. Each member repeats its own requests first, as its `max_retries` says.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

from agentkit.checks.missing_await import Closing
from agentkit.checks.spelling import takes
from agentkit.errors import ConfigError, ProviderError, ProviderErrorKind
from agentkit.events import ModelSelected, SourceEvent, Usage
from agentkit.foreign import argument_names
from agentkit.foreign.absent import suggest_attributes
from agentkit.models.base import Model, ModelRequest, close, continues, names
from agentkit.models.files_taken import FileRefused
from agentkit.models.model_strings import model

if TYPE_CHECKING:
    from agentkit.formats.format import Format

_LOG: Final = logging.getLogger("agentkit.models")

PASSED_ON: Final[frozenset[ProviderErrorKind]] = frozenset(
    ("rate_limit", "overloaded", "server", "timeout", "connection", "stream", "too_long", "billing")
)
"""The kinds of failures that another model may not have. A wrong key, name or request is the operator's to correct."""

_LIMITED: Final = ("rate_limit", "overloaded")

_UNSEEN: Final = frozenset((Usage, ModelSelected))
"""The events of a member that show nothing of its reply."""


@suggest_attributes
class ModelChain(Closing):
    """Asks models in their order until one answers, as `first_of` says. Any number of runs may share it.

    Args:
        models: see `first_of`.
        clock: seconds, for the time for which a limited member is asked last.
    """

    def __init__(self, *models: Model | str, clock: Callable[[], float] = monotonic) -> None:
        wrong = [
            one for one in models if not (isinstance(one, str) or (hasattr(one, "stream") and hasattr(one, "format")))
        ]
        if wrong or not models:
            found = f"; found {wrong[0]!r:.60}" if wrong else ""
            raise ConfigError(f"first_of(…) expects models or model strings: first_of('openai:gpt-5', model){found}")
        if len({one if isinstance(one, str) else id(one) for one in models}) < len(models):
            raise ConfigError("first_of(…): a model is given twice; it repeats its requests itself, by max_retries")
        made = {at: model(one) for at, one in enumerate(models) if isinstance(one, str)}
        self._made: Sequence[Model] = tuple(made.values())
        self.models: tuple[Model, ...] = tuple(made.get(at, one) for at, one in enumerate(models))  # type: ignore[arg-type]
        """The members, in their order."""
        self._clock = clock
        self._limited: dict[int, float] = {}  # by a member's place, until when its provider asks to wait
        ways = [str(getattr(one.format, "name", one.format) or "native calls") for one in self.models]
        if len(set(ways)) > 1:  # a run reads all replies in one way
            raise ConfigError(
                f"first_of(…): expected models that call tools in the same way, found {', '.join(ways)}: create each "
                "with the same format=…, which any model can use, or all without"
            )

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def name(self) -> str:
        """Such as `first_of(openai:gpt-5, anthropic:claude-sonnet-5)`."""
        return f"first_of({', '.join(one.name for one in self.models)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The model strings of all that may answer."""
        return tuple(name for one in self.models for name in names(one))

    @property
    def format(self) -> str | Format | None:
        """The text format in which the members write calls; None if they call natively."""
        return self.models[0].format

    @property
    def continues(self) -> bool:
        """Return whether every member continues the last message of a conversation, whichever wrote it."""
        return all(map(continues, self.models))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[SourceEvent, None]:
        """Answer a request. A `ModelSelected` precedes the events of each member that has some.

        Raises:
            ProviderError: the last error, with the earlier ones in its text, the latest first; or that of a member that
                had started its reply.
        """
        failed: tuple[str, ...] = ()
        for at in (order := self._order()):
            member, selected, shown = self.models[at], False, False
            events = member.stream(request)
            try:
                async for event in events:
                    if type(event) is ModelSelected:  # of a chain in this one
                        event = event._replace(failed=(*failed, *event.failed))
                    elif not selected:
                        yield ModelSelected(member.name, failed)
                    selected, shown = True, shown or type(event) not in _UNSEEN
                    yield event
                return
            except (ProviderError, FileRefused) as error:
                passed_on = isinstance(error, FileRefused) or error.kind in PASSED_ON
                if shown or not passed_on or at == order[-1]:
                    error.args = ("; before that, ".join((str(error), *reversed(failed))),)
                    raise
                failed = (*failed, str(error) if isinstance(error, FileRefused) else f"{member.name}: {error}")
                if isinstance(error, ProviderError) and error.kind in _LIMITED and error.retry_after is not None:
                    self._limited[at] = self._clock() + error.retry_after
                _LOG.warning("%s; the next model is asked: %s", failed[-1], self.name)
            finally:
                await close(events)

    def _order(self) -> list[int]:
        """Return the members' places in the order in which they are asked, the limited ones last."""
        now = self._clock()
        return sorted(range(len(self.models)), key=lambda at: self._limited.get(at, now) > now)

    async def aclose(self) -> None:
        """Close the connections of the models that it created from strings; those that you pass are yours to close."""
        for one in self._made:
            await close(one)


@takes(others=argument_names.FIRST_OF)
def first_of(*models: Model | str) -> ModelChain:
    """Create a model that asks several in their order, until one answers.

    The next one is asked if nothing of the reply has been passed on and the error is one that another model may not
    have: a rate limit, an overload, a timeout, a failing server or connection, an account without credit, or a
    conversation that is too long for it. A wrong key or a refused request is raised. A member first repeats a failed
    request by itself, `max_retries` times; if its provider then still asks to wait, it is asked last until that time
    has passed.

    Args:
        models: 1 or more, or their strings. All call tools natively, or all in the same text format.

    Raises:
        ConfigError: there is no model, a string is wrong or lacks its key, or the models differ in how they call tools.
    """
    return ModelChain(*models)
