"""The guards of a run are asked here, and nowhere else. What is not clearly allowed is refused: this fails closed."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from copy import deepcopy
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from agentkit.agent.cancellation import in_time
from agentkit.agent.decisions import Approved, Denied, call_hash
from agentkit.agent.guards import AskAgain, AskPerson, Guards, Refused
from agentkit.agent.journal import Ask, UnansweredCalls
from agentkit.events import SourceEvent
from agentkit.messages import AssistantMessage, Message, ToolCall
from agentkit.models.base import Model, ModelRequest
from agentkit.models.render_cache import RenderCache
from agentkit.processor import not_run
from agentkit.processor.admission import AdmittedCall, Ruling
from agentkit.processor.eager_tasks import interrupt
from agentkit.processor.tool_run import in_a_thread
from agentkit.tool.own_thread import thread_of_method
from agentkit.tool.result import ToolContext

if TYPE_CHECKING:
    from agentkit.agent.run import RunStream

_LOG: Final = logging.getLogger("agentkit.agent")
_ALLOWED: Final[Mapping[str, tuple[type, ...]]] = {
    "request": (ModelRequest, Refused),
    "call": (Approved, Denied, AskPerson),
    "reply": (AskAgain, Refused),
}
"""What a guard may return besides None."""
_ASKED: Final = "a guard asks for a person"
_STARTED_OTHERWISE: Final = "it was started with other arguments"
_CHANGED_SINCE: Final = "its arguments are not those that were approved"


class RequestDenied(Exception):
    """A guard refused a request that is not one of the run's own turns, such as one for a summary."""


class _GuardFailed(Exception):
    """A guard gave no valid answer; the message says why."""


class RunGuards:
    """The guards of one run.

    Args:
        guards: those of the run's agent; None for none.
        above: those of the run that it belongs to, which are asked first.
    """

    def __init__(self, guards: Guards | None, above: RunGuards | None) -> None:
        self.asked: dict[str, str] = {}
        """Why guards asked a person about calls of this run, by their ids."""
        self.unsettled = UnansweredCalls()
        """The calls of an earlier run that are about to run."""
        self.offered: Collection[str] | None = None
        """The tools in the request that a guard returned, which alone may be called; None if no guard returned one."""
        outer: tuple[Guards, ...] = () if above is None else above._guards
        self._guards: tuple[Guards, ...] = outer if guards is None or guards in outer else (*outer, guards)

    def has(self, kind: str) -> bool:
        """Return True if there are guards of this kind: `request`, `call` or `reply`."""
        return any(getattr(guards, kind) for guards in self._guards)

    def judges(self, calls: Sequence[ToolCall]) -> bool:
        """Return True if calls are to be judged: by guards, or because one is not as it was approved or started."""
        return self.has("call") or self.has("request") or any(map(self._refusal, calls)) or any(map(self._ask, calls))

    # -------------------------------------------------------------- requests and replies

    async def check_request(self, request: ModelRequest, run: RunStream[Any]) -> ModelRequest | Refused:
        """Return the request to send, or why none is sent."""
        sent = request

        def take(answer: Any) -> Any:
            nonlocal sent
            if isinstance(answer, Refused):
                return answer
            messages = _with_new_sources(answer.messages, sent.messages)
            sent = replace(answer, messages=messages, rendered=RenderCache())  # what was rendered of others is not sent
            return None

        try:
            refused = await self._each("request", lambda: (_copied(sent), run), take)
        except _GuardFailed as e:
            return Refused(str(e))
        return sent if refused is None else refused

    def asking(self, ask: Ask, run: RunStream[Any]) -> Ask:
        """Return an `Ask` whose requests are checked."""

        async def guarded(model: Model, request: ModelRequest) -> AsyncGenerator[SourceEvent, None]:
            checked = await self.check_request(request, run)
            if isinstance(checked, Refused):
                raise RequestDenied(checked.reason)
            async with aclosing(ask(model, checked)) as events:
                async for event in events:
                    yield event

        return guarded if self.has("request") else ask

    async def check_reply(self, reply: AssistantMessage, run: RunStream[Any]) -> AskAgain | Refused | AssistantMessage:
        """Return the reply if it is accepted, or why it is not."""
        try:
            refused = await self._each("reply", lambda: (deepcopy(reply), run), lambda answer: answer)
        except _GuardFailed as e:
            return Refused(str(e))
        return reply if refused is None else refused

    # -------------------------------------------------------------- calls

    async def judge(self, admitted: AdmittedCall, context: ToolContext) -> Ruling:
        """Decide about a call; a `Judge`."""
        asks, current = list[str](), admitted
        if self.offered is not None and admitted.call.name not in self.offered:
            return Ruling(not_run.GUARDED.result(reason=f"{admitted.call.name} was not offered"))

        def take(answer: Any) -> Any:
            nonlocal current
            match answer:
                case Denied():
                    return answer
                case AskPerson(reason):
                    asks.append(reason)
                case Approved(arguments) if arguments is not None:
                    try:
                        current = _with_changes(current, arguments)
                    except Exception as e:
                        raise _GuardFailed(f"changed the arguments to others that are not valid: {e}") from e
            return None

        try:
            denied = await self._each("call", lambda: (_as_read(current), context), take)
        except _GuardFailed as e:
            denied = Denied(str(e))
        except KeyboardInterrupt as e:
            await interrupt(e)
            denied = Denied("interrupted")
        refusal = self._refusal(current.call, denied)
        if refusal is not None:
            return Ruling(not_run.GUARDED.result(reason=refusal))
        return Ruling(current, self._ask(current.call, asks))

    def _refusal(self, call: ToolCall, denied: Denied | None = None) -> str | None:
        """Return why a call does not run: guards denied it, or it was started with other arguments; otherwise None."""
        if denied is not None:
            return f"a guard denied this call{denied.reason and ': '}{denied.reason}"
        started = self.unsettled.started.get(call.id)
        return None if started is None or started == call_hash(call) else _STARTED_OTHERWISE

    def _ask(self, call: ToolCall, asks: Sequence[str] = ()) -> str | None:
        """Return why a person must be asked about a call; None if nobody asks, or she approved it for this reason."""
        reasons, approved = ["; ".join(filter(None, asks)) or _ASKED] if asks else [], self.unsettled.approved
        if call.id in approved:
            if (seen := approved[call.id]) is None:
                return None
            if seen.call != call_hash(call):
                reasons.insert(0, _CHANGED_SINCE)
            elif all(reason in seen.reason for reason in reasons):
                return None
        self.asked[call.id] = "; ".join(reasons)
        return self.asked[call.id] or None

    # -------------------------------------------------------------- one guard

    async def _each(self, kind: str, given: Callable[[], tuple[Any, Any]], take: Callable[[Any], Any]) -> Any:
        """Ask the guards of a kind, each with new copies; returns the first result of `take` that is not None.

        Raises:
            _GuardFailed: one gave no valid answer.
        """
        now = asyncio.get_running_loop().time
        for guards in self._guards:
            until = now() + guards.timeout
            for guard in getattr(guards, kind):
                name = str(getattr(guard, "__qualname__", None) or type(guard).__name__)
                try:
                    answer = await _answer(guard, given, until - now())
                    if now() > until:
                        raise _GuardFailed("did not answer in time")
                    if answer is not None and not isinstance(answer, _ALLOWED[kind]):
                        wanted = ", ".join(one.__name__ for one in _ALLOWED[kind])
                        raise _GuardFailed(f"returned a {type(answer).__name__}, not one of None, {wanted}")
                    end = None if answer is None else take(answer)
                except _GuardFailed as e:
                    _LOG.error("the %s guard %s %s", kind, name, e, exc_info=e.__cause__)
                    raise _GuardFailed(f"the guard {name} {e}") from e
                if end is not None:
                    return end
        return None


