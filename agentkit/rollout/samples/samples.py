"""Data sets as samples: parquet and JSON lines, one row at a time, in verl's and open-instruct's forms.

Every error names the file, the row and the key. Nothing of a row is lost: unknown keys are in `Sample.extra`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agentkit.errors import ConfigError, install_command
from agentkit.rollout.samples.data_rows import sample_from
from agentkit.rollout.samples.sample import Sample

PARQUET: Final = (".parquet",)
LINES: Final = (".jsonl", ".ndjson", ".json")
BATCH: Final = 64
"""Rows of a parquet file that become Python's values at a time: rows with images have megabytes."""

_BUFFER: Final = 1 << 20  # bytes: without it a row group is also kept as it is in the file


def read_samples(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Iterator[Sample]:
    """The samples of files, in order; a file is read as far as the samples are, of parquet a row group at a time.

    A sample's id is its row's `id`, or else the file's name and the row's number, such as `train:17`.

    Args:
        paths: a parquet file, a file of JSON lines, or a folder of such files; or several.

    Raises:
        ConfigError: a file cannot be read, a row is wrong, or two rows have the same id; names file, row and key.
    """
    files = _files([paths] if isinstance(paths, str | os.PathLike) else paths)
    stems = [file.stem for file in files]
    labels = [file.stem if stems.count(file.stem) == 1 else f"{file.parent.name}/{file.stem}" for file in files]
    return _samples(list(zip(files, labels, strict=True)))


def _samples(files: Iterable[tuple[Path, str]]) -> Iterator[Sample]:
    seen: dict[str, str] = {}
    for file, label in files:
        parquet = file.suffix in PARQUET
        for number, row in enumerate(parquet_rows(file)) if parquet else line_rows(file):
            where = f"{file}, {'row' if parquet else 'line'} {number}"
            sample = sample_from(row, f"{label}:{number}", where, nulls=not parquet, folder=file.parent)
            if sample.id in seen:
                raise ConfigError(f"{where}: id: {sample.id!r} is also the id of {seen[sample.id]}")
            seen[sample.id] = where
            yield sample


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a parquet file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as e:
        raise ConfigError(f"{path}: reading it needs pyarrow: {install_command('rollout')}") from e
    try:
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER) as file:
            for batch in file.iter_batches(batch_size=BATCH, use_threads=False):
                yield from batch.to_pylist(maps_as_pydicts="strict")
    except (OSError, pa.ArrowException) as e:
        raise ConfigError(f"{path}: cannot be read as parquet: {e}") from e


def line_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """The values of a file of JSON lines, with the line numbers from 1; empty lines are skipped.

    Raises:
        ConfigError: it cannot be read, or a line is not a JSON object.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, _object(line, f"{path}, line {number}")
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(f"{path}: cannot be read: {e}") from e


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as e:
        raise ConfigError(f"{where}: not a line of JSON: {e}; found {line.strip()!r:.60}") from e
    if not isinstance(found, Mapping):
        raise ConfigError(f"{where}: expected a JSON object, found {found!r:.60}")
    return dict(found)


def _files(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    files: list[Path] = []
    for path in (Path(one).expanduser() for one in paths):
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if one.suffix in PARQUET + LINES)
            if not inside:
                raise ConfigError(f"{path}: expected files {', '.join(PARQUET + LINES)} in the folder, found none")
            files += inside
        elif not path.is_file():
            raise ConfigError(f"{path}: there is no such file")
        elif path.suffix not in PARQUET + LINES:
            raise ConfigError(
                f"{path}: expected a file {', '.join(PARQUET + LINES)}, found {path.suffix or 'no ending'}"
            )
        else:
            files.append(path)
    return files
