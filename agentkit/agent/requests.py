"""What a run asks of its model, and what is set aside for the replies. Knows no turn, and decides no end."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from agentkit.agent.journal import Journal
from agentkit.agent.plan import Plan
from agentkit.agent.spending import Meter, Prompts
from agentkit.checks.spelling import did_you_mean
from agentkit.errors import ConfigError, ProviderError
from agentkit.events import Usage
from agentkit.foreign.renamed import TOOL_CHOICE
from agentkit.messages import AssistantMessage
from agentkit.models.base import ModelRequest, continues
from agentkit.processor import ProcessorConfig, Source
from agentkit.toolspec import ToolSpec

_LOG: Final = logging.getLogger("agentkit.agent")


class Requests:
    """The requests of a run, one after the other.

    Args:
        plan: whom to ask, with which tools and settings, at whose expense.
        journal: has the conversation.
    """

    def __init__(self, plan: Plan, journal: Journal) -> None:
        self.under_way = False
        """Whether the model is being asked, or its reply is not written down yet."""
        self.shrunk = False
        """Whether the last request was refused as too long, and the conversation was made shorter for it."""
        self._plan = plan
        self._journal = journal
        wanted = None if plan.output is None else plan.output.schema
        self._request = ModelRequest(
            (), plan.registry.offered(plan.model.format), output_schema=wanted, **plan.settings
        )
        self._meters: list[Meter] = []  # of the turn's responses
        self._prompts: Prompts | None = None
        self._continues = continues(plan.model)
        self._continued = 0

    def check(self) -> None:
        """Raise ConfigError where the model is to call a tool that there is not."""
        request = self._request
        choices = ["auto", "required", "none", *(tool.name for tool in request.tools)]
        if request.tool_choice not in choices:
            raise ConfigError(
                f"tool_choice={request.tool_choice!r} is no tool of this agent; wanted one of {', '.join(choices)}"
                f"{did_you_mean(request.tool_choice, choices, TOOL_CHOICE)}"
            )

    @property
    def at_once(self) -> bool:
        """Whether `prepare` waits for nothing: no store, no summary, no others who spend from the same budget."""
        return self._journal.thread_id is None and not self._plan.spending.counts

    async def prepare(self) -> bool:
        """Make the next request, and what its response is counted with; False where nothing is left of the budget."""
        messages = await self._journal.messages()
        if messages is not self._request.messages:  # a journal may give the same list again, with more in it
            self._request = replace(self._request, messages=messages)
        spending = self._plan.spending
        if not spending.counts:  # then the turn's own sum does
            return spending.exhausted is None
        self._prompts = self._prompts or Prompts(self._request)
        prompt = self._prompts.size(messages)
        meter = await spending.set_aside(self._plan.model.name, prompt, self._request.max_tokens)
        self._meters = [] if meter is None else [meter]
        return meter is not None

    def begin(self) -> ModelRequest:
        """The request that was prepared."""
        self._continued = 0
        self.under_way = True
        return self._request

    def offered(self) -> Sequence[ToolSpec]:
        """The tools that the model may call natively."""
        natively = self._plan.model.format is None and self._request.tool_choice != "none"
        return self._request.tools if natively else ()

    def config(self) -> ProcessorConfig:
        """What the calls of the response may do; no more of them than are left, for others take some, too."""
        config, left = self._plan.config, self._plan.spending.calls_left
        if left is None or left >= (config.max_calls or left + 1):
            return config
        return replace(config, max_calls=left or None)  # none is left: the gate refuses them

    def stream(self, request: ModelRequest) -> Source:
        """Ask the model, with what was set aside for it last; where nothing is counted, nothing stands between."""
        model = self._plan.model
        return self._meters[-1].read(model, request) if self._plan.spending.counts else model.stream(request)

    def more(self, partial: AssistantMessage) -> Source | None:
        """The rest of a response that its token limit cut inside a call; None where it is not asked for."""
        plan = self._plan
        spending = plan.spending
        if not self._continues or self._continued >= plan.limits.auto_continue or spending.exhausted is not None:
            return None
        self._continued += 1
        request = replace(self._request, messages=[*self._request.messages, partial])
        if spending.counts:
            self._meters.append(spending.set_aside_now(plan.model.name, request))
        return self.stream(request)

    def settle(self) -> None:
        """Count what was asked for; most is counted already, but not a response that nobody read."""
        for meter in self._meters:
            meter.settle()
        self._meters = []

    def end(self, usage: Usage) -> bool:
        """A turn is over, and cost this. Returns whether the model was asked for it."""
        self.settle()
        if not self._plan.spending.counts:
            self._plan.spending.count(self._plan.model.name, usage)
        asked, self.under_way = self.under_way, False
        return asked

    def see(self, refused: ProviderError | None, *, answered: bool) -> None:
        """Learn from a turn for the next request.

        Args:
            refused: why the model does not go on with a reply of its own, if it was asked to.
            answered: whether calls were: `tool_choice` holds until then.
        """
        self.shrunk = False
        if refused is not None:
            self._continues = False
            _LOG.warning("%s does not go on with a reply that was cut: %s", self._plan.model.name, refused)
        if answered and self._request.tool_choice not in ("auto", "none"):
            self._request = replace(self._request, tool_choice="auto")
