"""One tool for viewing and editing, with the command first, as many models were trained to call it.

The same machinery as `agentkit_tools.files`, under the names of that convention: `view`, `create`, `str_replace`,
`insert`. Use it for models that know it, and `Files` for all others; both may work in one folder.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from typing import Literal

from agentkit import ToolResult, openapi_schema, xml_schema
from agentkit_tools.folder import file_changes, file_search
from agentkit_tools.folder.file_changes import Edit
from agentkit_tools.folder.folder_walk import FileSelection
from agentkit_tools.folder.rooted_folder import Refusal, RootedTool, answer, encode, parts
from agentkit_tools.folder.textfiles import FileContents, fitting, is_utf8, lines_of, read_text

AROUND = 4
"""Lines that are shown before and after a change."""


class StrReplaceEditor(RootedTool):
    """Views, creates and edits text files in one folder by one method; nothing outside it is reached.

    All rules of `agentkit_tools.files.Files` apply here: links are not followed, protected names are not
    written, other programs' changes are not lost. A path may also be absolute, as these models often write it, if it
    begins with the folder's own path.

    Viewing a folder needs the extra `agentkit-calls[files]`.

    Args:
        root: the folder, by default the current one; created if missing.
        protected: names that may be viewed but not written, as for `Files`.
    """

    @openapi_schema
    @xml_schema(
        name="str_replace_editor",
        attributes=["command", "path", "insert_line"],
        elements=["file_text", "old_str", "new_str", "insert_text", "view_range"],
    )
    def str_replace_editor(
        self,
        command: Literal["view", "create", "str_replace", "insert"],
        path: str,
        file_text: str | None = None,
        old_str: str | None = None,
        new_str: str | None = None,
        insert_line: int | None = None,
        insert_text: str | None = None,
        view_range: list[int] | None = None,
    ) -> ToolResult:
        """View, create and edit text files.

        view shows a file with numbered lines, or a folder two levels deep. create makes a new file; an existing one is
        not changed. str_replace replaces old_str, which must occur exactly once, with new_str. insert puts text, as
        whole lines, after a line.

        Args:
            command: what to do
            path: file or folder, relative to the working folder
            file_text: for create, the complete text of the file
            old_str: for str_replace, the text to replace, exactly as in the file, without line numbers
            new_str: for str_replace, the replacement; omit it to delete the piece. In a file of CRLF lines, its
                lines and those of insert_text also get CRLF
            insert_line: for insert, the line after which to put the text; 0 for the beginning of the file
            insert_text: for insert, the text; new_str is also accepted
            view_range: for view of a file, the first and last line, such as [11, 20]; -1 as the last means the end
        """
        return answer(
            lambda: {
                "view": lambda: self._view(self._inside(path), view_range),
                "create": lambda: self._create(self._inside(path), file_text),
                "str_replace": lambda: self._replace(self._inside(path), old_str, new_str),
                "insert": lambda: self._insert(
                    self._inside(path), insert_line, new_str if insert_text is None else insert_text
                ),
            }[command]()
        )

    def _inside(self, path: str) -> str:
        """The path relative to the folder, if it begins with the folder's own path."""
        root = str(self.root)
        if path == root:
            return "."
        return path.removeprefix(root + "/").lstrip("/") if path.startswith(root + "/") else path

    def _view(self, path: str, view_range: Sequence[int] | None) -> str:
        if self._is_folder(path):
            if view_range is not None:
                raise Refusal(f"view_range is for files; {path!r} is a folder")
            return file_search.list_entries(self._place, FileSelection(path, depth=2))
        names = parts(path, "path")
        with self._place.folder(names) as folder:
            file = read_text(folder, names[-1], path)
        lines = lines_of(file.content)
        first, last = _range(view_range, len(lines), path)
        wanted = number_lines(lines[first - 1 : last], first)
        shown = fitting(wanted)
        notes = _notes(file, len(lines), first, wanted, shown)
        newline = "\n" if notes and shown and not shown[-1].endswith("\n") else ""
        return "".join(shown) + newline + (f"[{'; '.join(notes)}]" if notes else "")

    def _is_folder(self, path: str) -> bool:
        if path in (".", "./"):
            return True
        names = parts(path.rstrip("/"), "path")
        with self._place.folder(names) as folder:
            return stat.S_ISDIR(file_changes.status_of(folder, names[-1], path).st_mode)

    def _create(self, path: str, text: str | None) -> str:
        size = file_changes.create(self._place, path, _required_text("create", "file_text", text), "file_text")
        return f"created {path} ({size} bytes)"

    def _replace(self, path: str, old: str | None, new: str | None) -> str:
        names = self._place.writable(path, "path")
        change = file_changes.replacement(_required_text("str_replace", "old_str", old), new or "", path)
        done = file_changes.edit(self._place, names, path, change)
        return _describe_edit(path, done, (new or "").count("\n") + 1)

    def _insert(self, path: str, line: int | None, text: str | None) -> str:
        names = self._place.writable(path, "path")
        if line is None:
            raise Refusal("the command insert needs insert_line")
        given = encode("insert_text", _required_text("insert", "insert_text", text))
        done = file_changes.edit(self._place, names, path, lambda content: insert_lines(content, line, given, path))
        return _describe_edit(path, done, given.removesuffix(b"\n").count(b"\n") + 1)


