"""`agentkit ui` as its user meets it: what it says, what the page's API answers, and the end."""

from __future__ import annotations

import shlex
import signal
import socket
import sys
import time
from pathlib import Path

import pytest
from command_line import FILES, Say, called, said
from replay_server import ReplayServer
from ui_kit import PageClient, calls_of
from ui_process import opened

SHOP = """
from agentkit import Agent
from agentkit.testing import ScriptedModel

agent = Agent(ScriptedModel(["We have apples."]), name="shop")
"""


def decide_all(page: PageClient, thread: str, *, approved: bool) -> None:
    for call in calls_of(page.settled(thread, "waiting")).values():
        if call["status"] == "waiting":
            page.decide(thread, call, approved=approved)


def test_the_demonstration(tmp_path: Path) -> None:
    with opened("--demo", folder=tmp_path) as (page, _):
        setup = page.ask("GET", "setup")
        thread = page.new()
        page.say(thread, setup["suggestions"][0])
        decide_all(page, thread, approved=True)
        decide_all(page, thread, approved=True)
        messages = page.settled(thread, "idle")
    assert (setup["agent"], setup["model"], setup["format"]) == ("demo", "demo", "native")
    assert [call["status"] for call in calls_of(messages).values()] == ["answered"] * 4
    assert messages[-1]["content"].startswith("Done: hello.py greets in French.")
    assert f"`agentkit ui --demo --store {setup['store']}`" in messages[-1]["content"]
    assert list(tmp_path.iterdir()) == [Path(setup["store"]).parent]


@pytest.mark.soak
def test_the_demonstration_returns_with_its_files(tmp_path: Path) -> None:
    with opened("--demo", "--store", "chats.db", folder=tmp_path) as (page, running):
        thread = page.new()
        page.say(thread, "Hello")
        decide_all(page, thread, approved=True)
        page.settled(thread, "waiting")
        assert running.stderr is not None
        running.stderr.readline()
        again = running.stderr.readline().partition(": ")[2]
    assert again == f"agentkit ui --demo --store {tmp_path}/chats.db\n"
    with opened(*shlex.split(again)[2:], folder=tmp_path) as (page, _):
        decide_all(page, thread, approved=True)
        answer = page.settled(thread, "idle")[-1]["content"]
    assert answer.startswith("Done: hello.py greets in French.")
    assert "Bonjour" in (tmp_path / "chats.db.files" / "hello.py").read_text()


@pytest.mark.soak
def test_the_demonstration_in_a_text_format(tmp_path: Path) -> None:
    with opened("--demo", folder=tmp_path) as (page, _):
        thread = page.new(format="xml")
        page.say(thread, "Hello")
        calls = calls_of(page.settled(thread, "waiting"))
        decide_all(page, thread, approved=False)
        answer = page.settled(thread, "idle")[-1]["content"]
    assert [call["raw"].partition(" ")[0] for call in calls.values()] == ["<create-file"] * 2
    assert answer.startswith("Not all of it was done")


@pytest.mark.soak
def test_models_to_choose_from(tmp_path: Path) -> None:
    """The thread is in the store that `agentkit threads` reads by default."""
    with (
        ReplayServer([said("It is one."), said("It is two.")]) as server,
        opened("-m", "openai:one", "-m", "openai:two", "--base-url", server.url, folder=tmp_path) as (page, _),
    ):
        choices = [choice["model"] for choice in page.ask("GET", "setup")["choices"]]
        thread = page.new()
        for model in choices:
            page.ask("PATCH", f"threads/{thread}", {"model": model})
            page.say(thread, "Which one is it?")
            text = page.settled(thread, "idle")[-1]["content"]
        asked = [request.body["model"] for request in server.requests]
    assert (choices, asked, text) == (["openai:one", "openai:two"], ["one", "two"], "It is two.")
    assert (tmp_path / "agentkit.db").exists()


@pytest.mark.soak
def test_every_call_waits(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Buy milk.")
    responses = [called("read_file", '{"file_path": "notes.txt"}'), said("Milk.")]
    with (
        ReplayServer(responses) as server,
        opened("-m", "openai:m", "--base-url", server.url, "-t", FILES, "--require-approval", folder=tmp_path) as (
            page,
            _,
        ),
    ):
        thread = page.new()
        page.say(thread, "What is in notes.txt?")
        decide_all(page, thread, approved=True)
        answer = page.settled(thread, "idle")[-1]["content"]
        suggestions = page.ask("GET", "setup")["suggestions"]
    assert answer == "Milk."
    assert suggestions == []


@pytest.mark.soak
def test_an_agent_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "shop_of_the_page.py").write_text(SHOP)
    with opened("--agent", "shop_of_the_page:agent", "--store", "chats.db", folder=tmp_path) as (page, running):
        thread = page.new()
        page.say(thread, "What is there?")
        answer = page.settled(thread, "idle")[-1]["content"]
        assert running.stderr is not None
        about = running.stderr.readline()
        setup = page.ask("GET", "setup")
    assert answer == "We have apples."
    assert about == f"  scripted, threads in {tmp_path}/chats.db\n"
    assert (setup["agent"], setup["store"]) == ("shop", f"{tmp_path}/chats.db")
    assert (tmp_path / "chats.db").exists()


