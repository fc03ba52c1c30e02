# `{"type": "input_file", …}`, to OpenAI
import base64

from agents import Agent, Runner
from local_server import LocalServer

server = LocalServer("A talk.")
data = base64.b64encode(b"ID3").decode()
file = {"type": "input_file", "filename": "talk.mp3", "file_data": f"data:audio/mpeg;base64,{data}"}
content = [{"type": "input_text", "text": "Sum up."}, file]
try:
    print(Runner.run_sync(Agent("a", model="gpt-5"), [{"role": "user", "content": content}]).final_output)
except Exception as error:
    print("refused", "audio" in str(error), len(server.bodies))