def _required_text(command: str, parameter: str, text: str | None) -> str:
    if text is None:
        raise Refusal(f"the command {command} needs {parameter}")
    return text


def _range(view_range: Sequence[int] | None, lines: int, path: str) -> tuple[int, int]:
    """The first and last line that are meant, both counted from 1."""
    if view_range is None:
        return 1, max(lines, 1)
    if len(view_range) != 2:
        raise Refusal(f"view_range is the first and the last line, such as [11, 20]; got {list(view_range)}")
    first, last = view_range
    last = lines if last == -1 else last
    if not 1 <= first <= max(lines, 1) or last < first:
        raise Refusal(f"view_range {list(view_range)} does not fit: {path!r} has {lines} lines, counted from 1")
    return first, min(last, lines)


def _notes(file: FileContents, lines: int, first: int, wanted: Sequence[str], shown: Sequence[str]) -> list[str]:
    """Return notes on the lines missing from a view, and how to see them."""
    notes = [] if lines else ["the file is empty"]
    last = first + len(shown) - 1
    if len(shown) < len(wanted):
        notes.append(f"cut: lines {first}-{last} of {lines}; continue with view_range=[{last + 1}, -1]")
    elif shown and shown[-1] != wanted[-1]:
        notes.append(f"cut: the beginning of line {last}, which is {len(wanted[-1])} characters long")
    if file.size > len(file.content):
        notes.append(f"only the first {len(file.content)} of the file's {file.size} bytes can be read")
    if not is_utf8(file.content):
        notes.append("not valid UTF-8: U+FFFD replaces what cannot be decoded")
    return notes


def number_lines(lines: Sequence[str], first: int) -> list[str]:
    """Return the lines, each with its number and a tab, as `cat -n` writes them."""
    return [f"{number:6}\t{line}" for number, line in enumerate(lines, first)]


def insert_lines(content: bytes, line: int, text: bytes, path: str) -> Edit:
    """Insert text as whole lines after a line, with the line ends of the file."""
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    if not 0 <= line <= len(lines):
        raise Refusal(f"insert_line {line} does not exist: {path!r} has {len(lines)} lines; 0 means before the first")
    given = text.removesuffix(b"\n") + b"\n"
    (new,) = file_changes.with_ends_of(content, given)
    ends = file_changes.CRLF_KEPT if new != given else ""
    place = sum(len(before) + 1 for before in lines[:line])
    if place > len(content):  # the last line has no end; the new one has one if it was given
        end = b"\r\n" if new.endswith(b"\r\n") else b"\n"
        return Edit(content + end + (new if given == text else new.removesuffix(end)), [line + 1], ends=ends)
    return Edit(content[:place] + new + content[place:], [line + 1], ends=ends)


def _describe_edit(path: str, done: Edit, height: int) -> str:
    """Describe a change, with the lines around it as they are now."""
    line = done.lines[0]
    first = max(1, line - AROUND)
    lines = lines_of(done.content)[first - 1 : line + height - 1 + AROUND]
    shown = "".join(fitting(number_lines(lines, first)))
    return f"changed {path}{done.ends}; lines {first}-{first + len(lines) - 1} are now:\n{shown}".rstrip("\n")
