"""A model's options: declared once, and whatever tells of them tells of all."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from typing import Annotated, Any, get_origin

import pytest

from agentkit import ConfigError, model
from agentkit.models.base import ClosableModel
from agentkit.models.model_options import ModelOptions, ModelSettings

UNBOUND = {"api_key", "headers", "http_client", "sleep", "dice", "name", "format"}
"""Secrets, which no message may show, and what is looked at where it is used."""


def test_the_signature_is_that_of_the_options() -> None:
    found, declared = inspect.signature(model), inspect.signature(ModelOptions)
    assert [(p.name, p.kind, p.default) for p in found.parameters.values()] == [
        (p.name, p.kind, p.default) for p in declared.parameters.values()
    ]
    assert found.parameters["timeout"].annotation is float
    assert found.return_annotation == ClosableModel.__name__


def test_each_option_is_described() -> None:
    for options in (ModelSettings, ModelOptions):
        described = re.findall(r"^    (\w+): ", inspect.getdoc(options) or "", re.MULTILINE)
        own = list(inspect.get_annotations(options))
        assert [name for name in described if name != "ConfigError"] == own
        assert all(f"\n    {name}: " in (model.__doc__ or "") for name in own)


def test_each_option_has_a_bound_or_a_reason_to_have_none() -> None:
    assert {one.name for one in fields(ModelOptions) if get_origin(one.type) is not Annotated} == UNBOUND


@pytest.mark.parametrize("name", sorted({one.name for one in fields(ModelOptions)} - UNBOUND))
def test_each_bound_is_held(name: str) -> None:
    wrong: Any = object()
    with pytest.raises(ConfigError, match=rf"model\({name}=<object object"):
        model("openai:x", api_key="k", **{name: wrong})


def test_what_stands_for_nothing_further() -> None:
    assert model("openai:x", api_key="k", extra=None, headers=None).name == "openai:x"
