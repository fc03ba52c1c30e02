"""The judges of `benchmarks/real_models.py`, judged by runs written by hand, for each task right and wrong ones."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks")


def _loaded(name: str) -> Any:
    sys.path.insert(0, BENCHMARKS)
    try:
        return import_module(name)
    finally:
        sys.path.remove(BENCHMARKS)


tasks = _loaded("real_models_tasks")
judges = _loaded("real_models_judges")
bench = _loaded("real_models")

TASK = {task.key: task for task in tasks.TASKS}
Did = tuple[str, dict[str, Any]]


def did(name: str, /, **arguments: Any) -> Did:
    return name, arguments


def right(key: str, calls: Sequence[Did], *answers: str) -> bool:
    """Whether a run is judged right; the calls are made on a real world, and those refused there are its faults."""
    task = TASK[key]
    world = tasks.World(set(task.busy))
    for name, arguments in calls:
        with suppress(tasks.Fault):
            getattr(world, name)(**arguments)
    return bool(judges.right(task, world.log, answers))


ADA = {"name": "Ada", "email": "ada@post.example"}
FINN = {"name": "Finn", "email": "finn@post.example"}
NORA = {"street": "5 Mill Lane", "city": "Munster", "zip": "48143"}
TOM = {"street": "12 Park Road", "city": "Berlin", "zip": "10115"}
CHAIRS, TABLE = {"name": "chair", "quantity": 2, "price": 45}, {"name": "table", "quantity": 1, "price": 120.0}
LAMPS = {"name": "lamps", "quantity": 3, "price": 19.5}

RIGHT: dict[str, tuple[list[Did], list[str]]] = {
    "string": ([did("define_word", word="Gnomon")], ["It is the part of a sundial that casts the shadow."]),
    "integer": ([did("start_timer", minutes=25)], ["Done."]),
    "number": ([did("set_heating", room="the bedroom", degrees=19.5)], ["It is set to 19.5 degrees."]),
    "boolean": ([did("switch_lamp", room="Kitchen", on=False)], ["The lamp is off."]),
    "choice": ([did("play_music", genre="jazz")], ["Playing jazz."]),
    "list": ([did("add_to_list", items=["Milk", "eggs"]), did("add_to_list", items=["bread"])], ["Added."]),
    "two_lamps": ([did("switch_lamp", room="garage", on=True), did("switch_lamp", room="hall", on=True)], ["On."]),
    "two_words": (
        [did("define_word", word="axiom"), did("define_word", word="lemma")],
        ["An axiom is taken to be true; a lemma helps to prove a theorem."],
    ),
    "two_rooms": (
        [did("set_heating", room="bedroom", degrees=20), did("set_heating", room="bathroom", degrees=23.0)],
        ["Both are set."],
    ),
    "three_tools": (
        [
            did("switch_lamp", room="study", on=False),
            did("start_timer", minutes=45),
            did("play_music", genre="rock"),
        ],
        ["All three are done."],
    ),
    "capital": ([], ["Rome."]),
    "greeting": ([], ["It is 'Buenos días'."]),
    "thanks": ([], ["Goodbye!"]),
    "sum": ([], ["6 plus 7 is 13."]),
    "german": ([did("add_to_list", items=["Brötchen", "Käse", "Äpfel"])], ["Sie stehen auf der Liste."]),
    "japanese": ([did("define_word", word="木漏れ日")], ["木の葉の間からもれる日光です。"]),
    "french": ([did("start_timer", minutes=12)], ["Le minuteur est lancé."]),
    "spanish": ([did("switch_lamp", room="cocina", on=True)], ["La lámpara está encendida."]),
    "russian": ([did("add_to_list", items=["хлеб", "молоко"])], ["Добавлено."]),
    "another_lamp": (
        [did("switch_lamp", room="attic", on=True), did("switch_lamp", room="cellar", on=True)],
        ["It is on.", "That one, too."],
    ),
    "warmer": (
        [did("set_heating", room="office", degrees=18), did("set_heating", room="office", degrees=20)],
        ["18 degrees.", "Now 20 degrees."],
    ),
    "remembered": ([did("play_music", genre="classical")], ["Nice to meet you, Yara.", "Here is classical music."]),
    "what_was_it": (
        [did("add_to_list", items=["rice"]), did("define_word", word="tithe")],
        ["Added.", "A tenth of one's income.", "You asked for rice."],
    ),
    "email_to_name": (
        [
            did("find_contact", name="Ines"),
            did("send_email", to="ines.berg@post.example", subject="Lunch", body="Lunch is at noon."),
        ],
        ["I told Ines."],
    ),
    "low_stock": (
        [did("check_stock", product="printer paper"), did("order_goods", product="printer paper", quantity=50)],
        ["Only 4 were left, so I ordered 50."],
    ),
    "enough_stock": ([did("check_stock", product="envelopes")], ["There are 120, so I ordered none."]),
    "manager": (
        [did("find_contact", name="Lea"), did("find_contact", name="Karl Voss")],
        ["Karl Voss, k.voss@post.example."],
    ),
    "same_number": (
        [did("check_stock", product="pens"), did("order_goods", product="notebooks", quantity=14)],
        ["I ordered 14 notebooks."],
    ),
    "busy_rate": ([did("exchange_rate", base="CHF", target="USD")] * 2, ["You get 1.12 USD."]),
    "busy_email": (
        [did("send_email", to="lea.roth@post.example", subject="", body="The train is late.")] * 2,
        ["The email is sent."],
    ),
    "boxes": (
        [
            did("order_goods", product="printer ink", quantity=10),
            did("order_goods", product="printer ink", quantity=12),
        ],
        ["10 was refused, so I ordered 12."],
    ),
    "two_bobs": ([did("find_contact", name="Bob"), did("find_contact", name="Bob Marlow")], ["marlow@post.example"]),
    "other_name": (
        [did("check_stock", product="staplers"), did("check_stock", product="desk stapler")],
        ["There are 17."],
    ),
    "invoice": (
        [did("create_invoice", customer="Nora Lind", address=NORA, items=[CHAIRS, TABLE])],
        ["The invoice over 210 euros is created."],
    ),
    "one_line": (
        [did("create_invoice", customer="Tom Hale", address=TOM, items=[LAMPS])],
        ["Invoice R-508 is created."],
    ),
    "guests": (
        [did("book_meeting", title="Budget", day="Friday", guests=[ADA, FINN])],
        ["It is booked on Friday."],
    ),
    "points": ([did("plot_points", points=[[1, 2], [3, 4], [5, 0]])], ["They are drawn."]),
    "python": ([did("save_snippet", name="greet", language="python", code=f"{tasks.GREET}\n")], ["Saved."]),
    "html": ([did("save_snippet", name="link", language="html", code=tasks.LINK)], ["Saved."]),
    "sql": ([did("run_sql", query=f"{tasks.USERS};\n")], ["They are Anna and Omar."]),
    "replace": (
        [did("replace_text", document="page.html", old="<b>Old</b>", new="<strong>New</strong>")],
        ["Replaced."],
    ),
    "bash": ([did("save_snippet", name="loop", language="bash", code=tasks.LOOP)], ["Saved."]),
    "json": ([did("save_snippet", name="config", language="json", code=tasks.CONFIG)], ["Saved."]),
    "log": ([did("read_document", name="server.log")], ["The job backup-nightly failed with E4417."]),
    "page": ([did("read_document", name="hours.html")], ["At 9:30."]),
    "rows": ([did("read_document", name="staff.json")], ["Hugo sits at desk 222."]),
    "handbook": ([did("read_document", name="handbook.txt")], ["It is 7730."]),
}

WRONG: list[tuple[str, list[Did], list[str]]] = [
    ("string", [did("define_word", word="gnome")], ["The shadow of a sundial."]),
    ("integer", [did("start_timer", minutes=20)], ["Done."]),
    ("integer", [did("start_timer", minutes="25")], ["Done."]),
    ("number", [did("set_heating", room="bathroom", degrees=19.5)], ["Done."]),
    ("boolean", [did("switch_lamp", room="kitchen", on=True)], ["The lamp is off."]),
    ("boolean", [did("switch_lamp", room="kitchen", on=0)], ["The lamp is off."]),
    ("boolean", [did("switch_lamp", room="kitchen", on=False)], ["I'm sorry, I cannot do that."]),
    ("choice", [did("play_music", genre="pop")], ["Playing jazz."]),
    ("list", [did("add_to_list", items=["milk", "eggs"])], ["Added."]),
    ("list", [did("add_to_list", items="milk, eggs, bread")], ["Added."]),
    ("list", [did("add_to_list", items=["milk", "eggs", "bread", "butter"])], ["Added."]),
    ("two_lamps", [did("switch_lamp", room="hall", on=True)], ["Both are on."]),
    ("two_words", RIGHT["two_words"][0], ["They are words of mathematics."]),
    (
        "two_rooms",
        [did("set_heating", room="bedroom", degrees=23), did("set_heating", room="bathroom", degrees=20)],
        ["Both are set."],
    ),
    ("three_tools", [*RIGHT["three_tools"][0], did("add_to_list", items=["milk"])], ["Done."]),
    ("capital", [did("define_word", word="Italy")], ["Rome."]),
    ("capital", [], ["Milan."]),
    ("capital", [], ['{"name": "city", "arguments": {"city": "Rome"}}']),
    ("greeting", [], ["Bonjour."]),
    ("thanks", [did("start_timer", minutes=1)], ["Goodbye!"]),
    ("thanks", [], [" \n"]),
    ("sum", [], ["It is 15."]),
    ("german", [did("add_to_list", items=["rolls", "cheese", "apples"])], ["Done."]),
    ("japanese", [did("define_word", word="木")], ["日光です。"]),
    ("french", [did("start_timer", minutes=2)], ["Fait."]),
    ("spanish", [did("switch_lamp", room="salón", on=True)], ["Hecho."]),
    ("russian", [did("add_to_list", items=["хлеб"])], ["Добавлено."]),
    ("another_lamp", RIGHT["another_lamp"][0][:1], ["It is on.", "That one, too."]),
    ("another_lamp", RIGHT["another_lamp"][0], ["It is on."]),
    ("warmer", [*RIGHT["warmer"][0], did("set_heating", room="office", degrees=2)], ["Yes.", "Yes."]),
    ("remembered", [did("play_music", genre="pop")], ["Hello.", "Here is music."]),
    ("what_was_it", RIGHT["what_was_it"][0], ["Added.", "A tenth.", "You asked for milk."]),
    (
        "email_to_name",
        [did("find_contact", name="Ines"), did("send_email", to="ines@post.example", subject="", body="Lunch at noon")],
        ["Sent."],
    ),
    ("email_to_name", [*RIGHT["email_to_name"][0], RIGHT["email_to_name"][0][1]], ["I sent it twice."]),
    ("low_stock", [did("order_goods", product="printer paper", quantity=50)], ["Ordered."]),
    ("enough_stock", [*RIGHT["enough_stock"][0], did("order_goods", product="envelope", quantity=50)], ["120."]),
    ("manager", [did("find_contact", name="Lea")], ["Karl, k.voss@post.example"]),
    ("same_number", [did("check_stock", product="pens"), did("order_goods", product="pens", quantity=14)], ["Done."]),
    ("busy_rate", [did("exchange_rate", base="CHF", target="USD")], ["About 1.12 USD."]),
    ("busy_email", RIGHT["busy_email"][0][:1], ["The email is sent."]),
    ("boxes", [did("order_goods", product="printer ink", quantity=10)], ["I ordered 12."]),
    ("boxes", [did("order_goods", product="printer ink", quantity=18)], ["I ordered 18, not 12."]),
    ("two_bobs", [did("find_contact", name="Bob")], ["marlow@post.example"]),
    ("other_name", [did("check_stock", product="stapler")], ["There are 17."]),
    ("invoice", [did("create_invoice", customer="Nora Lind", address=NORA, items=[CHAIRS])], ["Invoice R-508."]),
    (
        "invoice",
        [did("create_invoice", customer="Nora Lind", address={**NORA, "zip": 48143}, items=[CHAIRS, TABLE])],
        ["Invoice R-508."],
    ),
    (
        "one_line",
        [did("create_invoice", customer="Tom Hale", address=TOM, items=[{**LAMPS, "price": 58.5}])],
        ["Invoice R-508."],
    ),
    ("guests", [did("book_meeting", title="Budget", day="Friday", guests=[ADA])], ["Booked."]),
    ("points", [did("plot_points", points=[[1, 2], [3, 4], [0, 5]])], ["Drawn."]),
    ("python", [did("save_snippet", name="greet", language="python", code="def greet(name): ...")], ["Saved."]),
    (
        "html",
        [did("save_snippet", name="link", language="html", code=tasks.LINK.replace("&amp;", "&"))],
        ["Saved."],
    ),
    ("sql", [did("run_sql", query=tasks.USERS.replace("30", "18"))], ["Anna and Omar."]),
    ("sql", [did("run_sql", query=tasks.USERS)], ["I ran the query."]),
    ("replace", [did("replace_text", document="page.html", old="Old", new="New")], ["Replaced."]),
    (
        "bash",
        [did("save_snippet", name="loop", language="bash", code=tasks.LOOP.replace("\n", "\\n"))],
        ["Saved."],
    ),
    (
        "json",
        [did("save_snippet", name="config", language="json", code=tasks.CONFIG.replace("\\\\", "\\"))],
        ["Saved."],
    ),
    ("log", [did("read_document", name="server.log")], ["The job sync-123 failed."]),
    ("page", [], ["At 9:30."]),
    ("rows", [did("read_document", name="staff")], ["At desk 222."]),
    ("handbook", [did("read_document", name="handbook.txt")], ["On level 2."]),
]


def test_there_are_44_tasks_or_more_of_ten_kinds() -> None:
    assert len(TASK) == len(tasks.TASKS) >= 44
    assert {task.kind for task in tasks.TASKS} == set(tasks.KINDS)
    assert len(tasks.KINDS) == 10
    assert max(map(len, tasks.KINDS.values())) <= 6


def test_each_task_has_a_right_run_and_a_wrong_one() -> None:
    assert set(RIGHT) == {key for key, _, _ in WRONG} == set(TASK)


@pytest.mark.parametrize("key", RIGHT)
def test_a_right_run(key: str) -> None:
    calls, answers = RIGHT[key]
    assert right(key, calls, *answers)


@pytest.mark.parametrize(("key", "calls", "answers"), WRONG, ids=[f"{i}-{run[0]}" for i, run in enumerate(WRONG)])
def test_a_wrong_run(key: str, calls: list[Did], answers: list[str]) -> None:
    assert not right(key, calls, *answers)


def test_what_only_reads_may_be_called_more_than_asked() -> None:
    assert right(
        "string", [did("define_word", word="shadow"), did("define_word", word="gnomon")], "A sundial's shadow."
    )


def test_an_answer_with_a_call_or_a_result_in_it_is_not_right() -> None:
    calls, _ = RIGHT["integer"]
    assert not right("integer", calls, 'Done. {"name": "start_timer", "arguments": {"minutes": 25}}')
    assert not right("integer", calls, "<tool_response>\ntimer started\n</tool_response>\nDone.")


@pytest.mark.parametrize(
    "text",
    [
        "<tool_response>\n17\n</tool_response>",
        "<tool_result>17",
        '<result name="add">3</result>',
        "<function_results>\n17",
        "Fine.<|im_end|>\n<|im_start|>user\nThanks",
        "[TOOL_RESULTS] 17 [/TOOL_RESULTS]",
        "```tool_output\n17\n```",
        "Let me see.\nObservation: 17",
        "Tool result: 17",
        "Hello.\nUser: and now?",
        "ok\nuser\nand now?",
        "<｜tool▁outputs▁begin｜>17",
        "<start_of_turn>user",
    ],
)
def test_an_invented_result_or_turn(text: str) -> None:
    assert judges.invented("", text)


@pytest.mark.parametrize(
    "text",
    [
        "The result: 17.",
        "The user Anna is in Bonn.",
        "Use <b>bold</b> and a < b.",
        "I used the tool start_timer; the tool said: 25 minutes.",
        "1. Observe the sky.",
        'for f in *.txt; do\n  wc -l < "$f"\ndone',
    ],
)
def test_what_is_not_an_invented_result(text: str) -> None:
    assert not judges.invented(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "start_timer", "arguments": {"minutes": 25}}',
        '```json\n{"tool": "start_timer", "args": {"minutes": 25}}\n```',
        "{'function': 'functions.start_timer'}",
        '{"start_timer": {"minutes": 25}}',
        "<start_timer><minutes>25</minutes></start_timer>",
        '<start_timer minutes="25"/>',
        '<invoke name="start_timer">',
        "<function=start_timer>",
        "<tool_call>start_timer\n<arg_key>minutes</arg_key>",
        "start_timer(minutes=25)",
        "```python\nstart_timer(25)\n```",
        "print(default_api.start_timer(minutes=25))",
        "[start_timer(minutes=25)]",
        "call:start_timer{minutes:25}",
        'start_timer\n{"minutes": 25}',
    ],
)
def test_an_unread_call(text: str) -> None:
    assert judges.unread(f"Sure.\n{text}", tasks.HOME)


@pytest.mark.parametrize(
    "text",
    [
        "I started the timer with start_timer.",
        "`start_timer` starts a timer, and so does start_timer() in a program.",
        "The timer was started by start_timer(25).",
        '{"name": "restart_timer"}',
        "<b>start_timer</b>",
        "minutes: 25",
    ],
)
def test_what_is_not_a_call(text: str) -> None:
    assert not judges.unread(text, tasks.HOME)


def test_each_task_can_be_told_from_the_tools_it_is_offered() -> None:
    assert not [task.key for task in tasks.TASKS if {name for name, _ in task.calls} - set(task.tools)]


def test_a_limit_takes_from_each_kind_and_a_smaller_one_takes_some_of_the_same() -> None:
    some = tasks.spread(tasks.TASKS, 24)
    counts = [sum(task.kind == kind for task in some) for kind in tasks.KINDS]
    assert (len(some), min(counts), max(counts)) == (24, 2, 3)
    assert {task.key for task in tasks.spread(tasks.TASKS, 10)} < {task.key for task in some}


async def _answers(task: Any, world: Any, script: Any) -> None:
    world.start_timer(25)
    script.answers.append("Done.")
    script.finish = "stop"


async def _fails(task: Any, world: Any, script: Any) -> None:
    script.input_tokens += 70
    raise ConnectionError("gone")


async def _hangs(task: Any, world: Any, script: Any) -> None:
    await asyncio.Event().wait()


def _run(mode: Any, name: str = "native", timeout: float = 10) -> dict[str, Any]:
    run: dict[str, Any] = asyncio.run(bench.run(TASK["integer"], name, mode, timeout))
    return run


def test_a_run_is_judged() -> None:
    run = _run(_answers)
    assert (run["ok"], run["finish"], run["error"], run["empty"]) == (True, "stop", "", False)
    assert run["calls"] == [{"name": "start_timer", "arguments": {"minutes": 25}, "done": True}]


def test_a_run_that_fails_keeps_what_it_spent() -> None:
    run = _run(_fails)
    assert (run["ok"], run["error"], run["input_tokens"]) == (False, "ConnectionError: gone", 70)


def test_a_run_that_takes_too_long_is_an_error() -> None:
    assert _run(_hangs, timeout=0.01)["error"].startswith("TimeoutError")


def _left(some: Sequence[Any], mode: Any, kept: Any, absent: str = "", **options: Any) -> int:
    left: int = asyncio.run(bench.measure(some, {"native": mode}, kept, absent=lambda: absent, **options))
    return left


def test_a_run_that_failed_because_the_server_is_gone_is_not_kept(tmp_path: Path) -> None:
    kept = bench.Kept(tmp_path / "runs.json", "small")
    assert _left(tasks.TASKS, _fails, kept, absent="no server answers") == len(tasks.TASKS)
    assert _left([TASK["list"]], _fails, kept) == 0
    assert [one["task"] for one in kept.runs] == ["list"]


def test_what_is_kept_is_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    kept = bench.Kept(path, "small")
    some = [TASK["integer"], TASK["string"]]
    assert _left(some, _answers, kept) == 0
    again = bench.Kept(path, "small")
    assert _left([*some, TASK["list"]], _fails, again, until=0) == 1
    assert [(one["task"], one["ok"]) for one in again.runs] == [("integer", True), ("string", False)]
    with pytest.raises(SystemExit, match="name another file"):
        bench.Kept(path, "large")


def test_two_files_in_one_table() -> None:
    before, after = [_run(_fails), _run(_answers, "xml+c")], [_run(_answers), _run(_answers, "xml+c")]
    for one in (*before, *after):
        one["seconds"] = 2
    assert bench.compared(before, after).splitlines()[2:] == [
        "| native | 0 → 1 of 1 | 0.0 → 1.0 | 70 → 0 | 0 | 2.0 | 0 | 0 | 0 | 1 → 0 |",
        "| `xml`, constrained | 1 of 1 | 1.0 | 0 | 0 | 2.0 | 0 | 0 | 0 | 0 |",
    ]
