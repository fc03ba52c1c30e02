"""A model that plans, works through its plan and ends with a question; run it with `python examples/plan_and_ask.py`.

The model is a script, so no key is needed. Replace it by a name such as "openai:gpt-5" to use a real one.
"""

from agentkit import Agent
from agentkit.messages import AssistantMessage
from agentkit.testing import ScriptedModel
from agentkit_tools.conversation import Conversation
from agentkit_tools.tasks import TaskList

SCRIPT = [
    '<create-tasks section="Trip"><tasks>["find a train", "find a hotel"]</tasks></create-tasks>',
    '<update-tasks task_ids="1, 2" status="completed"></update-tasks>',
    "<ask>The 9:04 and the Hotel Adler. Shall I book both?</ask>",
]

tasks = TaskList()
agent = Agent(ScriptedModel(SCRIPT, format="xml"), tools=[tasks, Conversation])
result = agent.run_sync("Plan my trip to Bern.")

for task in tasks.tasks:
    print(f"{task.section}: {task.content}: {task.status}")
for message in result.new_messages:
    if isinstance(message, AssistantMessage):
        print(*(call.arguments["text"] for call in message.calls if call.name == "ask"), end="")
print()
