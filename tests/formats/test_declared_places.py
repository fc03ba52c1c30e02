"""A value in an XML element is the argument that `@xml_schema` declares there, whatever the parameters are called."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentkit import SchemaError, ToolRegistry, formats, xml_schema
from agentkit.messages import ToolCall
from agentkit.toolspec import ToolSpec

NAMES = ("a", "b", "c", "o")
PLACES = st.one_of(
    st.sampled_from(NAMES).map(lambda name: ("attribute", name)),
    st.sampled_from(NAMES).map(lambda name: ("element", name)),
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).map(lambda names: ("element", "/".join(names))),
)


def tool(places: dict[str, tuple[str, str]]) -> ToolSpec:
    """A tool whose parameters are all optional, each in its place."""
    arguments = ", ".join(f"{name}: str = 'none'" for name in places)
    scope: dict[str, Any] = {}
    exec(f"def run({arguments}) -> None: ...", scope)
    mappings = [{"param_name": name, "node_type": kind, "path": path} for name, (kind, path) in places.items()]
    registry = ToolRegistry()
    registry.register_function(xml_schema(name="run", mappings=mappings)(scope["run"]))
    return registry.specs()[0]


def written(places: dict[str, tuple[str, str]], values: dict[str, str]) -> str:
    """The call, each value in its place."""
    attributes = "".join(f' {places[n][1]}="{v}"' for n, v in values.items() if places[n][0] == "attribute")
    body = ""
    for name, value in values.items():
        if places[name][0] == "element":
            steps = places[name][1].split("/")
            body += "".join(f"<{s}>" for s in steps) + value + "".join(f"</{s}>" for s in reversed(steps))
    return f"<run{attributes}>{body}</run>"


@given(places=st.dictionaries(st.sampled_from(NAMES), PLACES, min_size=1), data=st.data())
def test_each_value_is_the_argument_declared_there(places: dict[str, tuple[str, str]], data: st.DataObject) -> None:
    try:
        spec = tool(places)
    except SchemaError:
        assume(False)
    values = {name: f"the {name}" for name in data.draw(st.permutations(sorted(places)))}
    values = {name: values[name] for name in list(values)[data.draw(st.integers(0, len(values) - 1)) :]}
    (call,) = formats.calls(formats.parse(written(places, values), "xml", [spec]))
    assert call.arguments == values
    text = formats.render_calls("xml", [ToolCall("", "run", values)], [spec])
    (call,) = formats.calls(formats.parse(text, "xml", [spec]))
    assert call.arguments == values


@pytest.mark.parametrize(
    ("places", "text", "arguments"),
    [
        ({"source": "target", "target": "to"}, "<target>x</target>", {"source": "x"}),
        ({"source": "target", "target": "to"}, "<target>x</target><to>x</to>", {"source": "x", "target": "x"}),
        ({"a": "b", "b": "a"}, "<b>1</b><a>2</a>", {"a": "1", "b": "2"}),
        ({"a": "o/x", "o": "z"}, "<o><x>1</x></o><z>2</z>", {"a": "1", "o": "2"}),
    ],
)
def test_an_element_with_the_name_of_another_parameter_is_what_it_is_declared_as(
    places: dict[str, str], text: str, arguments: dict[str, str]
) -> None:
    spec = tool({name: ("element", path) for name, path in places.items()})
    (call,) = formats.calls(formats.parse(f"<run>{text}</run>", "xml", [spec]))
    assert call.arguments == arguments
