"""The body of a request for an upstream that speaks the client's wire: unchanged, but for the model's name. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


def upstream_body(raw: bytes, body: Mapping[str, Any], model: str) -> bytes:
    """Return the body with this model's name; where the name is found in its bytes, no other byte changes.

    Args:
        raw: the bytes of the body.
        body: the same, as JSON.
        model: the upstream's name of the model.

    >>> upstream_body(b'{"model" : "a", "n": 1.0}', {"model": "a", "n": 1.0}, "b")
    b'{"model" : "b", "n": 1.0}'
    """
    if body.get("model") == model:
        return raw
    if raw.count(b'"model"') == 1:
        given, new = (json.dumps(m, ensure_ascii=False).encode("utf-8", "replace") for m in (body["model"], model))
        edited, times = re.subn(rb'("model"\s*:\s*)' + re.escape(given), lambda found: found[1] + new, raw)
        if times == 1:
            return edited
    return json.dumps({**body, "model": model}).encode()
