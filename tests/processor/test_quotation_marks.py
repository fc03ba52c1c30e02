"""A call in quotation marks of any kind stays text, however the marks are written; marks hide no other call."""

# ruff: noqa: RUF001 - the quotation marks of many languages

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recovering import ADD, HERMES, INVOKE, MISTRAL, stays, told

from agentkit import formats
from agentkit.messages import ToolCall
from agentkit.processor.quotation import CLOSES, MARKS

ONE = [("add", 1, 2)]
CALL = [ToolCall("c1", "add", {"a": 1, "b": 2})]
FORMATS = [f.name for f in formats.auto()]
BARE_ONES = {"llama3_json", "xlam", "xlam1", "glm4", "pythonic", "python"}  # text behind them makes them text anyway
QUOTATION_MARK = [  # the characters with this property in PropList.txt of Unicode 16
    *"\"'«»‘’‚‛“”„‟‹›⹂「」『』〝〞〟﹁﹂﹃﹄＂＇｢｣",
]  # fmt: skip
ENTITIES = [
    ("&quot;", "&quot;"), ("&#34;", "&#34;"), ("&#x22;", "&#X0022;"), ("&apos;", "&#39;"), ("&ldquo;", "&rdquo;"),
    ("&OpenCurlyDoubleQuote;", "&CloseCurlyDoubleQuote;"), ("&lsquo;", "&rsquo;"), ("&bdquo;", "&ldquo;"),
    ("&laquo;", "&raquo;"), ("&lsaquo;", "&rsaquo;"), ("&#8220;", "&#8221;"), ("\\\"", "\\\""),
]  # fmt: skip
PAIRS = [(opening, closing) for opening, closings in CLOSES.items() for closing in closings] + ENTITIES
TOUCHING = ["%s", " %s ", "\u202f%s\u00a0", "\n%s\n", "\n%s", " %s\n", "\n\n%s\n\n"]
AROUND = [("You would write ", " is the syntax."), ("Der Aufruf ist ", "."), ("", ""), ("So:\n", "\n\nAnything else?")]
ELEMENTS = ["q", "blockquote", "samp", "kbd", "tt", "xmp", "var", "cite", "BLOCKQUOTE", "code", "pre"]


def rendered(name: str) -> str:
    return formats.render_calls(name, CALL, ADD).strip()


def test_every_quotation_mark_of_unicode_is_one() -> None:
    initial_and_final = {chr(n) for n in range(0x110000) if unicodedata.category(chr(n)) in ("Pi", "Pf")}
    assert {*QUOTATION_MARK, *initial_and_final} <= MARKS


@pytest.mark.share(24)
@pytest.mark.parametrize("name", FORMATS)
def test_a_call_in_quotation_marks_stays_text(name: str) -> None:
    """An eighth of the pairs for each format; all of them for `hermes`."""
    place = FORMATS.index(name)
    for n, (opening, closing) in enumerate(PAIRS):
        if name != "hermes" and (n + place) % 8:
            continue
        before, after = AROUND[(n + place) % len(AROUND)]
        for touching in TOUCHING:
            stays(f"{before}{opening}{touching % rendered(name)}{closing}{after}")


@pytest.mark.share(48)
@pytest.mark.parametrize("name", [name for name in FORMATS if name not in BARE_ONES])
def test_a_call_in_an_element_that_shows_or_quotes_stays_text(name: str) -> None:
    """Two of the elements for each format; all of them for `hermes`."""
    place = FORMATS.index(name)
    for n, element in enumerate(ELEMENTS):
        if name == "hermes" or (n + place) % 6 == 0:
            stays(f"You would write <{element}>{rendered(name)}</{element}> here.")
            assert told(f"He wrote <{element} class='x'>so</{element}>.\n{rendered(name)}").made == ONE


@pytest.mark.share(24)
@pytest.mark.parametrize(("opening", "closing"), PAIRS)
def test_a_call_after_a_closed_quotation_is_made(opening: str, closing: str) -> None:
    said = f"He wrote {opening}good{closing}, and {opening}fine{closing} so"
    for call in (HERMES, INVOKE):
        for gap in (" ", "\n", "\n\n", ": "):
            assert told(f"{said}{gap}{call}").made == ONE, gap
            if opening == "``":
                continue  # what is between two of them is a code span
            assert told(f"{said}{gap}{call}\nHe wrote {opening}good{closing}.").made == ONE, gap
            assert told(f"{said}.{gap}{call} He wrote {opening}good{closing}.").made == ONE, gap
            assert told(f"He wrote {opening}good{closing}{gap}{call} {opening}fine{closing}").made == ONE, gap


@pytest.mark.share(12)
@pytest.mark.parametrize("opening", sorted(CLOSES.keys() - {"``"}))
def test_a_mark_that_no_other_closes_hides_no_call_in_a_later_line(opening: str) -> None:
    assert told(f"A {opening} here\n{HERMES}").made == ONE
    assert told(f"A {opening} here\n{HERMES}\nso it is").made == ONE
    assert told(f"A {opening}\n{HERMES}\nso it is").made == ONE


@pytest.mark.parametrize(
    "line",
    [
        "I don’t think that’s Tom’s, or the dogs’, in the ’90s, rock ’n’ roll.",
        "צה״ל וארה״ב, ג׳ון",
        "Armenian ՚ apostrophe",
        "A 6\" pipe, 5' long, or 5″.",
        "1 << 2, a,, b, it''s, x = '' and y = \"\"",
        "l´ami et l´eau",
        "AT&T, R&D; &amp; &lt;b&gt; &nbsp; &#10; &#x110000; &;",
        "&" * 40 + "<" * 5 + "'" * 7,
    ],
)
def test_what_is_no_quotation_hides_no_call(line: str) -> None:
    for gap in ("\n", " ", "\n\n"):
        assert told(f"{line}{gap}{HERMES}").made == ONE
        assert told(f"{line}{gap}{HERMES} It’s so, don't worry.").made == ONE


SAID = [*CLOSES, *(closing for _, closing in PAIRS), "&quot;", "&", "#", ";", "\n", " ", "a", "s ", "1", ", "]


@given(st.lists(st.sampled_from([*SAID, "\n", " ", "a", HERMES, MISTRAL]), max_size=12).map("".join))
def test_what_counts_does_not_depend_on_the_pieces(text: str) -> None:
    told(text)
