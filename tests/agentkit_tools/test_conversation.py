"""`ask` and `complete` end the run, and the application gets what to show."""

from __future__ import annotations

import asyncio

import pytest

from agentkit import Agent, ToolRegistry
from agentkit.events import ToolCompleted
from agentkit.messages import ToolMessage
from agentkit.testing import ScriptedModel
from agentkit_tools.conversation import Conversation
from agentkit_tools.tasks import TaskList


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('<ask attachments="a.md, b.md">Which?</ask>', {"text": "Which?", "attachments": ["a.md", "b.md"]}),
        ("<ask>a < b && c?</ask>", {"text": "a < b && c?", "attachments": []}),
        ("<complete></complete>", {"text": "", "attachments": []}),
        ("<complete/>", {"text": "", "attachments": []}),
        ('<complete attachments="x.csv">Done.</complete>', {"text": "Done.", "attachments": ["x.csv"]}),
    ],
)
def test_the_run_ends_and_its_result_says_what_to_show(written: str, shown: dict[str, object]) -> None:
    completed: list[ToolCompleted] = []
    agent = Agent(ScriptedModel([written, "never"], format="xml"), tools=[Conversation, TaskList])

    async def finish() -> str:
        async with agent.stream("Go.") as run:
            completed.extend([event async for event in run if isinstance(event, ToolCompleted)])
        return run.result.finish

    assert asyncio.run(finish()) == "agent_terminated"
    assert [event.result.metadata for event in completed] == [shown]


def test_what_follows_a_question_is_skipped() -> None:
    text = "<ask>Which?</ask><clear-all/>"
    result = Agent(ScriptedModel([text], format="xml"), tools=[Conversation, TaskList]).run_sync("Go.")
    answers = [message.text for message in result.messages if isinstance(message, ToolMessage)]
    assert answers == [
        "asked; the user's answer comes next",
        "not run: terminated by the call of ask before it",
    ]


def test_an_empty_question_is_an_error_and_the_run_continues() -> None:
    result = Agent(ScriptedModel(["<ask> </ask>", "Sorry."], format="xml"), tools=[Conversation]).run_sync("Go.")
    assert result.messages[-2].text == "the question is empty; write what the user should answer"
    assert result.text == "Sorry."


def test_both_have_the_described_tags() -> None:
    registry = ToolRegistry()
    registry.register_tool(Conversation)
    assert sorted(registry.xml_tools) == ["ask", "complete"]
    assert registry.get_xml_examples()[0].startswith("<ask attachments=")
