"""However a text is cut, its events are the same: also in formats that nobody wrote, with damaged calls.

`AGENTKIT_DECLARATIONS` asks for another number of declarations, `AGENTKIT_FUZZ_SEED` for other ones.
"""

from __future__ import annotations

import os

import declarations
import pytest

from agentkit.formats import Format, get
from agentkit.formats.format import (
    CallId,
    CountedName,
    FormatPart,
    Json,
    Name,
    NameTag,
    NestedTags,
    Pairs,
    PythonCall,
    Section,
    TagParameters,
)

SEED = int(os.environ.get("AGENTKIT_FUZZ_SEED", "0")) * 1_000_000
DECLARED = int(os.environ.get("AGENTKIT_DECLARATIONS", "220"))


def hold(seeds: range) -> None:
    """No text of these seeds is read in two ways."""
    for seed in seeds:
        for format, text, differs in declarations.faults(seed):
            assert not differs, f"seed {seed}: {declarations.told(format, text)}"


@pytest.mark.share(4)
@pytest.mark.parametrize("share", range(4))
def test_texts_of_drawn_declarations_are_read_the_same_in_any_cutting(share: int) -> None:
    hold(range(SEED + share * DECLARED // 4, SEED + (share + 1) * DECLARED // 4))


@pytest.mark.soak
@pytest.mark.parametrize("share", range(10))
def test_many_texts_of_drawn_declarations_are_read_the_same_in_any_cutting(share: int) -> None:
    hold(range(SEED + 100_000 + share * 800, SEED + 100_000 + (share + 1) * 800))


def test_the_texts_are_damaged_calls_of_every_kind_of_part() -> None:
    met = {type(part) for n in range(400) if (f := declarations.Draw(n).declared()) for part in f.call}
    assert {*map(type, (Name(), CallId(), Json(), PythonCall(), NameTag("a", "b"), NestedTags("@")))} <= met
    drawn = declarations.Draw(5)
    mine = Format("mine", ("<call>", Name(), ":", Json(), "</call>"))
    texts = [text for _ in range(20) for text in drawn.texts(mine)]
    assert sum('<call>move:{"src"' in text for text in texts) > 20
    assert sum(not text.startswith("<call>") for text in texts) > 20


E1 = '<run tool="move"><t><src>say "hi</run>'


@pytest.mark.parametrize(
    ("call", "section", "text"),
    [
        (("<tool_call>", PythonCall(), "</tool_call>"), None, "I call.\n\n<ool_call>move(src='a')</tool_call>\n"),
        (("<tool_call>", PythonCall(), "</tool_call>"), None, "<tool_cal>move(src='a'"),
        (("<|tool|>", PythonCall(), "<|/tool|>"), None, "<|too|>move(src='a)')<|/tool|>"),
        (("[TOOL]", PythonCall()), None, "[TOL]ping("),
        (("TOOL ", PythonCall(), "END"), None, "TOOL ping)END"),
        ((NameTag("run", "tool"), NestedTags("<t>"), "</run>"), None, E1),
        ((NameTag("run", "tool"), NestedTags("<t>"), "</run>"), None, '<run tool="move"><t><src>a > b</run>'),
        (("[TOOL]", Name(), "=", NestedTags("]<]x[>["), "]]"), None, "[TOOL]move=]<]x[>[<src>>]]"),
        ((NameTag("do", "tool"), NestedTags("<t>"), "</do>"), Section("~>", "\n"), '<do tool="e"><t><c></do>'),
        ((NameTag("run", "tool"), TagParameters("p", "k"), "<end>"), Section("@@", "END"), "<run tool<end>"),
        (("TOOL ", CallId(), "<sep>", Name(), "]", Json(), ">>"), None, "TOOLTOOL<sep>move]{}>>"),
        (("TOOL ", CountedName(), "<sep>", Json(), ">>"), None, "TOOLTOOLping:0<sep>{}>>"),
        (("\n@", Name(), "\n\n", Pairs("<k>", "</k><v>", "</v>", "none"), "@@end"), None, "<k>s</k><v></v>@@end"),
        (("<a>", Name(), "=", NestedTags("]<]x[>["), ")"), None, "]<]x[>[<src>"),
        (("<a>", Name(), "=", Pairs("```tool\n", "]]", "@@", "start"), ")"), None, "```tool\nsrc]]"),
        ((NameTag("do", "tool"), Pairs("arg ", ">", "</p>", "start"), "<end>"), None, '<do tool="e"><e'),
        (("```tool\n", Name(), "=", NestedTags("@"), "\n```"), None, "```toolmove=@<m>```tool"),
    ],
)
def test_what_was_read_in_two_ways(call: tuple[FormatPart, ...], section: Section | None, text: str) -> None:
    format = Format("mine", call, section)
    assert declarations.differing(format, text, declarations.every_single(text)) is None


BEGIN, END = "<｜tool_call_begin｜>function<｜tool_sep｜>", "</steptml:parameter></steptml:invoke>"
STEP = '<steptml:invoke name="move"><steptml:parameter name="src">'
QUOTED = f"{BEGIN}{STEP}a{END}<｜tool_call_end｜>"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pythonic", "x=[]), ping()]"),
        ("pythonic", "ping()d=="),
        ("deepseek_v41", "<｜DSML｜ invoke\n<｜DSML｜ invoke name="),
        ("seed_oss", '<function=move"'),
        ("llama4_pythonic", "<|python_start|>ping'"),
        ("hermes", "<|TOOL|>ping"),
        ("step3", f"{BEGIN}{STEP}{STEP}{BEGIN}{QUOTED}{QUOTED}{END}o"),
        ("harmony", '<||>commentary to=functions.ping"<|message|>'),
        ("harmony", "<|c|>commentary to=functions.ping a b c d<|message|>{}"),
    ],
)
def test_what_was_read_in_two_ways_in_the_catalogue(name: str, text: str) -> None:
    assert declarations.differing(get(name), text, declarations.every_single(text)) is None
