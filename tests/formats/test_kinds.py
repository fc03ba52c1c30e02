"""A part knows itself: for each class of which a format may be declared there is one kind, and it knows everything."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pkgutil import iter_modules
from typing import get_args

import pytest

from agentkit.errors import FormatError
from agentkit.formats import CATALOG, Format, ToolSpec, auto, bodies, calls, parse, render_calls, render_prompt
from agentkit.formats.bodies import kinds
from agentkit.formats.bodies.kinds import KINDS
from agentkit.formats.format import CallBody, FormatPart, Json, Name, Recipient
from agentkit.formats.kind import refuse_writing
from agentkit.messages import ToolCall

PARTS = get_args(FormatPart)
PING = ToolSpec("ping", "Ping.", {"type": "object", "properties": {}})


def test_every_part_has_one_kind() -> None:
    files = [import_module(f"{bodies.__name__}.{file.name}") for file in iter_modules(bodies.__path__)]
    listed = Counter(kind.part for file in files if file.__name__ != kinds.__name__ for kind in file.KINDS)
    assert listed == Counter(PARTS)
    assert KINDS.keys() == set(PARTS)


@pytest.mark.parametrize("part", [p for p in PARTS if issubclass(p, CallBody)], ids=lambda p: p.__name__)
def test_every_body_has_a_name_and_rules_that_its_prompts_show(part: type[CallBody]) -> None:
    assert part.label
    assert KINDS[part].taught
    written = [f for f in CATALOG if any(type(p) is part for p in f.call)]
    assert written
    for format in written:
        prompt = render_prompt(format, [PING])
        assert [rule for rule in KINDS[part].taught if f"- {rule}\n" not in prompt] == []


def test_every_format_is_written_in_parts_that_are_written() -> None:
    assert [f.name for f in CATALOG if any(KINDS[type(p)].write is refuse_writing for p in f.call)] == []


def test_a_format_whose_written_shape_holds_a_part_that_is_only_read_is_refused() -> None:
    format = Format("addressed", ("to=", Recipient(), "<call>", Name(), Json(), "</call>"))
    with pytest.raises(FormatError) as refused:
        render_calls(format, [ToolCall("", "ping", {})], [PING])
    assert str(refused.value) == "ping: format 'addressed' cannot be written: Recipient is only read"


# ---------------------------------------------------------------- an id that is written: Solar Open

SOLAR = (
    "<|tool_calls|><|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>ping<|tool_call:args|>{}<|tool_call:end|>"
    "<|tool_call:begin|>call000002<|tool_call:name|>ping<|tool_call:args|>{}<|tool_call:end|><|calls|>"
)
SECTION = ("<|tool_calls|>", "<|calls|>")


def test_ids_are_written_as_they_are_or_made_as_the_vendor_makes_them() -> None:
    given = [ToolCall("a1b2c3d4e5", "ping", {}), ToolCall("no id", "ping", {})]
    assert render_calls("solar_open", given, [PING]) == SOLAR


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("", SOLAR),
        ("", SOLAR.removesuffix("<|calls|>")),
        ("", SOLAR.removeprefix(SECTION[0]).removesuffix(SECTION[1])),
        ("<|think|>Ping, then.<|end|><|begin|>assistant", SOLAR),
        ("<|think|><|end|><|begin|>assistant<|content|>I ping.<|flush|>", SOLAR),
    ],
    ids=["whole", "stopped at its end", "without its section", "behind thinking", "behind text"],
)
def test_solar_open_is_read_as_its_vendors_server_reads_it(before: str, text: str) -> None:
    for read in ("solar_open", auto()):
        assert [c.id for c in calls(parse(before + text, read, [PING]))] == ["a1b2c3d4e5", "call000002"]
