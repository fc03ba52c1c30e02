"""What tests of rollouts share: a policy that reads from a list, and samples."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from agentkit.messages import UserMessage
from agentkit.rollout import Generation, GenerationRequest, Sample

Line = str | Generation | BaseException


class Lines:
    """A policy that writes these lines in each trajectory; after the last one, `done`."""

    def __init__(self, *lines: Line | Callable[[GenerationRequest], Line]) -> None:
        self.lines = lines
        self.requests: list[GenerationRequest] = []

    async def generate(self, request: GenerationRequest) -> Generation:
        self.requests.append(request)
        turn = sum(r.trajectory_id == request.trajectory_id for r in self.requests) - 1
        line = self.lines[turn] if turn < len(self.lines) else "done"
        line = line(request) if not isinstance(line, (str, Generation, BaseException)) else line
        if isinstance(line, BaseException):
            raise line
        return Generation(line) if isinstance(line, str) else line


def hermes(name: str, **arguments: Any) -> str:
    """A call as a Hermes model writes it."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def sample(id: str = "s", prompt: str = "Go.", **more: Any) -> Sample:
    """A sample with a prompt of one message."""
    return Sample(id, (UserMessage(prompt),), **more)


def told(lines: Sequence[str]) -> str:
    """Several calls of one response."""
    return "\n".join(lines)
