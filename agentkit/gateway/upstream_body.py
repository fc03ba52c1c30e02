"""The body of a request for an upstream that speaks the client's wire: unchanged, but for what must change. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


def upstream_body(raw: bytes, body: Mapping[str, Any], changes: Mapping[str, Any]) -> bytes:
    """Return the body with other values for these fields at its top; the same bytes if it has those values.

    If only the model's name changes, no other byte does.

    Args:
        raw: the bytes of the body.
        body: the same, as JSON.
        changes: the fields, such as `model`.

    >>> upstream_body(b'{"model" : "a", "n": 1.0}', {"model": "a", "n": 1.0}, {"model": "b"})
    b'{"model" : "b", "n": 1.0}'
    """
    changed = {key: value for key, value in changes.items() if key not in body or body[key] != value}
    if not changed:
        return raw
    if changed.keys() == {"model"} and raw.count(b'"model"') == 1 and isinstance(body.get("model"), str):
        given = re.escape(json.dumps(body["model"], ensure_ascii=False).encode("utf-8", "replace"))
        renamed = json.dumps(changed["model"], ensure_ascii=False).encode("utf-8", "replace")
        edited, times = re.subn(rb'("model"\s*:\s*)' + given, lambda found: found[1] + renamed, raw)
        if times == 1:
            return edited
    return json.dumps({**body, **changed}).encode()
