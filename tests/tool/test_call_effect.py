"""The effect of a call, for a person who decides about it."""

from __future__ import annotations

import json

from agentkit import ToolCall
from agentkit.tool.call_effect import Effect, effect, effect_json


def of(name: str, **arguments: object) -> Effect:
    return effect(ToolCall("c", name, arguments))


def test_an_edit_shows_all_lines_of_both_texts() -> None:
    about = of("str_replace", file_path="a.py", old_str="a\nx = 1\nb", new_str="a\nx = 2\nb", replace_all=True)
    body = (" a", "-x = 1", "+x = 2", " b")
    assert about == Effect("a.py", body=body, edits=True, rest={"replace_all": True})
    assert of("str_replace", path="a", old="a\na", new="a").body == (" a", "-a")


def test_a_command_and_plain_arguments() -> None:
    assert of("run", command="ls -l\npwd", timeout=5) == Effect(
        body=("ls -l", "pwd"), language="bash", rest={"timeout": 5}
    )
    assert of("send", to="bob") == Effect(rest={"to": "bob"})


def test_an_effect_is_json() -> None:
    about = of("str_replace", path="a.py", old="x\u202e", new="y", times=[1])
    assert json.loads(json.dumps(effect_json(about))) == {
        "target": "a.py",
        "note": "",
        "body": ["-x\\u202e", "+y"],
        "language": "",
        "edits": True,
        "rest": {"times": [1]},
    }
