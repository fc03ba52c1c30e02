# `{"type": "input_file", …}`, to OpenAI
import base64
from pathlib import Path

from agents import Agent, Runner
from local_server import LocalServer

server = LocalServer("A report.")
Path("report.pdf").write_bytes(b"%PDF-1.7")
data = base64.b64encode(Path("report.pdf").read_bytes()).decode()
file = {"type": "input_file", "filename": "report.pdf", "file_data": f"data:application/pdf;base64,{data}"}
content = [{"type": "input_text", "text": "What is this?"}, file]
print(Runner.run_sync(Agent("a", model="gpt-5"), [{"role": "user", "content": content}]).final_output)
print("JVBERi0xLjc=" in str(server.bodies[0]))
