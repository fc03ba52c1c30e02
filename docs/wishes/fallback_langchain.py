# `a.with_fallbacks([b], exceptions_to_handle=…)`
import openai
from langchain.chat_models import init_chat_model
from local_server import LocalServer

LocalServer("Hello!", failing={"gpt-5": 529, "gpt-3": 401})
temporary = (openai.RateLimitError, openai.InternalServerError, openai.APIConnectionError)
backup = init_chat_model("openai:gpt-4")
first = init_chat_model("openai:gpt-5").with_fallbacks([backup], exceptions_to_handle=temporary)
print(first.invoke("Hi").text)
first = init_chat_model("openai:gpt-3").with_fallbacks([backup], exceptions_to_handle=temporary)
try:
    first.invoke("Hi")
except openai.AuthenticationError:
    print("authentication")
