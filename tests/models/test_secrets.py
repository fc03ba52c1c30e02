"""A key is redacted in whichever way a server writes it."""

from __future__ import annotations

import json
import os
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentkit.models.secrets import redact, without_secrets

EXAMPLES = int(os.environ.get("AGENTKIT_EXAMPLES", "12"))

WAYS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": lambda key: json.dumps(key)[1:-1],
    "JSON with each / escaped, as PHP does": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "URL": lambda key: urllib.parse.quote(key, safe=""),
}

printable = st.characters(codec="ascii", exclude_categories=("Cc",), exclude_characters=" ")
keys = st.text(printable, min_size=6, max_size=40)


@pytest.mark.share(3)
@pytest.mark.parametrize("way", WAYS)
@given(key=keys, around=st.sampled_from(["", " ", '"', "x", "&", "\\ ", "%"]))
@example(key='Zk9/x+Q"a<b>&c=d\\e', around="")
@settings(max_examples=EXAMPLES)
def test_a_key_is_found_however_it_is_written(way: str, key: str, around: str) -> None:
    written = WAYS[way](key)
    assert written not in redact(f"before {around}{written} after", [key])
    assert redact(f"before {written} after", [key]) == "before [key] after"
    assert without_secrets({"error": [written]}, [key]) == {"error": ["[key]"]}


def test_what_is_no_key_stays_as_it_is() -> None:
    text = '{"path": "a\\/b", "q": "%2F&amp;\\u002f"}'
    assert redact(text, ["abc/def"]) == text
