"""The tasks of `fit`, and how they are judged."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agentkit import ToolRegistry
from agentkit.fit.calling_modes import DEFAULT, modes_for, own_formats
from agentkit.fit.own_tasks import own_tasks
from agentkit.fit.plain_tasks import TASKS, FitTask, MadeCall, Storeroom
from agentkit.formats import render_prompt

TASK = FitTask("t", "?", (("count_stock", {"part": "0042"}),), (r"\b811\b",))
RIGHT: MadeCall = ("count_stock", {"part": "0042"})


def test_there_are_twelve_of_them() -> None:
    assert len({task.name for task in TASKS}) == 12


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_each_can_be_done(task: FitTask) -> None:
    """With its own calls, and what the tools answer."""
    room = Storeroom()
    tools = ToolRegistry(room).tools
    twice = [call for call in task.calls for _ in range(2 if call[0] == "open_box" else 1)]  # the lid jams once
    said = [str(tools[name].method(**tools[name].validate(given, lenient=False))) for name, given in twice]
    assert task.mistake(room.ran, " ".join([*said, *_names(task)])) == ""


def _names(task: FitTask) -> Sequence[str]:
    """What an answer says that no tool does."""
    return ["Paris", "C-977"] if task.name in ("no tool needed", "comparison") else []


@pytest.mark.parametrize(
    ("ran", "answer", "mistake"),
    [
        ([RIGHT], "There are 811.", ""),
        ([RIGHT, RIGHT], "811", ""),
        ([RIGHT], "There are 42.", "the answer does not say 811: 'There are 42.'"),
        ([RIGHT], "There are 8110.", "the answer does not say 811: 'There are 8110.'"),
        ([], "811", "no call count_stock(part='0042')"),
        (
            [("count_stock", {"part": "42"})],
            "811",
            "no call count_stock(part='0042'), but count_stock(part='42')",
        ),
        (
            [RIGHT, ("set_lamp", {"room": "hall", "percent": 1})],
            "811",
            "nobody asked for set_lamp(room='hall', percent=1)",
        ),
        ([RIGHT, ("find_part", {"name": "x"})], "811", ""),
    ],
)
def test_a_judgement(ran: list[MadeCall], answer: str, mistake: str) -> None:
    assert TASK.mistake(ran, answer) == mistake


def test_a_call_where_none_is_needed_is_a_mistake() -> None:
    task = FitTask("t", "?", (), ("Paris",))
    assert task.mistake([("find_part", {"name": "Paris"})], "Paris") == "nobody asked for find_part(name='Paris')"


def test_a_task_for_each_of_the_users_tools() -> None:
    def greet(name: str, times: int, loud: bool = False) -> str:
        """Greet."""
        return name * times

    (task,) = own_tasks(ToolRegistry(greet))
    assert task.prompt == 'Call the tool greet with name="my name", times=1.'
    assert task.calls == (("greet", {"name": "my name", "times": 1}),)


@pytest.mark.parametrize(
    ("model", "formats"),
    [
        ("Qwen/Qwen2.5-Coder-1.5B-Instruct", ("hermes",)),
        ("qwen3-coder:30b", ("qwen3_coder", "hermes")),
        ("Llama-3.2-3B-Instruct", ("llama3_json", "pythonic")),
        ("zai-org/GLM-4.5-Air", ("glm45",)),
        ("smollm2", ()),
    ],
)
def test_the_formats_of_a_models_family(model: str, formats: tuple[str, ...]) -> None:
    assert own_formats(model) == formats


def test_the_modes_that_are_tried() -> None:
    assert list(map(str, modes_for("smollm2", grammars=False))) == [*DEFAULT, "native"]
    assert list(map(str, modes_for("glm-4.5", grammars=True))) == [
        *("glm45+c", "xml+c", "hermes+c", "invoke+c", "qwen3_coder+c"),
        *("glm45", "xml", "hermes", "invoke", "qwen3_coder", "native"),
    ]


@pytest.mark.parametrize("format", DEFAULT)
def test_the_tools_can_be_taught(format: str) -> None:
    assert "find" in render_prompt(format, ToolRegistry(Storeroom()).specs())
