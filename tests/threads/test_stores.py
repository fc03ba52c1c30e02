"""What every store must do, on both of ours."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentkit.errors import ConfigError, StoreError
from agentkit.testing import STORE_CHECKS, StoreCheck
from agentkit.threads.sql.encoding import decode, encode
from agentkit.threads.sql.postgres import PostgresStore
from agentkit.threads.sql.sqlite import SQLiteStore
from agentkit.threads.store import Append, Move, NewCall, Store
from agentkit.threads.store_url import open_store


def nested(levels: int) -> list[object]:
    """A list in a list, and so on."""
    value: list[object] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.share(4)
@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
def test_check(check: StoreCheck, new_store: Callable[..., Store]) -> None:
    asyncio.run(check(new_store()))


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
def test_check_in_memory(check: StoreCheck) -> None:
    asyncio.run(check(SQLiteStore(":memory:")))


def test_one_store_serves_several_event_loops(new_store: Callable[..., Store]) -> None:
    store = new_store()
    asyncio.run(store.create("t"))
    assert asyncio.run(store.commit("t", [Append({"text": "a"})])) == (0,)
    assert len(asyncio.run(store.load("t")).entries) == 1
    asyncio.run(store.aclose())


def test_statements_are_reported_before_and_after(new_store: Callable[..., Store]) -> None:
    said: list[tuple[str, str]] = []
    store = new_store(on_statement=lambda moment, sql: said.append((moment, sql.split()[0])))

    async def run() -> None:
        await store.create("t")
        said.clear()
        await store.commit("t", [Append({"text": "a"})])
        await store.aclose()

    asyncio.run(run())
    words = [word for _, word in said if word not in ("SAVEPOINT", "RELEASE")]
    assert words == [w for word in ("BEGIN", "SELECT", "INSERT", "UPDATE", "COMMIT") for w in (word, word)]
    assert [moment for moment, _ in said] == ["before", "after"] * (len(said) // 2)


def test_an_answer_is_final() -> None:
    with pytest.raises(ValueError, match=r"expect=\('answered',\): an answer is final"):
        Move(0, 0, "planned", expect=("answered",))


@pytest.mark.parametrize("make", [lambda **a: NewCall("c", {}, **a), lambda status, **a: Move(0, 0, status, (), **a)])
def test_an_answer_goes_with_answered_and_always_then(make: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match="'answered' requires one"):
        make(status="answered")
    with pytest.raises(ValueError, match="others have none"):
        make(status="planned", answer={})


def test_a_place_in_one_word(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    for where in (file, str(file), f"sqlite:///{file}"):
        store = open_store(where)
        assert isinstance(store, SQLiteStore)
        assert store.name == str(file)
        assert open_store(store) is store


def test_a_place_in_postgres_does_not_show_its_password() -> None:
    pytest.importorskip("asyncpg")
    store = open_store("postgresql://me:secret@db.example:5432/app")
    assert isinstance(store, PostgresStore)
    assert repr(store) == "PostgresStore('postgresql://db.example:5432/app')"


@pytest.mark.parametrize(
    "where",
    [
        *("mysql://me:secret@host/db", "sqlite://", "sqlite://file.db"),
        *("host=h password=secret dbname=x", "password = secret", "user=me\npassword=secret"),
        *("postgresql:/me:secret@host/db", "postgres:/me:secret@host", "mysql:/me:secret@host/db"),
        *("postgresql:me:secret@host/db", "Postgres:me:se/cret@host", " postgresql+asyncpg:me:secret@host/db"),
        *("postgresql:secret", "mysql:me:secret@host/db", "me:secret@host/db", ":secret@host"),
    ],
)
def test_another_place_is_refused(where: str) -> None:
    with pytest.raises(ConfigError, match=r"thread store: expected a path, sqlite:///path or postgresql://") as e:
        open_store(where)
    assert "secret" not in str(e.value)


@pytest.mark.parametrize(
    "dsn",
    [
        *(
            "host=h password=secret dbname=x",
            "postgresql:/me:secret@host/db",
            "me:secret@host/db",
            "//me:secret@host/db",
        ),
        *("postgresql://me:12/secret@host/db", "postgresql://me@host/db@secret"),
    ],
)
def test_what_is_no_url_of_postgres_is_refused_unseen(dsn: str) -> None:
    pytest.importorskip("asyncpg")
    with pytest.raises(ConfigError, match="the PostgreSQL DSN is not a URL") as e:
        PostgresStore(dsn)
    assert "secret" not in str(e.value)


@pytest.mark.parametrize(
    "name", ["a=b.db", "C:/data/a.db", "ports=5.db", "notes: 2026.db", "me@home.db", "C:\\me@home.db", "a/b:c@d.db"]
)
def test_a_path_may_have_such_characters(name: str) -> None:
    assert isinstance(open_store(name), SQLiteStore)


def test_without_its_driver_postgres_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(ConfigError, match=r"pip install 'agentkit-calls\[postgres\]'"):
        open_store("postgresql://host/db")


@pytest.mark.parametrize("schema", ["", "a b", 'a"; DROP TABLE x', "Ä", "1a", None, 5])
def test_a_schema_is_a_plain_name(schema: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"PostgresStore\(schema=.*\): expected a name of at most 63 lowercase letters, digits and _"
    ):
        PostgresStore("postgresql://host/db", schema=schema)


@pytest.mark.parametrize("given", [{"dsn": 5}, {"connections": 0}, {"timeout": "long"}, {"on_statement": "print"}])
def test_other_wrong_settings_are_named(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"PostgresStore\({next(iter(given))}="):
        PostgresStore(**{"dsn": "postgresql://host/db"} | given)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"a": [1, {"b": float("nan")}]}, "cannot store body['a'][1]['b'] = nan"),
        ({"a": (1, {2})}, "cannot store body['a'][1]: set is not a JSON value"),
        ({"a": 10**5000}, "cannot store body: Exceeds the limit (4300 digits)"),
        ({"a": nested(399)}, None),
        ({"a": nested(400)}, "nested deeper than 400 levels"),
        ({"a": nested(900)}, "nested deeper than 400 levels"),
        ({"a": nested(100_000)}, "nested deeper than 400 levels"),
        ({"a": ["[{" * 1000]}, None),
    ],
    ids=["nan", "set", "digits", "deep", "deeper", "very deep", "deepest", "brackets in a string"],
)
def test_what_json_cannot_hold_is_refused_with_its_place(body: dict[str, object], said: str | None) -> None:
    if said is None:
        assert decode(encode(body, "body")) == body
        return
    with pytest.raises(StoreError) as e:
        encode(body, "body")
    assert said in str(e.value)


def test_a_circle_is_refused() -> None:
    circle: dict[str, object] = {}
    circle["a"] = [circle, circle]
    with pytest.raises(StoreError, match="cannot store body"):
        encode(circle, "body")
