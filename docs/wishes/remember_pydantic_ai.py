# `ApprovalRequired`; rules and their file by hand
import re
from pathlib import Path

from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.messages import ModelMessagesTypeAdapter
from local_server import LocalServer

LocalServer(
    ("run", {"command": "git log -5"}),
    ("run", {"command": "git log --all"}),
    ("run", {"command": "git log; rm -r ."}),
)
ALLOWED, CHAT = Path("allowed.txt"), Path("chat.json")
agent = Agent("openai:gpt-5", output_type=[str, DeferredToolRequests])


def allowed(command: str) -> bool:
    rules = ALLOWED.read_text().splitlines() if ALLOWED.exists() else []
    return any(re.fullmatch(rule, command) for rule in rules)


@agent.tool
def run(ctx: RunContext, command: str) -> str:
    """Run a command."""
    if not ctx.tool_call_approved and not allowed(command):
        raise ApprovalRequired
    print("ran", command)
    return "done"


asked = agent.run_sync("What is new?")
CHAT.write_bytes(asked.all_messages_json())
ALLOWED.write_text(r"git log [\w ./:=@,+-]*")
history = ModelMessagesTypeAdapter.validate_json(CHAT.read_bytes())  # later, in another process
decisions = DeferredToolResults(approvals={asked.output.approvals[0].tool_call_id: True})
result = agent.run_sync(message_history=history, deferred_tool_results=decisions)
print("asked", result.output.approvals[0].args_as_dict()["command"])
