"""The defaults in signatures: the value of a private constant instead of its name, `{}` for a mapping that is empty.

griffe, which reads the code for mkdocstrings, calls `PublicDefaults` once for each package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

PRIVATE = re.compile(r"_[A-Z][A-Z_]*")
EMPTY = "MappingProxyType({})"


def functions(found: griffe.Object) -> Iterator[griffe.Function]:
    """Yield the functions below an object, methods included."""
    for member in found.members.values():
        if isinstance(member, griffe.Function):
            yield member
        elif not member.is_alias and (member.is_module or member.is_class):
            yield from functions(member)


class PublicDefaults(griffe.Extension):
    """Replaces defaults that are private constants by their values."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Called when a package was read."""
        for function in functions(pkg):
            for parameter in function.parameters:
                name = str(parameter.default)
                if PRIVATE.fullmatch(name) and (constant := function.module.members.get(name)) is not None:
                    parameter.default = "{}" if str(constant.value) == EMPTY else constant.value