async def _answer(guard: Callable[..., Any], given: Callable[[], tuple[Any, Any]], seconds: float) -> Any:
    try:
        args = given()
    except Exception as e:
        raise _GuardFailed("could not be asked") from e
    try:
        called = in_a_thread(guard, *args) if thread_of_method(guard) else guard(*args)
    except KeyboardInterrupt:  # the operator's
        raise
    except BaseException as e:
        raise _GuardFailed(f"raised {type(e).__name__}") from e
    if not inspect.isawaitable(called):
        return called
    done = await in_time(called, seconds)
    if done is None:
        raise _GuardFailed("did not answer in time")
    answer, error = done
    if error is not None:
        raise _GuardFailed(f"raised {type(error).__name__}") from error
    return answer


def _with_new_sources(messages: Sequence[Message], before: Sequence[Message]) -> list[Message]:
    """Return messages in which a call has no `raw` if a guard changed its arguments: those are sent instead."""
    old = {call.id: call.arguments for call in chain.from_iterable(map(_calls, before))}

    def renewed(part: Any) -> Any:
        is_old = not isinstance(part, ToolCall) or part.arguments == old.get(part.id, part.arguments)
        return part if is_old else replace(part, raw="")

    return [AssistantMessage(map(renewed, one.content)) if _calls(one) else one for one in messages]


def _calls(message: Message) -> tuple[ToolCall, ...]:
    return message.calls if isinstance(message, AssistantMessage) else ()


def _copied(request: ModelRequest) -> ModelRequest:
    return deepcopy(request, {id(request.rendered): RenderCache()})


def _with_changes(admitted: AdmittedCall, arguments: Mapping[str, Any]) -> AdmittedCall:
    """The call with a guard's arguments; unchanged ones stay as they were written, which may be more than it saw."""
    shown, written = _as_read(admitted).arguments, admitted.call.arguments
    same = {name for name, value in arguments.items() if name in shown and value == shown[name]}
    if same == shown.keys() == arguments.keys():
        return admitted
    return admitted.with_arguments({**arguments, **{name: written[name] for name in same & written.keys()}})


def _as_read(admitted: AdmittedCall) -> ToolCall:
    """The call with its arguments as the tool reads them, as JSON values."""
    from pydantic_core import to_jsonable_python

    return replace(admitted.call, arguments=to_jsonable_python(dict(admitted.arguments), serialize_unknown=True))
