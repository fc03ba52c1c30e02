# `FilePart.from_path(…)`
from pathlib import Path

from agentkit import Agent, FilePart
from local_server import LocalServer

server = LocalServer("A report.")
Path("report.pdf").write_bytes(b"%PDF-1.7")
agent = Agent("anthropic:claude-sonnet-5")
print(agent.run_sync(["What is this?", FilePart.from_path("report.pdf")]).text)
print("JVBERi0xLjc=" in str(server.bodies[0]))
