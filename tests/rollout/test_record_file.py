"""Records of trajectories on disk: read back exactly, one writer, and whole after any `kill -9`."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tracemalloc
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollout_records import NASTY, hostile, record, records

from agentkit.errors import StoreError
from agentkit.rollout import CallRecord, RecordFile, TokenRecord, TrajectoryRecord, read_records, read_runs
from agentkit.rollout.records.record_json import record_from_json, record_line, record_to_json

ALL = [record(f"s{n}#0", error="é " * n) for n in range(4)]
WHOLE = b"".join(record_line(one) for one in ALL)
ENDS = [0, *(sum(len(record_line(one)) for one in ALL[: n + 1]) for n in range(len(ALL)))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def written(path: Path, *all: TrajectoryRecord) -> list[TrajectoryRecord]:
    with RecordFile(path) as file:
        for one in all:
            file.append(one)
    return list(read_records(path))


# exactly


def test_a_record_is_a_line_of_json_that_any_program_reads(path: Path) -> None:
    written(path, record("s1#0", tokens=None))
    (line,) = path.read_text().splitlines()
    body = json.loads(line, parse_constant=lambda name: pytest.fail(name))
    assert list(body)[:4] == ["v", "id", "sample_id", "repeat"]
    assert (body["id"], body["end"], body["reward"], body["calls"][0]["arguments"]) == (
        "s1#0",
        "answered",
        1.5,
        {"a": 0},
    )


def test_images_tokens_and_all_else_are_read_back(path: Path) -> None:
    assert written(path, record()) == [record()]


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_hostile_texts_are_read_back(path: Path, text: str) -> None:
    assert written(path, hostile(text), record()) == [hostile(text), record()]


@pytest.mark.parametrize("kind", [TrajectoryRecord, CallRecord, TokenRecord])
def test_every_field_is_in_the_file(kind: Any) -> None:
    body = record_to_json(record())
    found = {TrajectoryRecord: body, CallRecord: body["calls"][0], TokenRecord: body["tokens"]}[kind]
    assert {field.name for field in fields(kind)} == found.keys() - {"v"}


@given(records)
def test_any_record_is_read_back(one: TrajectoryRecord) -> None:
    line = record_line(one)
    assert line.count(b"\n") == 1
    assert record_from_json(json.loads(line, parse_constant=lambda name: pytest.fail(name))) == one


def test_numbers_that_json_does_not_have_are_kept(path: Path) -> None:
    (one,) = written(path, record(reward=-math.inf, extra={"loss": math.nan, "note": "NaN"}))
    assert one.reward == -math.inf
    assert math.isnan(one.extra["loss"])
    assert one.extra["note"] == "NaN"


def test_values_of_other_types_become_what_a_model_reads(path: Path) -> None:
    (one,) = written(path, record(extra={"where": Path("a/b"), "shape": (1, 2)}))
    assert one.extra == {"where": "a/b", "shape": [1, 2]}


# torn lines


@given(st.integers(0, len(WHOLE)))
def test_a_file_cut_anywhere_is_continued_and_has_every_record_once(cut: int) -> None:
    """What is in the file after a kill is a beginning of it."""
    with TemporaryDirectory() as folder:
        continued(Path(folder) / "run.jsonl", cut)


def continued(path: Path, cut: int) -> None:
    path.write_bytes(WHOLE[:cut])
    left = [end for end in ENDS if end <= cut + 1]  # a line that lacks only its end is whole
    assert list(read_records(path)) == ALL[: len(left) - 1]
    with RecordFile(path) as file:
        assert file.cut == (0 if cut + 1 in ENDS else cut - left[-1])
        for one in ALL:
            if one.id not in file:
                file.append(one)
        assert len(file) == len(ALL)
    assert path.read_bytes() == WHOLE


def test_zeros_that_a_power_failure_leaves_are_cut_off(path: Path) -> None:
    path.write_bytes(WHOLE + b"\0" * 100)
    with RecordFile(path) as file:
        assert (file.cut, len(file)) == (100, 4)
    assert path.read_bytes() == WHOLE


def test_the_torn_line_is_reported(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_bytes(WHOLE[:-20])
    assert len(list(read_records(path))) == 3
    RecordFile(path).close()
    assert [r.message.partition(": ")[2] for r in caplog.records] == [
        "line 4 is torn, and was skipped",
        f"removed a torn line of {ENDS[4] - ENDS[3] - 20} bytes at its end, left by a killed process",
    ]


@pytest.mark.parametrize("other", [b"My notes", b'{"prompt": "Hi"}\n', b'{"v":', b"\xff\xfe\n", b"[1]", b"{}\n"])
def test_another_file_is_refused_and_left_as_it_is(path: Path, other: bytes) -> None:
    path.write_bytes(other)
    if other == b'{"v":':  # the beginning of a record
        RecordFile(path).close()
        return
    with pytest.raises(StoreError, match="line 1"):
        RecordFile(path)
    assert path.read_bytes() == other


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"v": 99}, "version 99"),
        ({"calls": 3}, "TypeError"),
        ({"repeat": "0"}, "expected an integer, found '0'"),
        ({"messages": [{"role": "robot", "content": ""}]}, "robot"),
    ],
)
def test_a_damaged_line_is_named(path: Path, changed: dict[str, object], why: str) -> None:
    body = json.loads(record_line(record()))
    path.write_bytes(record_line(ALL[0]) + json.dumps({**body, **changed}).encode() + b"\n")
    with pytest.raises(StoreError, match=f"line 2: .*{why}"):
        list(read_records(path))


# one writer


def test_a_second_writer_is_refused_until_the_first_is_gone(path: Path) -> None:
    with RecordFile(path), pytest.raises(StoreError, match="another process is writing"):
        RecordFile(path)
    RecordFile(path).close()


def test_an_id_is_written_once(path: Path) -> None:
    with RecordFile(path) as file:
        file.append(record())
        with pytest.raises(StoreError, match="already has the trajectory 's1#0'"):
            file.append(record())
    assert len(list(read_records(path))) == 1


@pytest.mark.parametrize("where", ["/dev/null", "missing/run.jsonl", "."])
def test_a_place_that_cannot_hold_it_is_refused(tmp_path: Path, where: str) -> None:
    with pytest.raises(StoreError):
        RecordFile(tmp_path / where)


FULL = """
import resource, sys
from rollout_records import record
from agentkit.errors import StoreError
from agentkit.rollout import CallRecord, RecordFile, TokenRecord
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
with RecordFile(sys.argv[1]) as file:
    for n in range(9):
        try:
            file.append(record(f"s{n}#0", error="x"))
        except StoreError as e:
            print(e)
