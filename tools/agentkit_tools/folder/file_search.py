"""Lists of files and search in files, as text for a model. Knows contents; opens only files.

Searched by RE2, whose design ripgrep's own engine follows: linear in the text, whatever the pattern, and other threads
run at the same time. ripgrep itself is not used: it opens what it finds by path, so a folder that is swapped for a link
between its look and its use leads it out.
"""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from agentkit_tools.folder.folder_walk import Entry, FileSelection, Walk
from agentkit_tools.folder.ignore_files import options, re2
from agentkit_tools.folder.rooted_folder import Refusal, RootedFolder, encode, kind
from agentkit_tools.folder.textfiles import MAX_BYTES, MAX_CHARACTERS, read_file

MAX_LINE: Final = 500
"""Characters of a line that are shown, around what was found."""

MAX_LISTED: Final = 2000
"""Entries of one listing."""

BLOCK: Final = 65_536
"""Bytes that are searched between two looks at the clock, if the pattern is not too large and no line longer."""

WORK: Final = 250_000_000
"""Bytes times instructions of the compiled pattern between two looks at the clock: 2 s of RE2, at worst 8 ns each.

A plain word of 20 letters may so be searched in a line of 10 MB, a pattern of 1,000 instructions in one of 250 kB.
"""


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A search query: the arguments of `Files.search_files`."""

    pattern: str
    literal: bool = False
    ignore_case: bool = False
    context: int = 0
    limit: int = 200


class Answer:
    """Lines for a model, until there is no more room, with a note at the end."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._room = MAX_CHARACTERS

    def add(self, line: str) -> bool:
        """Add a line; False if there is no room for it."""
        self._room -= len(line) + 1
        if self._room >= 0:
            self.lines.append(line)
        return self._room >= 0

    def text(self, notes: list[str]) -> str:
        """The whole answer."""
        return "\n".join([*self.lines, *([f"[{'; '.join(notes)}]"] if notes else [])])


def list_entries(place: RootedFolder, where: FileSelection) -> str:
    """List the selected entries, one per line."""
    walk, answer, notes = Walk(place, where), Answer(), []
    for entry in walk:
        if where.glob and entry.kind == stat.S_IFDIR:
            continue  # a glob asks for files; a folder without any would only distract
        if len(answer.lines) == MAX_LISTED or not answer.add(entry.path + _suffix(entry)):
            notes.append(f"cut: the first {len(answer.lines)} entries; choose a folder, a glob or a depth")
            break
    if not answer.lines:
        notes.append("nothing to list")
    return answer.text([*notes, *describe_omissions(walk.left_out)])


def _suffix(entry: Entry) -> str:
    if entry.kind in (stat.S_IFDIR, stat.S_IFREG):
        return "/" if entry.kind == stat.S_IFDIR else ""
    return f" ({kind(entry.kind)})"


def describe_omissions(left_out: Counter[str]) -> list[str]:
    """Return the entries that a walk left out, in words."""
    return [what if what.startswith("stopped") else f"not seen: {n} {what}" for what, n in sorted(left_out.items())]


def search(place: RootedFolder, where: FileSelection, what: SearchQuery) -> str:
    """Return the lines with the pattern as `path:line:text`, and the lines around them as `path-line-text`."""
    if what.limit < 1 or what.context < 0:
        raise Refusal(f"limit counts from 1 and context from 0; got limit={what.limit}, context={what.context}")
    pattern = compile_pattern(what)
    walk, answer, notes = Walk(place, where), Answer(), []
    found = files = 0
    for entry in walk:
        if entry.kind != stat.S_IFREG:
            continue
        content = _content(entry, walk)
        if content is None:
            continue
        files += 1
        lines = list(hits(content, pattern, walk, what.limit + 1 - found))
        full = len(lines) > what.limit - found
        lines = lines[: what.limit - found]
        if lines and what.context and found:
            answer.add("--")
        if not all(map(answer.add, render_lines(entry.path, content, lines, what.context))):
            notes.append("cut: no room for more; choose a folder, a glob or a narrower pattern")
            break
        found += len(lines)
        if full:
            notes.append(f"cut: the first {what.limit} lines found; choose a folder, a glob or a narrower pattern")
            break
    if not found and not notes:
        notes.append(f"nothing found in {files} file{'' if files == 1 else 's'}")
    return answer.text([*notes, *describe_omissions(walk.left_out)])


