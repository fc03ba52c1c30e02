# `BinaryContent(…)`
from pydantic_ai import Agent, BinaryContent
from local_server import LocalServer

server = LocalServer("A talk.")
talk = BinaryContent(b"ID3", media_type="audio/mpeg")
try:
    print(Agent("anthropic:claude-sonnet-5").run_sync(["Sum up.", talk]).output)
except Exception as error:
    print("refused", "audio" in str(error), len(server.bodies))
