# `BinaryContent.from_path(…)`
from pathlib import Path

from pydantic_ai import Agent, BinaryContent
from local_server import LocalServer

server = LocalServer("A report.")
Path("report.pdf").write_bytes(b"%PDF-1.7")
agent = Agent("anthropic:claude-sonnet-5")
print(agent.run_sync(["What is this?", BinaryContent.from_path("report.pdf")]).output)
print("JVBERi0xLjc=" in str(server.bodies[0]))