def test_a_key_is_asked_for_and_never_printed(tmp_path: Path) -> None:
    options = "--demo", "--host", "0.0.0.0", "--allow-host", "page.test", "--key-env", "ada=PAGE_KEY"
    with opened(*options, folder=tmp_path, PAGE_KEY="secret-of-ada") as (page, running):
        port = page.url.rpartition(":")[2]
        page.http.base_url = f"http://127.0.0.1:{port}"
        page.ask("GET", "setup", status=401)
        page.http.headers["authorization"] = "Bearer secret-of-ada"
        assert page.ask("GET", "setup")["agent"] == "demo"
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert page.url == f"http://page.test:{port}"
    assert "secret-of-ada" not in out + err


@pytest.mark.soak
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once_while_a_page_is_open(tmp_path: Path, sent: signal.Signals) -> None:
    with opened("--demo", folder=tmp_path) as (page, running), page.follow(page.new()) as events:
        events.next()
        began = time.monotonic()
        running.send_signal(sent)
        out, err = running.communicate(timeout=60)
        assert time.monotonic() - began < 5
    assert "Traceback" not in out + err


def test_the_browser_is_opened(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\necho "$1" > {tmp_path}/address.new && mv {tmp_path}/address.new {tmp_path}/address\n'
    )
    browser.chmod(0o755)
    with opened("--demo", "--open", folder=tmp_path, BROWSER=f"{browser} %s") as (page, _):
        end = time.monotonic() + 60
        while not (tmp_path / "address").exists():
            assert time.monotonic() < end
            time.sleep(0.02)
    assert (tmp_path / "address").read_text().strip() == f"{page.url}/"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "no model and no agent given: pass --model openai:gpt-5, or --agent shop:agent for an Agent in shop.py; "),
        ("--agent shop:agent -m openai:gpt-5", "--agent has its own model and tools: leave --model out"),
        ("--agent no_such_file:agent", "--agent 'no_such_file:agent': module 'no_such_file' cannot be imported"),
        ("--agent json:dumps", "--agent json:dumps: expected an Agent"),
        ("--demo --system x --require-approval", "--demo has its own model and tools: leave --system and --require-"),
        ("--demo --agent shop:agent", "--demo has its own model and tools: leave --agent out"),
        ("-m gpt-5", "--model 'gpt-5': expected openai:NAME"),
        (
            "-m openai:gpt-5",
            "openai:gpt-5 needs an API key, but none was found: set the environment variable OPENAI_API_KEY",
        ),
        ("-m openai:gpt-5 --api-key-env NO_SUCH_KEY", "--api-key-env: the environment variable NO_SUCH_KEY is not set"),
        ("--demo --host 0.0.0.0", "--host: '0.0.0.0' can be reached from other machines, which could use your tools: "),
        (
            "--demo --host 0.0.0.0 --key-env me=K",
            "--host: '0.0.0.0' can be reached from other machines: list the names",
        ),
        (
            "--demo --key-env me=NO_SUCH_KEY",
            "the key of the client me: the environment variable NO_SUCH_KEY is not set",
        ),
    ],
)
def test_mistakes(words: str, message: str, say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("OPENAI_API_KEY", "AGENTKIT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    status, out, err = say("ui", *words.split())
    assert (status, out) == (2, "")
    assert err.startswith(f"agentkit ui: {message}")


def test_the_port_is_taken(say: Say, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        status, _, err = say("ui", "--demo", "--store", str(tmp_path / "chats.db"), "--port", str(port))
    assert status == 2
    assert err.startswith(f"agentkit ui: cannot listen at 127.0.0.1 port {port}: Address already in use")


def test_the_extra_is_missing(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("agentkit.gateway.gateway_")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    status, _, err = say("ui", "--demo")
    assert status == 2
    assert err.startswith("agentkit ui: the gateway needs uvicorn: pip install")


def test_the_environment_names_a_model(tmp_path: Path) -> None:
    with (
        ReplayServer([]) as server,
        opened(folder=tmp_path, AGENTKIT_MODEL="openai:m", AGENTKIT_BASE_URL=server.url) as (page, _),
    ):
        assert page.ask("GET", "setup")["model"] == "openai:m"


def test_a_model_object_keeps_its_format(tmp_path: Path) -> None:
    (tmp_path / "models_of_the_page.py").write_text(
        "from agentkit.testing import ScriptedModel\nsmall = ScriptedModel(['Hi.'], name='small', format='xml')\n"
    )
    with opened("-m", "models_of_the_page:small", folder=tmp_path) as (page, _):
        setup = page.ask("GET", "setup")
        thread = page.new()
        page.say(thread, "Hello")
        answer = page.settled(thread, "idle")[-1]["content"]
    assert (setup["model"], setup["format"], answer) == ("small", "xml", "Hi.")
