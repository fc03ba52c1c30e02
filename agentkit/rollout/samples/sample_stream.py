"""A rollout's samples as a stream: each with its own id, repeated, without those already done. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from agentkit.checks.bounds import Bound, Bounds, refuse, whole
from agentkit.errors import ConfigError
from agentkit.rollout.samples.sample import Sample

_NO_LIST: Final = (str, bytes, Mapping, type)


def list_bound(words: str) -> Bound:
    """Return the bound of any iterable but text."""
    return Bound(lambda value: isinstance(value, Iterable) and not isinstance(value, _NO_LIST), words)


_BOUNDS: Final[Bounds] = {
    "samples": list_bound("a list of samples"),
    "repeats": whole(1, "trajectories of each sample"),
    "skip": Bound(
        lambda value: hasattr(value, "__contains__") and not isinstance(value, (str, bytes)),
        "a list of trajectories' ids, or a RecordFile",
    ),
}


def refuse_stream(samples: Any, repeats: Any = 1, skip: Any = ()) -> None:
    """Refuse arguments of `stream` that cannot be meant.

    Raises:
        ConfigError: says which, and what was expected.
    """
    refuse("stream", {"samples": samples, "repeats": repeats, "skip": skip}, _BOUNDS)


def distinct(samples: Iterable[Sample]) -> Iterator[Sample]:
    """The samples, each with its own id: two records of one id could not be told apart.

    Raises:
        ConfigError: two have the same id, or one is not a sample.
    """
    ids: set[str] = set()
    for at, sample in enumerate(samples):
        given: object = sample
        if not isinstance(given, Sample):
            raise ConfigError(f"samples[{at}]: expected a Sample, found {type(given).__name__} {given!r:.60}")
        if sample.id in ids:
            raise ConfigError(
                f"samples[{at}]: the id {sample.id!r} is an earlier sample's; for several trajectories of "
                "one sample, write stream(samples, repeats=…)"
            )
        ids.add(sample.id)
        yield sample
