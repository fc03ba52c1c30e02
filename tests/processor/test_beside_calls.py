"""What is directly before or after a call that counts is judged by itself: an example stays one, and a call counts."""

from __future__ import annotations

import pytest
from recovering import ADD, BARE, CALLS, COMPACT, FENCED, HERMES, MISTRAL, PYTHONIC, stays, told

from agentkit import formats

ONE = [("add", 1, 2)]
NAMES = [f.name for f in formats.auto() if f.name not in FENCED]
BARE_ONES = {"llama3_json", "xlam", "xlam1", "glm4", "pythonic", "python"}
OTHER = BARE.replace("1", "3")


def rendered(name: str, *, calls: int = 1) -> str:
    return formats.render_calls(name, CALLS[:calls], ADD).strip()


@pytest.mark.parametrize("name", NAMES)
def test_a_call_in_the_same_section_counts_whatever_is_said_after_it(name: str) -> None:
    if name not in BARE_ONES:
        assert told(f"{rendered(name, calls=2)}\nNow I wait.").made == [*ONE, ("add", 3, 4)]


@pytest.mark.share(12)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "example",
    [
        f"> {HERMES}\n\n",
        f"Like so:\n\n    {COMPACT}\n\n",
        f"For example:\n\n```json\n{BARE}\n```\n",
        "You could write add(a=1, b=2)\n",
    ],
)
def test_a_call_in_the_line_after_an_example_counts(name: str, example: str) -> None:
    if name not in BARE_ONES:
        ran = told(example + rendered(name))
        assert (ran.made, ran.text.rstrip()) == (ONE, example.rstrip())  # what is between them may belong to either


@pytest.mark.parametrize("example", [f"> {HERMES}", f"    {COMPACT}", f"```\n{HERMES}\n```", f"`{COMPACT}`"])
@pytest.mark.parametrize("call", [BARE, PYTHONIC, "add(a=1, b=2)"])
def test_a_bare_call_counts_after_an_example_and_an_empty_line(call: str, example: str) -> None:
    for gap in ("\n\n", "\n\n\n"):
        ran = told(f"He wrote:\n\n{example}{gap}{call}")
        assert (ran.made, ran.text.rstrip()) == (ONE, f"He wrote:\n\n{example}")
        stays(f"He wrote:\n\n{example}{gap}{call}\n\nThat is all.")


@pytest.mark.parametrize("call", [HERMES, MISTRAL, PYTHONIC, BARE])
def test_after_an_example_in_quotation_marks_none_counts(call: str) -> None:
    stays(f'You write "{HERMES}{call}')
    stays(f'You write "{HERMES}\n{call}')


@pytest.mark.share(6)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("gap", ["\n", " ", "\n\n", ", "])
def test_two_calls_in_one_pair_of_quotation_marks_stay_text(name: str, gap: str) -> None:
    """Whatever closes the section of the first one is not said: the second is in the quotation, too."""
    if name == "phi4_mini_json" and "\n" in gap:
        return  # its opening counts only where a line begins: the first is prose, and the second not on the mark's line
    for opening, closing in ("“”", "«»"):
        stays(f"The page says {opening}{rendered(name)}{gap}{rendered(name)}{closing} and so on.")
