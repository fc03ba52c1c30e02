# `{"type": "file", …}`
import base64
from pathlib import Path

from langchain.agents import create_agent
from local_server import LocalServer

server = LocalServer("A report.")
Path("report.pdf").write_bytes(b"%PDF-1.7")
data = base64.b64encode(Path("report.pdf").read_bytes()).decode()
file = {"type": "file", "base64": data, "mime_type": "application/pdf"}
content = [{"type": "text", "text": "What is this?"}, file]
agent = create_agent("anthropic:claude-sonnet-5")
result = agent.invoke({"messages": [{"role": "user", "content": content}]})
print(result["messages"][-1].text)
print("JVBERi0xLjc=" in str(server.bodies[0]))
