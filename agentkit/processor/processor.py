"""Runs the calls of a model's responses: one `Turn` per response, with ids that are unique across all of them.

Only puts the parts together; the work is done in `turn`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from os import urandom
from typing import Any, Final

from agentkit.checks.bounds import Bounds, instance, or_none, refuse
from agentkit.checks.spelling import methods_take
from agentkit.foreign.absent import suggest_attributes
from agentkit.messages import Message, ToolCall
from agentkit.processor.admission import Judge
from agentkit.processor.approval import Allows
from agentkit.processor.author_errors import AuthorErrors
from agentkit.processor.call_runner import CallRunner, Scope
from agentkit.processor.config import ProcessorConfig
from agentkit.processor.inbox import Inbox, Source
from agentkit.processor.maybe_output import IsOutput
from agentkit.processor.reply_readers import ReplyReaders
from agentkit.processor.response import ResponseReader
from agentkit.processor.response_record import CallIds
from agentkit.processor.sources import More
from agentkit.processor.start_queue import Gate
from agentkit.processor.turn import Turn
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import NO_CONTEXT, ToolContext
from agentkit.toolspec import ToolSpec

_BOUNDS: Final[Bounds] = {
    "registry": instance(ToolRegistry, "a ToolRegistry: ToolRegistry(tool, …)"),
    "config": or_none(instance(ProcessorConfig, "a ProcessorConfig")),
}


def call_id() -> str:
    """Return an id for a call: nine letters and digits, which every provider accepts (Mistral accepts nothing else)."""
    return urandom(5).hex()[:9]


@suggest_attributes
@methods_take
class ResponseProcessor:
    """Runs the calls of a model's responses, one `Turn` per response.

    Args:
        registry: the tools that may run.
        config: which calls run, and how.
        context: the application's values; tools that declare a `ToolContext` find them in its `state`.
        new_id: creates the id of a call that came without one.
        taken: ids used earlier in the conversation, which no new call may have.
        new_context: creates the whole `ToolContext` of a call, in place of one that only has `context` as its `state`.
            It is called when a call starts, and before that when a function must decide whether the call needs
            approval.
        untrusted: returns the conversation so far: a call in the text of a model that calls natively does not run if a
            tool's result (a server-side tool's included), a user's message or an earlier reply names its tool, nor does
            an example from the system prompt or from a tool's description. None compares with nothing.
        taught: whether the model was taught to call in the text formats of `config`: then a call in those is its own,
            and only one in another format is compared.
        scope: entered while a call's task is created: context variables that it sets are visible to the tool. None
            enters nothing.
        output: whether the text of a response is meant as the run's output (see `Output.meant`): then nothing in it is
            a call. None: no output of a certain type is expected.
        gate: called when a call is about to start; a result that it returns is the answer, and the call does not
            start. None lets every call start.
        judge: decides about each call once its arguments are validated, before a person is asked; None lets every
            call start.

    >>> import asyncio
    >>> from agentkit.events import CallEnd
    >>> from agentkit.messages import Message, ToolCall
    >>> async def shout(text: str) -> str:
    ...     "Say it louder."
    ...     return text.upper()
    >>> async def main() -> None:
    ...     turn = ResponseProcessor(ToolRegistry(shout)).process([CallEnd(0, ToolCall("x", "shout", {"text": "hi"}))])
    ...     print([type(event).__name__ async for event in turn], turn.results[0].text)
    >>> asyncio.run(main())
    ['CallEnd', 'ToolStarted', 'ToolCompleted'] HI
    """

    def __init__(
        self,
        registry: ToolRegistry,
        config: ProcessorConfig | None = None,
        *,
        context: Mapping[str, Any] = NO_CONTEXT,
        new_id: Callable[[], str] = call_id,
        taken: Iterable[str] = (),
        new_context: Callable[[ToolCall], ToolContext] | None = None,
        untrusted: Callable[[], Iterable[Message]] | None = None,
        taught: bool = False,
        scope: Scope | None = None,
        gate: Gate | None = None,
        judge: Judge | None = None,
        output: IsOutput | None = None,
    ) -> None:
        refuse("ResponseProcessor", {"registry": registry, "config": config}, _BOUNDS)
        self.registry = registry
        self.config = config or ProcessorConfig()
        self.context = context
        self._readers = ReplyReaders(
            self.config, CallIds(new_id, taken), untrusted=untrusted, taught=taught, output=output
        )
        self._new_context = new_context or self._context
        self._scope = scope
        self._gate = gate
        self._judge = judge
        self._faults = AuthorErrors()

    def process(
        self,
        events: Source,
        *,
        offered: Sequence[ToolSpec] | None = None,
        barred: bool = False,
        approved: Collection[str] = (),
        allows: Allows | None = None,
        more: More | None = None,
        already_run: Iterable[ToolCall] = (),
    ) -> Turn:
        """Process one response's events; iterate the turn to read them and to run the calls.

        Args:
            events: the response's events.
            offered: the tools that the model could call, empty with `tool_choice="none"`: only their calls are
                recovered from a native model's text. None means all tools of the registry.
            barred: whether no call may be made, as with `tool_choice="none"`: each is then `denied`.
            approved: the ids of calls that a person has approved; they run without asking again.
            allows: asked about each call that needs approval; True lets it run without. None lets none.
            more: called with what was written so far when the response ends at the token limit inside a text call. It
                returns the events of a further response, from a model that continues exactly where it was cut, or None
                to let the call be cut. The turn reads both as one response, once they are complete; a further response
                that is not certainly a continuation is read as a separate reply, and the cut call is answered as cut.
            already_run: the calls of the previous response, if its token limit cut it: if this one repeats them,
                they are answered with an error and not run a second time.
        """
        inbox = Inbox()
        runner = CallRunner(
            *(self.registry, self.config, self._new_context, inbox, approved, self._scope, self._gate, self._faults),
            judge=self._judge,
            allows=allows,
        )
        if barred:
            runner.turn_off()
        return Turn(self.registry, self.config, self._reader(offered, more, already_run), runner, inbox, events, more)

    def _context(self, call: ToolCall) -> ToolContext:
        return ToolContext(call.id, call.name, self.context, call.id)

    def _reader(
        self, offered: Sequence[ToolSpec] | None, more: More | None, already_run: Iterable[ToolCall]
    ) -> ResponseReader:
        if self.config.text_formats:
            tools: Sequence[ToolSpec] = self.registry.specs()
        else:
            tools = self.registry.offered_specs(None) if offered is None else offered
        self._readers.config = self.config  # a run changes it between two responses
        return self._readers.new(tools, continues=more is not None, already_run=already_run)
