# `JsonOutputParser()` on the model, without an agent
from langchain.chat_models import init_chat_model
from langchain_core.output_parsers import JsonOutputParser
from pydantic import BaseModel
from local_server import LocalServer

LocalServer('{"name": "Ulm on the Danube", "people": 128000}')


class City(BaseModel):
    name: str
    people: int


chain = init_chat_model("openai:gpt-5") | JsonOutputParser(pydantic_object=City)
seen = list(chain.stream("Where?"))
print("before the end:", len(seen) > 1)
print({city["people"] for city in seen if "people" in city})
