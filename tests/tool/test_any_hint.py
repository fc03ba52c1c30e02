"""Any type that Python or pydantic has: refused in words when the tool is registered, or a value reaches the method."""

# mypy: disable-error-code="type-arg, misc, no-untyped-call"

from __future__ import annotations

import array
import asyncio
import collections
import contextvars
import datetime
import decimal
import enum
import fractions
import functools
import io
import ipaddress
import numbers
import os
import pathlib
import random
import re
import string
import types
import typing
import uuid
import zoneinfo
from collections import abc
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import pydantic
import pytest
import typing_extensions
from pydantic import BaseModel, Field

from agentkit.errors import SchemaError
from agentkit.schemas.words import InvalidArguments
from agentkit.tool.registry import ToolRegistry

# ruff: noqa: ANN001, ANN202, UP006, UP045, PT017 (old forms of hints are tried, too)

T = TypeVar("T")


class Plain:
    pass


class Of(Generic[T]):
    pass


class Model(BaseModel, Generic[T]):
    v: T


class Flag(enum.IntFlag):
    A = 1


class Row(NamedTuple):
    a: int
    b: str = ""


class Quacks(typing.Protocol):
    def quack(self) -> None: ...


HINTS: list[Any] = [
    *(type, type[int], type[Any], type[int | str], typing.Type, typing.Type[Plain], int | type[int], list[type[int]]),
    *(typing.Callable, abc.Callable, abc.Callable[[int], int], list[abc.Callable]),
    *(re.Pattern, re.Pattern[str], re.Pattern[bytes], typing.Pattern, re.Match),
    *(
        pydantic.InstanceOf[int],
        pydantic.InstanceOf[Plain],
        pydantic.SkipValidation[int],
        pydantic.SkipValidation[Plain],
    ),
    *(abc.Generator, abc.Generator[int, None, None], typing.Generator, abc.AsyncGenerator[int, None]),
    *(abc.Iterator[int], abc.AsyncIterator[int], abc.Awaitable[int], abc.Coroutine, asyncio.Queue),
    *(abc.Iterable, abc.Iterable[int], typing.Iterable, abc.Collection[int], abc.Container[int], abc.Reversible[int]),
    *(abc.Sequence, abc.MutableSequence[int], abc.Set[int], abc.MutableSet[int], abc.KeysView[str], abc.Sized),
    *(abc.Mapping, abc.Mapping[str, int], abc.MutableMapping[str, int], abc.ItemsView[str, int], abc.Hashable),
    *(list, set, frozenset, frozenset[int], tuple, tuple[()], tuple[int, ...], tuple[int, str], dict, dict[int, str]),
    *(dict[bytes, int], dict[type, int], dict[float, int], dict[Any, int], dict[re.Pattern, int], dict[complex, int]),
    *(collections.deque[int], collections.OrderedDict[str, int], collections.Counter[str], collections.UserString),
    *(collections.defaultdict[str, list[int]], collections.ChainMap[str, int], collections.UserDict, array.array),
    *(None, object, Any, bytes, bytearray, memoryview, complex, range, slice, numbers.Number, fractions.Fraction),
    *(decimal.Decimal, typing.SupportsInt, typing.AnyStr, typing.LiteralString, typing.NoReturn, typing.Never, T),
    *(datetime.datetime, datetime.tzinfo, datetime.timezone, zoneinfo.ZoneInfo, uuid.UUID, pydantic.AwareDatetime),
    *(pathlib.Path, pathlib.PurePath, os.PathLike, os.PathLike[str], os.PathLike[bytes], typing.IO, io.StringIO),
    *(ipaddress.IPv4Address, ipaddress.IPv6Network, pydantic.IPvAnyAddress, pydantic.AnyUrl, pydantic.PostgresDsn),
    *(pydantic.ByteSize, pydantic.SecretStr, pydantic.Secret[int], pydantic.Json, pydantic.Json[int]),
    *(pydantic.Base64Bytes, pydantic.Base64UrlStr, pydantic.FilePath, pydantic.DirectoryPath, pydantic.NewPath),
    *(enum.Enum, enum.Enum("Empty", []), Flag, Row, Of, Of[int], Model, Model[int], BaseModel, Quacks, Plain),
    *(
        Exception,
        types.ModuleType,
        types.FunctionType,
        types.SimpleNamespace,
        types.MappingProxyType,
        types.EllipsisType,
    ),
    *(functools.partial, property, super, random.Random, string.Template, contextvars.ContextVar),
    *(Literal[1], Literal[None], Literal[b"x"], Literal["a", b"x"], typing_extensions.TypeAliasType("Ints", list[int])),
    *(typing.ClassVar[int], typing.Final[int], typing.Required[int], typing.NotRequired[int], typing.Self),
    *(typing_extensions.ReadOnly[int], typing.ParamSpec("P"), typing.TypeVarTuple("Ts"), typing.Concatenate[int, ...]),
    *(list[typing.Self], typing.NewType("Id", int), typing.ForwardRef("int"), typing.Optional[typing.Optional[None]]),
    *(Annotated[int, Field(alias="z")], Annotated[int, Field(validation_alias=pydantic.AliasPath("z", 0))]),
    *(
        Annotated[int, Field(alias="x")],
        Annotated[int, Field(serialization_alias="z")],
        Annotated[int, Field(default=3)],
    ),
    *(Annotated[int, Field(exclude=True)], Annotated[int, Field(discriminator="kind")], Annotated[int, "words"]),
    *(Annotated[str, Field(pattern="(")], Annotated[Plain, pydantic.WithJsonSchema({"type": "string"})]),
]
SAMPLES: list[Any] = [
    *(
        None,
        True,
        1,
        1.5,
        "",
        "a",
        "x",
        "1",
        "1.5",
        "2024-01-31",
        "2024-01-31T12:00:00Z",
        "UTC",
        "::1",
        "::/8",
        "a://b",
    ),
    *("postgres://u:p@h/d", "YQ==", "/tmp", "/etc/passwd", "/no/such", "{}", str(uuid.UUID(int=5)), "127.0.0.1"),
    *([], [1], ["a"], [1, "a"], {}, {"a": 1}, {"a": "a"}, {"1": "a"}, {"a": [1]}, {"v": 1}, {"1": 1}),
]


@pytest.mark.parametrize("hint", HINTS, ids=lambda hint: str(hint)[:60])
def test_any_hint_is_refused_in_words_or_a_value_reaches_the_method(hint: Any) -> None:
    def f(x):  # type: ignore[no-untyped-def]
        return x

    f.__annotations__ = {"x": hint}
    try:
        bound = ToolRegistry().register_function(f)
    except SchemaError as e:
        assert str(e).startswith("f: parameter 'x' has type ")
        assert ", which " in str(e) or ", in which " in str(e) or ", whose " in str(e)
        return
    assert list(bound.spec.parameters["properties"]) == ["x"]
    reached = 0
    for value in SAMPLES:
        try:
            arguments = bound.validate({"x": value}, lenient=False)
        except InvalidArguments:
            continue
        f(**arguments)
        reached += 1
    assert reached