def compile_pattern(what: SearchQuery) -> Any:
    """Compile the pattern. Raises `Refusal` for one that RE2 cannot read."""
    if not what.pattern or "\n" in what.pattern:
        found = "contains a line end; lines are searched one by one" if what.pattern else "is empty"
        raise Refusal(f"pattern {found}")
    text = encode("pattern", what.pattern)
    chosen = options(literal=what.literal, case_sensitive=not what.ignore_case, never_nl=not what.literal)
    try:
        return re2().compile(text if what.literal else b"(?m)" + text, chosen)
    except re2().error as e:
        why = e.args[0].decode() if isinstance(e.args[0], bytes) else e.args[0]
        raise Refusal(
            f"pattern {what.pattern!r:.200} is not a regular expression: {why.replace('(?m)', '', 1)}; "
            "to search for it as plain text, set literal to true"
        ) from e


def _content(entry: Entry, walk: Walk) -> bytes | None:
    try:
        file = read_file(entry.folder, entry.names[-1], entry.path)
    except (Refusal, OSError):
        walk.left_out["files that cannot be opened"] += 1
        return None
    if file.size > MAX_BYTES:
        walk.left_out[f"files of more than {MAX_BYTES} bytes"] += 1
        return None
    if b"\0" in file.content:
        walk.left_out["binary files"] += 1
        return None
    return file.content.removeprefix(b"\xef\xbb\xbf")


def hits(content: bytes, pattern: Any, walk: Walk, most: int) -> Iterator[tuple[int, int]]:
    """Return the first lines with the pattern, counted from 0, each with the byte of the line where it begins."""
    position = counted = line = 0
    block = min(BLOCK, WORK // pattern.programsize)
    while position < len(content) and most > 0 and not walk.expired:
        end = content.find(b"\n", position + block)
        end = len(content) - content.endswith(b"\n") if end == -1 else end
        if (end - position) * pattern.programsize > WORK:
            before = content.rfind(b"\n", position, position + block)
            if before == -1:
                walk.left_out["lines that are too long for this pattern"] += 1
                position = end + 1
                continue
            end = before
        match = pattern.search(content, position, end)
        if match is None:
            position = end + 1
            continue
        line += content.count(b"\n", counted, match.start())
        counted = match.start()
        yield line, counted - (content.rfind(b"\n", 0, counted) + 1)
        most -= 1
        after = content.find(b"\n", counted)
        position = len(content) if after == -1 else after + 1


def render_lines(path: str, content: bytes, lines: list[tuple[int, int]], context: int) -> Iterator[str]:
    """Render the lines found, with those around them; `--` separates lines that are not adjacent."""
    if not lines:
        return
    texts = content.split(b"\n")
    if not texts[-1]:
        texts.pop()
    found = dict(lines)
    near = {n for line in found for n in range(max(0, line - context), min(len(texts), line + context + 1))}
    previous = min(near) - 1
    for number in sorted(near):
        if previous != number - 1 and context:
            yield "--"
        previous = number
        mark = ":" if number in found else "-"
        yield f"{path}{mark}{number + 1}{mark}{_shorten_line(texts[number], found.get(number, 0))}"


def _shorten_line(line: bytes, column: int) -> str:
    """A line; of a long one, the part around the byte at `column`."""
    text = line.decode("utf-8", "replace").rstrip("\r")
    if len(text) <= MAX_LINE:
        return text
    wanted = len(line[:column].decode("utf-8", "replace")) - MAX_LINE // 4
    start = max(0, min(wanted, len(text) - MAX_LINE))
    return f"[characters {start + 1}-{start + MAX_LINE} of {len(text)}] {text[start : start + MAX_LINE]}"
