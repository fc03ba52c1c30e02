"""The requests of a run to its model, and the budget reserved for the replies. Knows no turn, and ends no run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agentkit.agent.journal import Journal
from agentkit.agent.offering import Offering
from agentkit.agent.plan import Plan
from agentkit.agent.run_budget import Meter, Prompts
from agentkit.checks.spelling import did_you_mean
from agentkit.errors import ConfigError, ProviderError
from agentkit.events import Usage
from agentkit.foreign.argument_names import TOOL_CHOICE
from agentkit.messages import AssistantMessage, ToolCall, UserMessage
from agentkit.models.base import ModelRequest, continues, names
from agentkit.processor import Source, not_run
from agentkit.processor.eager_tasks import LoopYield
from agentkit.processor.response_record import NO_USAGE
from agentkit.tool.reply import Output
from agentkit.tool.result import ToolResult
from agentkit.toolspec import ToolSpec

if TYPE_CHECKING:
    from agentkit.formats.format import Format

_LOG: Final = logging.getLogger("agentkit.agent")


class Requests:
    """The requests of a run, sequentially.

    Args:
        plan: the model to ask, the tools and settings, and the budget.
        journal: contains the conversation.
    """

    def __init__(self, plan: Plan, journal: Journal) -> None:
        self.under_way = False
        """True if the model is being asked, or its reply is not recorded yet."""
        self._loop_yield = LoopYield()
        self.shrunk = False
        """True if the last request was refused as too long, and the conversation was made shorter for it."""
        self._plan = plan
        self._journal = journal
        schema = None if plan.output is None or plan.output_tool is not None else plan.output.schema
        settings = dict(plan.settings)
        if plan.output_tool is not None and settings.get("tool_choice") == "none":
            settings["tool_choice"] = plan.output_tool.name
        self._request = ModelRequest(
            (),
            plan.registry.offered_specs(plan.model.format),
            output_schema=schema,
            **settings,
        )
        self.next = self._request
        """The request that is sent next, or was sent last: as it was prepared, or as the guards changed it."""
        self._offering = Offering.of(plan, self.choice)
        self._meters: list[Meter] = []  # for the turn's responses
        self._prompts = Prompts()
        self._continues = continues(plan.model)
        self._continued = 0

    @property
    def never_waits(self) -> bool:
        """True if `prepare` waits for no store and no summary."""
        return self._journal.thread_id is None

    @property
    def readable(self) -> Sequence[ToolSpec] | None:
        """The tools whose calls in text are read, which are those that a result is quarantined for; None for all."""
        return None if self._offering is None else self.next.tools

    @property
    def barred(self) -> bool:
        """True if no tool may be called."""
        return self.choice == "none"

    @property
    def native_tools(self) -> Sequence[ToolSpec]:
        """The tools that the model may call natively."""
        return self.next.tools if self._plan.model.format is None and not self.barred else ()

    def check(self) -> None:
        """Refuse what no request can repair.

        Raises:
            ConfigError: `tool_choice` names an unknown tool, or a tool's calls would be taken for the run's output.
            FormatError: a tool's calls would not be read.
        """
        request = self._request
        choices = ["auto", "required", "none", *(tool.name for tool in request.tools)]
        if request.tool_choice not in choices:
            raise ConfigError(
                f"tool_choice={request.tool_choice!r} is not a tool of this agent: expected one of {', '.join(choices)}"
                f"{did_you_mean(request.tool_choice, choices, TOOL_CHOICE)}"
            )
        if self._plan.config.text_formats:
            from agentkit.formats.reserved_tags import refuse_unread  # only a run with calls in text loads formats

            refuse_unread(self._plan.config.text_formats, request.tools)
            if request.output_schema is not None and self._plan.model.format is not None:
                _refuse_calls(self._plan.config.text_formats[0], request.tools, self._plan.output)  # type: ignore[arg-type]

    async def prepare(self, once: UserMessage | None = None) -> bool:
        """Create the next request; False if nothing is left of the budget.

        Args:
            once: a message for this request only: sent again, Qwen2.5-Coder-1.5B acts on it again.
        """
        if self._loop_yield.due:  # neither the model nor a tool may have had to wait
            await asyncio.sleep(0)
        messages = await self._journal.messages()
        if once is not None:
            messages = [*messages, once]
        if messages is not self._request.messages:  # a journal may return the same list again, extended
            self._request = replace(self._request, messages=messages, rendered=self._journal.render_cache)
        if self._offering is not None:
            tools = self._offering.tools(self._journal.messages_read())
            if tools != self._request.tools:  # the same ones stay the same object, on which rendered requests depend
                self._request = replace(self._request, tools=tools)
        self.next = self._request
        return self._plan.spending.reached_limit is None

    async def reserve(self) -> bool:
        """Reserve what the next request may cost, as soon as the budget allows it; False if nothing is left.

        A budget that counts nothing needs no reservation: then the turn's own total is enough.
        """
        meter = await self._plan.spending.set_aside(
            names(self._plan.model), self._prompts.size(self.next), self.next.max_tokens
        )
        self._meters = [] if meter is None else [meter]
        return meter is not None

    def begin(self) -> ModelRequest:
        """The prepared request."""
        self._continued = 0
        self.under_way = True
        return self.next

    def stream(self, request: ModelRequest) -> Source:
        """Ask the model and count its response against what was just reserved; directly, if nothing is counted."""
        model = self._plan.model
        return self._meters[-1].read(model, request) if self._plan.spending.counts else model.stream(request)

    def more(self, partial: AssistantMessage) -> Source | None:
        """The rest of a response that its token limit cut off inside a call; None if it is not requested."""
        plan = self._plan
        spending = plan.spending
        if not self._continues or self._continued >= plan.limits.auto_continue or spending.reached_limit is not None:
            return None
        self._continued += 1
        request = replace(self.next, messages=[*self.next.messages, partial])
        if spending.counts:
            self._meters.append(spending.set_aside_now(names(plan.model), request))
        return self.stream(request)

    def settle(self) -> None:
        """Count all responses; most are counted already, except one that was never read."""
        for meter in self._meters:
            meter.settle()
        self._meters = []

    def end(self, usage: Usage) -> bool:
        """A turn is over and used these tokens. Returns whether the model was asked for it."""
        if self._meters:
            self.settle()
        if usage is not NO_USAGE and not self._plan.spending.counts:
            self._plan.spending.count(self._plan.model.name, usage)
        asked, self.under_way = self.under_way, False
        return asked

    @property
    def choice(self) -> str:
        """The `tool_choice` of the last request."""
        return self.next.tool_choice

    def wrong_tool(self, call: ToolCall) -> ToolResult | None:
        """Return the answer to a call if the reply must call another tool. Providers ensure that for native calls."""
        choice = self.choice
        if not self.under_way or choice in ("auto", "required", "none", call.name):
            return None
        return not_run.OTHER_TOOL.result(choice=choice)

    def see(self, refused: ProviderError | None, *, calls: Sequence[ToolCall], answered: Collection[str]) -> None:
        """Learn from a turn for the next request.

        Args:
            refused: why the model does not continue its own reply, if it was asked to.
            calls: its calls.
            answered: the tools whose calls were answered; if `tool_choice` required one of them, it becomes `auto`.
        """
        self.shrunk = False
        if refused is not None:
            self._continues = False
            _LOG.warning("%s does not continue a reply that was cut off: %s", self._plan.model.name, refused)
        if calls and self._plan.model.format is None and all(call.format is not None for call in calls):
            known = self._request.written
            written = known if isinstance(known, set) else set()  # one object: what was made with it stays cached
            written.update(call.id for call in calls)
            self._request = replace(self._request, written=written)
        choice, output = self._request.tool_choice, self._plan.output_tool
        stays = output is not None and choice == output.name
        if answered and not stays and choice in ("required", *answered):
            self._request = replace(self._request, tool_choice="auto")


def _refuse_calls(format: Format, tools: Sequence[ToolSpec], output: Output) -> None:
    """Refuse an output type that calls of this format match: a reply that matches it is the output, and calls nothing.

    Raises:
        ConfigError: a tool's call without arguments matches it.
    """
    from agentkit.formats.edges import marked
    from agentkit.formats.write import render_calls

    if marked(format.shapes[0]):
        return
    for tool in tools:
        if output.meant(render_calls(format, [ToolCall("", tool.name, {})], tools), whole=True):
            raise ConfigError(
                f"output_type={output.schema.name}: a call of {tool.name!r} in format {format.name!r} is also a value "
                "of this type, and would be the run's output: require a field that no call has, or use another format"
            )
