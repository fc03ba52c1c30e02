"""Data sets as samples: both systems' columns, both kinds of files, images, and what is wrong in a row."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentkit.errors import ConfigError
from agentkit.messages import ImagePart, SystemMessage, TextPart, UserMessage
from agentkit.rollout import Sample, ToolKwargs
from agentkit.rollout.samples.data_rows import sample_from
from agentkit.rollout.samples.samples import BATCH, read_samples

PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\rIDATx\x9cc\xf8\xff\xff?\x00\x05\xfe\x02\xfe\xa7\x9a\xa0\xa0\x00\x00\x00\x00IEND\xaeB`\x82"
)
PROMPT = [{"role": "user", "content": "What is 6 * 7?"}]


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


Written = Callable[[list[dict[str, Any]]], Path]


@pytest.fixture(params=[(lines, "train.jsonl"), (table, "train.parquet")], ids=["lines", "parquet"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Written:
    write, name = request.param
    return lambda rows: write(tmp_path / name, rows)


def one(**row: Any) -> Sample:
    """A row with a prompt as a sample."""
    return sample_from({"prompt": PROMPT, **row}, "train:0", "here, row 0")


# ---------------------------------------------------------------- both kinds of files


def test_a_row_of_verl(written: Written) -> None:
    told = {"add": {"create_kwargs": {"start": 1}, "execute_kwargs": {"timeout": 3}}}
    row = {
        "data_source": "sums",
        "prompt": [{"role": "system", "content": "Use tools."}, *PROMPT],
        "reward_model": {"style": "rule", "ground_truth": "42"},
        "extra_info": {"index": 7, "need_tools_kwargs": True, "tools_kwargs": told, "tool_selection": ["add"]},
    }
    (found,) = read_samples(written([row]))
    assert found.prompt == (SystemMessage("Use tools."), UserMessage("What is 6 * 7?"))
    assert found.tools_kwargs == {"add": ToolKwargs(create={"start": 1}, execute={"timeout": 3})}
    assert (found.tool_selection, found.ground_truth) == (("add",), "42")
    assert found.extra == {"data_source": "sums", "reward_model": {"style": "rule"}, "extra_info": {"index": 7}}


def test_a_row_of_open_instruct(written: Written) -> None:
    row = {
        "messages": [*PROMPT, {"role": "assistant", "content": "42"}],
        "ground_truth": "42",
        "dataset": "sums",
        "tools": ["add", "counter"],
        "env_config": {
            "max_steps": 5,
            "env_configs": [{"env_name": "counter", "is_text_env": False, "target": 3}],
        },
    }
    (found,) = read_samples(written([row]))
    assert (found.prompt, found.ground_truth) == ((UserMessage("What is 6 * 7?"),), "42")
    assert found.tool_selection == ("add", "counter")
    assert found.tools_kwargs == {"counter": ToolKwargs(create={"target": 3})}
    assert (found.extra["answer"], found.extra["env_config"]["max_steps"]) == ("42", 5)


def test_the_ids_are_the_rows_own_or_their_places(written: Written) -> None:
    assert next(read_samples(written([{"prompt": "a"}, {"prompt": "b"}]))).id in ("train:0", "train:1")
    assert [found.id for found in read_samples(written([{"prompt": "a", "id": 5}, {"prompt": "b", "id": 6}]))] == [
        "5",
        "6",
    ]


def test_an_id_that_comes_twice_is_refused(written: Written) -> None:
    with pytest.raises(ConfigError, match=r"id: '5' is also the id of .*(row 0|line 1)"):
        list(read_samples(written([{"prompt": "a", "id": 5}, {"prompt": "b", "id": 5}])))


def test_several_files_and_folders_in_order(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        lines(tmp_path / folder / "train.jsonl", [{"prompt": folder}])
    found = list(read_samples([tmp_path / "a" / "train.jsonl", tmp_path / "b"]))
    assert [one.id for one in found] == ["a/train:1", "b/train:1"]


def test_a_file_is_read_as_far_as_its_samples_are(tmp_path: Path) -> None:
    good = [json.dumps({"prompt": "a"})] * 3
    (tmp_path / "train.jsonl").write_text("\n".join([*good, "", "{broken"]))
    samples = read_samples(tmp_path / "train.jsonl")
    assert [next(samples).id for _ in range(3)] == ["train:1", "train:2", "train:3"]
    with pytest.raises(ConfigError, match=r"train\.jsonl, line 5: not a line of JSON"):
        next(samples)


def test_a_row_group_of_a_parquet_file_is_in_memory_not_all_of_it(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"prompt": random.Random(n).randbytes(5000).hex()} for n in range(20 * BATCH)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "train.parquet", row_group_size=BATCH)
    before = pyarrow.total_allocated_bytes()
    samples = read_samples(tmp_path / "train.parquet")
    held = [pyarrow.total_allocated_bytes() - before for _ in samples]
    assert len(held) == len(rows)
    assert max(held) < 5 * BATCH * 10_000


# ---------------------------------------------------------------- the absent keys of structs


def test_the_keys_that_parquet_unites_are_left_out_again(tmp_path: Path) -> None:
    told = [
        {"add": {"create_kwargs": {"start": 1}}},
        {"search": {"create_kwargs": {"folder": "a"}, "execute_kwargs": {"limits": [1, None]}}},
    ]
    rows = [{"prompt": PROMPT, "extra_info": {"need_tools_kwargs": True, "tools_kwargs": one}} for one in told]
    first, second = read_samples(table(tmp_path / "train.parquet", rows))
    assert first.tools_kwargs == {"add": ToolKwargs(create={"start": 1})}
    assert second.tools_kwargs == {"search": ToolKwargs(create={"folder": "a"}, execute={"limits": [1, None]})}


def test_null_in_a_line_of_json_is_a_value(tmp_path: Path) -> None:
    told = {"add": {"create_kwargs": {"start": None}}}
    (found,) = read_samples(lines(tmp_path / "a.jsonl", [{"prompt": PROMPT, "extra_info": {"tools_kwargs": told}}]))
    assert found.tools_kwargs == {"add": ToolKwargs(create={"start": None})}


def test_what_is_stored_as_json_text_is_read() -> None:
    told = {"add": {"create_kwargs": '{"start": 1}'}}
    found = one(prompt=json.dumps(PROMPT), extra_info=json.dumps({"tools_kwargs": json.dumps(told)}))
    assert found.prompt == (UserMessage("What is 6 * 7?"),)
    assert found.tools_kwargs == {"add": ToolKwargs(create={"start": 1})}


def test_values_of_numpy_become_pythons_own() -> None:
    numpy = pytest.importorskip("numpy")
    told = {"add": {"create_kwargs": {"start": numpy.int64(1), "steps": numpy.array([0.5])}}}
    found = one(prompt=numpy.array(PROMPT, dtype=object), extra_info={"tools_kwargs": told}, score=numpy.float32(0.5))
    assert found.tools_kwargs == {"add": ToolKwargs(create={"start": 1, "steps": [0.5]})}
    assert type(found.tools_kwargs["add"].create["start"]) is int
    assert found.extra == {"score": 0.5}


# ---------------------------------------------------------------- images


def test_images_take_the_places_of_their_marks() -> None:
    prompt = [{"role": "user", "content": "<image>left, <image> right"}]
    found = one(prompt=prompt, images=[{"bytes": PNG, "path": None}, "https://example.org/a.png"])
    assert found.prompt[0].content == (
        ImagePart(PNG),
        TextPart("left, "),
        ImagePart(url="https://example.org/a.png"),
        TextPart(" right"),
    )


def test_images_without_marks_come_before_the_question() -> None:
    assert one(images=[PNG]).prompt[0].content == (ImagePart(PNG), TextPart("What is 6 * 7?"))


def test_without_images_a_mark_is_text() -> None:
    assert one(prompt="What does <image> mean?", images=[]).prompt == (UserMessage("What does <image> mean?"),)


def test_the_path_of_an_image_begins_at_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (found,) = read_samples(lines(tmp_path / "train.jsonl", [{"prompt": PROMPT, "images": ["a.png"]}]))
    assert found.prompt[0].content[0] == ImagePart(PNG)


def test_an_image_of_another_kind_becomes_png() -> None:
    image = pytest.importorskip("PIL.Image")
    import io

    buffer = io.BytesIO()
    image.new("RGB", (2, 2)).save(buffer, format="BMP")
    part = one(images=[buffer.getvalue()]).prompt[0].content[0]
    assert part.media_type == "image/png"


# ---------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"prompt": None}, "prompt: expected messages, found none; its columns are a"),
        ({"prompt": []}, "prompt: expected at least one message"),
        ({"prompt": [{"role": "usr", "content": "a"}]}, "prompt: message 0: the role of a message is one of"),
        ({"extra_info": 3}, "extra_info: expected an object, found int 3"),
        ({"extra_info": "{"}, "extra_info: expected an object or its JSON text"),
        ({"extra_info": {"tools_kwargs": {"add": 3}}}, "extra_info: tools_kwargs.add: expected an object, found int 3"),
        (
            {"extra_info": {"tools_kwargs": {"add": {"create_kwarg": {}}}}},
            "extra_info: tools_kwargs.add: unknown key 'create_kwarg'; did you mean 'create_kwargs'?",
        ),
        (
            {"extra_info": {"tools_kwargs": {"add": {"create_kwargs": 3}}}},
            "extra_info: tools_kwargs.add.create_kwargs: expected an object, found int 3",
        ),
        ({"extra_info": {"need_tools_kwargs": True}}, "tools_kwargs: need_tools_kwargs is true, but there are none"),
        ({"extra_info": {"need_tools_kwargs": "yes"}}, "need_tools_kwargs: expected true or false"),
        ({"extra_info": {"tool_selection": [3]}}, "tool_selection: expected a list of function names"),
        ({"tools": ["a"], "extra_info": {"tool_selection": ["a"]}}, "both tool_selection and tools"),
        ({"env_config": {"env_configs": [{"target": 3}]}}, "env_config.env_configs[0].env_name: expected the name"),
        ({"images": [PNG, PNG], "prompt": "<image>"}, "images: 2 for 1 <image> marks in the prompt"),
        ({"images": [b"no image"]}, "images[0]: 8 bytes that are not an image"),
        ({"images": ["no/such.png"]}, "images[0]: the image cannot be read"),
        ({"images": [{"height": 3}]}, "images[0]: expected an image under one of bytes, image, path"),
        ({"videos": ["a.mp4"]}, "videos: found 1; only text and images are read"),
    ],
)
def test_what_is_wrong_names_the_row_and_the_key(row: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        one(a=1, **row)
    assert str(raised.value).startswith("here, row 0")
    assert words in str(raised.value)


def nothing(path: Path) -> Path:
    return path / "none.jsonl"


def unknown(path: Path) -> Path:
    (path / "train.csv").write_text("a,b")
    return path / "train.csv"


def damaged(path: Path) -> Path:
    (path / "train.parquet").write_bytes(b"PAR1 damaged")
    return path / "train.parquet"


def encoded(path: Path) -> Path:
    (path / "train.jsonl").write_bytes(b'{"prompt": "\xff"}')
    return path / "train.jsonl"


def listed(path: Path) -> Path:
    (path / "train.jsonl").write_text("[1, 2]\n")
    return path / "train.jsonl"


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (nothing, "there is no such file"),
        (unknown, "expected a file .parquet, .jsonl, .ndjson, .json, found .csv"),
        (damaged, "cannot be read as parquet"),
        (encoded, "cannot be read"),
        (listed, "line 1: expected a JSON object, found [1, 2]"),
        (lambda path: path, "expected files .parquet"),
    ],
)
def test_what_is_wrong_with_a_file_names_it(tmp_path: Path, file: Callable[[Path], Path], words: str) -> None:
    path = file(tmp_path)
    with pytest.raises(ConfigError) as raised:
        list(read_samples(path))
    assert str(path) in str(raised.value)
    assert words in str(raised.value)


def test_the_columns_that_are_not_understood_are_kept() -> None:
    assert one(ability="math", weights=[1, 2]).extra == {"ability": "math", "weights": [1, 2]}


def test_samples_are_an_iterator(tmp_path: Path) -> None:
    assert isinstance(read_samples(lines(tmp_path / "a.jsonl", [{"prompt": "a"}])), Iterator)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"id": 3}, "Sample(id=…): expected a string, found int 3"),
        ({"prompt": "hi"}, "sample 's': prompt: expected a tuple of messages, found str 'hi'"),
        ({"prompt": ("hi",)}, "sample 's': prompt: expected messages, such as UserMessage(…), found str 'hi'"),
        (
            {"tools_kwargs": {"add": {"create": {}}}},
            "sample 's': tools_kwargs['add']: expected ToolKwargs(…), found dict",
        ),
        ({"tools_kwargs": [1]}, "sample 's': tools_kwargs: expected a mapping, found list [1]"),
        ({"tool_selection": "add"}, "sample 's': tool_selection: expected a tuple of function names, found str 'add'"),
        ({"extra": 3}, "sample 's': extra: expected a mapping, found int 3"),
    ],
)
def test_a_sample_of_wrong_types_is_refused_and_not_recorded(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Sample(**{"id": "s", "prompt": (UserMessage("Go."),), **wrong})
    assert said in str(refused.value)


def test_what_a_tool_is_told_is_a_mapping() -> None:
    with pytest.raises(
        ConfigError, match=r"ToolKwargs\(execute=…\): expected a mapping of keyword arguments, found int 3"
    ):
        ToolKwargs(execute=3)  # type: ignore[arg-type]
