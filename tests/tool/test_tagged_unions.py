"""What the schema shown for a tagged union accepts, validation accepts."""

from __future__ import annotations

import itertools
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, Field

from agentkit import Agent, ToolCall, ToolRegistry
from agentkit.testing import ScriptedModel


class File(BaseModel):
    kind: Literal["file"] = "file"
    path: str = "a"


class Link(BaseModel):
    kind: Literal["link"]
    url: str = "u"


class Aliased(BaseModel):
    kind: Literal["x", "y"] = Field("x", alias="Kind")


class Other(BaseModel):
    kind: Literal["o"] = Field("o", alias="Kind")


Tagged = Annotated[File | Link, Field(discriminator="kind")]
Named = Annotated[Aliased | Other, Field(discriminator="kind")]


def one(source: Tagged) -> str:
    return repr(source)


def maybe(source: Tagged | None = None) -> str:
    return repr(source)


def many(source: list[Tagged]) -> str:
    return repr(source)


def keyed(source: dict[str, Tagged]) -> str:
    return repr(source)


def named(source: Named) -> str:
    return repr(source)


TAGS: list[dict[str, Any]] = [{}, *({k: v} for k in ("kind", "Kind") for v in ("file", "link", "x", "o", None))]
MEMBERS: list[Any] = [{**tag, **rest} for tag, rest in itertools.product(TAGS, [{}, {"path": "p"}, {"url": "u"}])]
VALUES: list[Any] = [None, *MEMBERS, *([m] for m in MEMBERS), *({"k": m} for m in MEMBERS)]


@pytest.mark.parametrize("function", [one, maybe, many, keyed, named])
def test_validation_accepts_what_the_shown_schema_accepts(function: Any) -> None:
    registry = ToolRegistry(function)
    shown = jsonschema.Draft202012Validator(registry.get_openapi_schemas("chat")[0]["function"]["parameters"])
    accepted = [value for value in VALUES if shown.is_valid({"source": value})]
    assert accepted
    for value in accepted:
        model = ScriptedModel([ToolCall("", function.__name__, {"source": value}), "ok"])
        answer: Any = Agent(model, [function]).run_sync("x").messages[2]
        assert answer.error is None, (value, answer.text)


@pytest.mark.parametrize("reply", ['{"path": "a"}', '{"kind": "file"}'])
def test_an_output_needs_its_tag(reply: str) -> None:
    result = Agent(ScriptedModel([reply, '{"kind": "file"}']), output_type=Tagged).run_sync("x")  # type: ignore[arg-type]
    assert (result.output, result.turns) == (File(), 1 + ("kind" not in reply))
