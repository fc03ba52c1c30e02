"""The ways of calling that are tried: natively, or as text in a format, free or constrained by a grammar.

Knows the names of formats, models and servers; asks no model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from agentkit import formats
from agentkit.checks.spelling import did_you_mean
from agentkit.errors import ConfigError

NATIVE: Final = "native"
CONSTRAINED: Final = "+c"
DEFAULT: Final = ("xml", "hermes", "invoke", "qwen3_coder")
"""Formats that models follow which were not trained on them, measured on models of 0.1 to 1.5 billion parameters."""
OWN: Final = 2  # formats of the model's own family at most
_LETTERS: Final = re.compile(r"[a-z]{4,}")


@dataclass(frozen=True, slots=True)
class CallingMode:
    """One way of calling.

    Args:
        format: the text format; None for native calls.
        constrained: whether the calls are constrained by a grammar.
    """

    format: str | None = None
    constrained: bool = False

    def __str__(self) -> str:
        """Its name: `native`, `xml`, `xml+c`."""
        return NATIVE if self.format is None else f"{self.format}{CONSTRAINED if self.constrained else ''}"

    @classmethod
    def from_name(cls, name: str) -> Self:
        """The mode of a name: `native`, a format, or a format and `+c`.

        Raises:
            ConfigError: there is none of this name.
        """
        format = name.removesuffix(CONSTRAINED)
        if name == NATIVE:
            return cls()
        known = (NATIVE, *formats.names())
        if format not in formats.names():
            raise ConfigError(
                f"there is no mode {name!r}: expected native, a text format such as xml, or one with +c, "
                f"constrained by a grammar{did_you_mean(format, known)}"
            )
        return cls(format, constrained=name.endswith(CONSTRAINED))


def modes_for(model: str, *, grammars: bool) -> tuple[CallingMode, ...]:
    """The modes that are worth trying: the formats of the model's family, those that most models follow, native calls.

    Args:
        model: the provider's name of the model, such as `Qwen/Qwen3-8B`.
        grammars: whether its server accepts grammars; each format is then first tried with one. What is most often the
            best comes first: the others are compared with it, and stop early.
    """
    tried = tuple(dict.fromkeys([*own_formats(model)[:OWN], *DEFAULT]))
    free = [CallingMode(format) for format in tried]
    held = [CallingMode(format, constrained=True) for format in tried] if grammars else []
    return (*held, *free, CallingMode())


def own_formats(model: str) -> tuple[str, ...]:
    """The formats that a model's family was trained on, by the model's name; the exact version first.

    >>> own_formats("meta-llama/Llama-3.2-3B-Instruct")[0], own_formats("qwen2.5-coder"), own_formats("qwen05")
    ('llama3_json', ('hermes',), ('qwen3_coder', 'hermes'))
    """
    name = _plain(model.rpartition("/")[2])
    families = [(family, format.name) for format in formats.CATALOG for family in format.families if "(" not in family]
    exact = [format for family, format in families if len(_plain(family)) > 3 and _plain(family) in name]
    if exact:
        return tuple(dict.fromkeys(exact))
    alike = [format for family, format in families if _letters(family) and name.startswith(_letters(family))]
    return tuple(dict.fromkeys(alike))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _letters(family: str) -> str:
    found = _LETTERS.match(_plain(family))
    return found[0] if found is not None else ""