"""


def test_when_the_disk_is_full_the_records_before_stay_whole(path: Path) -> None:
    """A limit on the size of files fails as a full disk does: in the middle of a line."""
    room = len(record_line(record("s0#0", error="x"))) * 2 + 50
    support = str(Path(__file__).parents[1] / "support")
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(path), str(room)],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": support},
    )  # fmt: skip
    assert ran.stdout.count("cannot write to") == 7
    assert [one.id for one in read_records(path)] == ["s0#0", "s1#0"]


def test_records_to_be_run_again_are_removed_and_the_others_stay(path: Path) -> None:
    lost = record("s9#0", end="lost")
    written(path, ALL[0], lost, ALL[1])
    with RecordFile(path, drop=lambda one: one.end == "lost") as file:
        assert (file.dropped, len(file), lost.id in file) == (1, 2, False)
        file.append(replace(lost, end="answered"))
        with pytest.raises(StoreError, match="another process"):
            RecordFile(path)
    assert [one.id for one in read_records(path)] == ["s0#0", "s1#0", "s9#0"]
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_nothing_is_replaced_if_no_record_is_removed(path: Path) -> None:
    written(path, *ALL)
    before = path.stat().st_ino
    RecordFile(path, drop=lambda one: False).close()
    assert (path.stat().st_ino, path.read_bytes()) == (before, WHOLE)
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_metrics_that_cannot_be_shown_are_a_note_and_cost_no_record(path: Path) -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    call = CallRecord(0, 0, "c", "add", {}, "ok", metrics={"cost": 3, "engine": Broken()})
    with RecordFile(path) as opened:
        opened.append(record("s0#0", calls=(call,)))
    (read,) = read_records(path)
    assert read.calls[0].metrics == {
        "cost": 3,
        "engine": "(a Broken that cannot be shown: RuntimeError: no text)",
    }


# memory


def test_a_large_file_is_read_in_flat_memory(path: Path) -> None:
    """20 MB in lines of 200 kB: at no time are more than a few of them in memory."""
    line = record_line(record("s#0", error="x" * 200_000))
    with path.open("wb") as file:
        for n in range(100):
            file.write(line.replace(b'"id":"s#0"', b'"id":"s#%d"' % n, 1))
    tracemalloc.start()
    with RecordFile(path) as opened:
        assert len(opened) == 100
    assert sum(1 for _ in read_records(path)) == 100
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3_000_000


# what the run was


def test_a_run_is_described_once_and_its_line_is_no_record(path: Path) -> None:
    for model in ("a", "a", "b"):
        with RecordFile(path) as file:
            file.describe({"model": model})
            file.append(record(f"s{len(file)}#0"))
    assert [one["model"] for one in read_runs(path)] == ["a", "b"]
    assert all(one["date"].endswith(" UTC") for one in read_runs(path))
    assert [one.id for one in read_records(path)] == ["s0#0", "s1#0", "s2#0"]


def test_a_file_without_descriptions_is_read(path: Path) -> None:
    assert written(path, *ALL) == ALL
    assert read_runs(path) == []


def test_descriptions_stay_when_records_are_dropped(path: Path) -> None:
    with RecordFile(path) as file:
        file.describe({"model": "a"})
        file.append(ALL[0])
        file.append(ALL[1])
    with RecordFile(path, drop=lambda one: one.id == ALL[0].id) as file:
        assert (len(file), file.dropped) == (1, 1)
    assert (len(read_runs(path)), list(read_records(path))) == (1, [ALL[1]])


def test_a_torn_description_is_cut_off(path: Path) -> None:
    with RecordFile(path) as file:
        file.describe({"model": "a"})
    whole = path.read_bytes()
    for end in range(1, len(whole)):
        path.write_bytes(whole[:end])
        assert list(read_records(path)) == []
        with RecordFile(path) as file:
            assert (len(file), file.cut) == (0, end)
        assert path.read_bytes() == b""
