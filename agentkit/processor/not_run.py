"""The reasons why a call is not run: the code of each, and its words for the model. Knows results only.

Not here are the refusals that come from reading a call (`formats`, `models`; calls after a damaged one are refused in
`formats/sequence.py`), from checking its tool and arguments (`admission`), from withdrawing a call that had already
started (`call_runner`, `tooltask`), and from copying a thread with such a call (`threads/fork.py`).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from agentkit.errors import ErrorCode
from agentkit.tool.result import ToolResult

PREFIX: Final = "not run: "


class NotRun(NamedTuple):
    """A reason why a call is not run.

    Attributes:
        code: the error's code.
        words: for the model, with places for values.
    """

    code: ErrorCode
    words: str

    def text(self, **values: Any) -> str:
        """Return the words that the model reads."""
        return PREFIX + self.words.format(**values)

    def result(self, **values: Any) -> ToolResult:
        """Return the call's answer."""
        return ToolResult(error=self.text(**values), code=self.code)


# The settings decide.
NATIVE_OFF: Final = NotRun("denied", "native calls are turned off; write the call in your text, as {formats}")
NO_TOOLS_NOW: Final = NotRun("denied", "no tool may be called now (tool_choice='none'); answer in words")
OTHER_TOOL: Final = NotRun("limit", "this reply must call {choice}")
NO_BUDGET: Final = NotRun("limit", "the run's budget for calls is exhausted")
TOO_DEEP: Final = NotRun(
    "limit",
    "agents are already nested as deep as allowed (max_depth of the Agent that was run). Do this yourself, with your "
    "other tools, or answer with what you have",
)

# The response decides.
RETRACTED: Final = NotRun("denied", "the response finished with {finish}, which retracts its calls")
BROKEN_OFF: Final = NotRun("interrupted", "the response was interrupted by an error")
TERMINATED: Final = NotRun("skipped", "terminated by the call of {name} before it")
ALREADY_RUN: Final = NotRun(
    "ambiguous_call",
    "the reply that was cut by the token limit has this very call, with its answer. To run it once more, call it again "
    "in your next reply",
)
WITH_OUTPUT: Final = NotRun("skipped", "this reply is the final answer, and nothing follows it")
NOT_FINAL: Final = NotRun(
    "skipped",
    "this reply also calls other tools, so it is not the final answer: read their results, then call {name} alone",
)
SEVERAL_OUTPUTS: Final = NotRun(
    "ambiguous_call", "this reply has {count} different final answers: call {name} once, with the whole answer"
)
QUOTED: Final = NotRun(
    "ambiguous_call",
    "a tool result, a user message or an earlier reply names this tool, so the call may be a quote. To make it, call "
    "the tool natively",
)

# A person decides.
DENIED: Final = NotRun("denied", "the user denied this call")
GUARDED: Final = NotRun("denied", "{reason}")
UNATTENDED: Final = NotRun("denied", "{name} needs a person's approval, and nobody is here to give it{reason}")
CANCELLED: Final = NotRun("cancelled", "the run was cancelled before this call started")
MOVED_ON: Final = NotRun("cancelled", "the user wrote again before this call started")
COPIED: Final = NotRun("cancelled", "the conversation was copied before this call had an answer")

# Other calls of this process decide.
LOCKED: Final = NotRun("limit", "{name} runs one call at a time, and {why}")
NO_THREAD: Final = NotRun("limit", "{why}")
NO_FREE_THREAD: Final = NotRun("timeout", "no thread was free for it within {seconds:g} s{of}: {threads}")

# A rollout decides.
TOO_MANY: Final = NotRun("limit", "at most {most} calls run in one turn; call again in the next")
TIME_UP: Final = NotRun("timeout", "the {seconds:g} s{of} were up before the calls ahead of it had ended")
TAKEN_BACK: Final = NotRun("denied", "the policy took this response back")
GIVEN_UP: Final = NotRun("cancelled", "the policy gave this response up")
POLICY_FAILED: Final = NotRun("cancelled", "the policy failed in this response")
NO_TOKENS: Final = NotRun("limit", "the trajectory has as many tokens as it may have")
LAST_RESPONSE: Final = NotRun("limit", "this was the last response of the trajectory")
LAST_ANSWER: Final = NotRun("limit", "the trajectory is answered no more")
