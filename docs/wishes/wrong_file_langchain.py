# `{"type": "audio", …}`
import base64

from langchain.agents import create_agent
from local_server import LocalServer

server = LocalServer("A talk.")
file = {"type": "audio", "base64": base64.b64encode(b"ID3").decode(), "mime_type": "audio/mpeg"}
content = [{"type": "text", "text": "Sum up."}, file]
agent = create_agent("anthropic:claude-sonnet-5")
try:
    print(agent.invoke({"messages": [{"role": "user", "content": content}]})["messages"][-1].text)
except Exception as error:
    print("refused", "audio" in str(error), len(server.bodies))
