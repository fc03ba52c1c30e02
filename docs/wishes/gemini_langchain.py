# `langchain-google-genai`
import os

from langchain.agents import create_agent
from langchain_google_genai import ChatGoogleGenerativeAI
from local_server import LocalServer

server = LocalServer(("add", {"a": 1, "b": 2}), "It is 3.")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


model = ChatGoogleGenerativeAI(model="gemini-3.5-flash", base_url=os.environ["GOOGLE_GEMINI_BASE_URL"])
print(create_agent(model, [add]).invoke({"messages": "1 + 2?"})["messages"][-1].text)
print("c2lnbmVk" in str(server.bodies[1]))
