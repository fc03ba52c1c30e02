# by hand: a `Model` around two others
import openai
from agents import Agent, Model, OpenAIProvider, Runner
from local_server import LocalServer

LocalServer("Hello!", failing={"gpt-5": 529, "gpt-3": 401})


class FirstOf(Model):
    def __init__(self, *names: str):
        self.models = [OpenAIProvider().get_model(name) for name in names]

    async def get_response(self, *args, **kwargs):
        for model in self.models:
            try:
                return await model.get_response(*args, **kwargs)
            except (openai.RateLimitError, openai.InternalServerError, openai.APIConnectionError) as error:
                failed = error
        raise failed

    async def stream_response(self, *args, **kwargs):
        for model in self.models:
            shown = False
            try:
                async for event in model.stream_response(*args, **kwargs):
                    shown = True
                    yield event
                return
            except (openai.RateLimitError, openai.InternalServerError, openai.APIConnectionError) as error:
                if shown:
                    raise
                failed = error
        raise failed


print(Runner.run_sync(Agent("a", model=FirstOf("gpt-5", "gpt-4")), "Hi").final_output)
try:
    Runner.run_sync(Agent("a", model=FirstOf("gpt-3", "gpt-4")), "Hi")
except openai.AuthenticationError:
    print("authentication")
