# `FilePart(…)`
from agentkit import Agent, ConfigError, FilePart
from local_server import LocalServer

server = LocalServer("A talk.")
talk = FilePart(b"ID3", media_type="audio/mpeg")
try:
    print(Agent("anthropic:claude-sonnet-5").run_sync(["Sum up.", talk]).text)
except ConfigError as error:
    print("refused", "audio" in str(error), len(server.bodies))
