"""What is said to the program and not to the model: pure, and in a chat."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Say, said
from hypothesis import given
from hypothesis import strategies as st
from replay_server import ReplayServer

from agentkit.cli.slash_words import WORDS, SlashWord, as_message, slash_word, unknown


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ("/help", SlashWord("help", "", "help")),
        ("/", SlashWord("help", "", "")),
        ("/QUIT", SlashWord("exit", "", "QUIT")),
        ("exit", SlashWord("exit")),
        ("/model  openai:gpt-5 ", SlashWord("model", "openai:gpt-5", "model")),
        ("/modle x", SlashWord("", "x", "modle")),
        ("/etc/hosts is what?", None),
        ("//help", None),
        ("exit the loop", None),
        ("/help\nand more, pasted", None),
    ],
)
def test_a_word_for_the_program(message: str, word: SlashWord | None) -> None:
    assert slash_word(message) == word


@given(word=st.from_regex(r"/[a-z?-]{0,12}", fullmatch=True), rest=st.from_regex(r"( [^\n\r]{0,20})?", fullmatch=True))
def test_no_slash_word_is_a_message(word: str, rest: str) -> None:
    found = slash_word((word + rest).strip())
    assert found is not None
    assert found.name in {*WORDS, ""}


def test_an_unknown_word_is_answered_with_the_nearest() -> None:
    assert unknown("modle") == "there is no /modle; did you mean '/model'? Nothing was sent; //modle sends it"
    assert unknown("xyzzy") == "there is no /xyzzy, /help lists the others. Nothing was sent; //xyzzy sends it"
    assert as_message("//modle x") == "/modle x"


def test_words_are_done_and_not_sent(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a chat whose input is a pipe, so that all but the answers is on standard error."""
    (tmp_path / "adder_of_words_test.py").write_text("def plus(a: int) -> int:\n    'Add one.'\n    return a + 1\n")
    monkeypatch.chdir(tmp_path)
    typed = [
        *(
            "/halp",
            "/help",
            "/tools",
            "/tools plus",
            "/tools add",
            "/model",
            "/format hermse",
            "/format hermes",
            "/approve never",
        ),
        *("/approve sometimes", "/thread", "/model nope", "/modle", "/model openai:other", "Hi", "/exit", "never read"),
    ]
    with ReplayServer([said("Yes.")]) as server:
        status, out, err = say(
            *("chat", "--model", "openai:m", "--base-url", server.url, "--tools", "adder_of_words_test:plus"),
            stdin="\n".join(typed),
        )
    assert (status, out) == (0, "Yes.\n")
    assert [request.body["model"] for request in server.requests] == ["other"]
    assert err.splitlines()[0].endswith(" · openai:m · 1 tool · /help")
    told = [line for line in err.splitlines()[1:] if not line.startswith(("/", " ", "Esc", "or \\ and"))]
    expected = [
        "there is no /halp; did you mean '/help'? Nothing was sent; //halp sends it",
        "each line of standard input is one message; ",
        "plus  Add one.",
        "Add one.",
        "error: there is no tool 'add'; /tools lists them",
        "openai:m, native calls",
        "error: no format is called 'hermse'; did you mean 'hermes'?",
        "openai:m, calls in hermes",
        "calls that wait for approval: never",
        "error: /approve sometimes; write ask, always or never",
        "in memory only; /thread NAME keeps it",
        "error: --model 'nope': expected openai:NAME, ",
        "there is no /modle; did you mean '/model'? Nothing was sent; //modle sends it",
        "openai:other, calls in hermes",
    ]
    assert [line[: len(start)] for line, start in zip(told, expected, strict=True)] == expected
