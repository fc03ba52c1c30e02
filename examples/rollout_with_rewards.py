"""Rollouts: a tool instance for each trajectory, a reward for each call and for the whole. Needs no model."""

import asyncio

from agentkit import Tool, ToolResult, openapi_schema
from agentkit.messages import UserMessage
from agentkit.rollout import Generation, GenerationRequest, Rollout, Sample, ToolKwargs


class Guess(Tool):
    """Guess a number."""

    def __init__(self, secret: int) -> None:
        self.secret = secret
        self.tried: list[int] = []

    @openapi_schema
    async def guess(self, n: int) -> ToolResult:
        """Guess the number.

        Args:
            n: the guess
        """
        self.tried.append(n)
        hint = "right" if n == self.secret else "too small" if n < self.secret else "too big"
        return ToolResult(hint, reward=0.0 if hint == "right" else -0.1)

    def calc_reward(self) -> float:
        """1 if the last guess was right."""
        return float(self.tried[-1:] == [self.secret])


class Halving:
    """A policy that halves the range; it stands for a model that has learned to."""

    def __init__(self) -> None:
        self.ranges: dict[str, tuple[int, int]] = {}

    async def generate(self, request: GenerationRequest) -> Generation:
        """Guess the middle of what is left."""
        low, high = self.ranges.pop(request.trajectory_id, (1, 100))
        middle = (low + high) // 2
        hint = getattr(request.messages[-1], "text", "")
        if hint == "right":
            return Generation(f"It is {middle}.")
        low, high = (
            (middle + 1, high) if hint == "too small" else (low, middle - 1) if hint == "too big" else (low, high)
        )
        self.ranges[request.trajectory_id] = low, high
        call = f'{{"name": "guess", "arguments": {{"n": {(low + high) // 2}}}}}'
        return Generation(f"<tool_call>\n{call}\n</tool_call>")


async def main() -> None:
    """Three samples, each with its own secret."""
    rollout = Rollout([Guess], Halving())
    prompt = (UserMessage("Guess my number between 1 and 100."),)
    samples = [Sample(f"n={n}", prompt, {"guess": ToolKwargs(create={"secret": n})}) for n in (50, 37, 99)]
    async for record in rollout.stream(samples):
        hints = ", ".join(f"{call.arguments['n']} {call.result}" for call in record.calls)
        print(f"{record.id}: {hints}; reward {record.reward:g} ({record.end})")


asyncio.run(main())
