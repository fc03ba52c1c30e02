# `HumanInTheLoopMiddleware` with `when`; rules and their file by hand
import re
from pathlib import Path

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from local_server import LocalServer

LocalServer(
    ("run", {"command": "git log -5"}),
    ("run", {"command": "git log --all"}),
    ("run", {"command": "git log; rm -r ."}),
)
ALLOWED = Path("allowed.txt")
store = InMemorySaver()  # its SQLite store is another package


def not_allowed(request) -> bool:
    rules = ALLOWED.read_text().splitlines() if ALLOWED.exists() else []
    return not any(re.fullmatch(rule, request.tool_call["args"]["command"]) for rule in rules)


def run(command: str) -> str:
    """Run a command."""
    print("ran", command)
    return "done"


def agent():
    asks = {"run": {"allowed_decisions": ["approve", "reject"], "when": not_allowed}}
    return create_agent("openai:gpt-5", [run], middleware=[HumanInTheLoopMiddleware(asks)], checkpointer=store)


thread = {"configurable": {"thread_id": "dev"}}
agent().invoke({"messages": "What is new?"}, thread)
ALLOWED.write_text(r"git log [\w ./:=@,+-]*")
result = agent().invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
print("asked", result["__interrupt__"][0].value["action_requests"][0]["args"]["command"])
