"""Files in one folder: created, read, changed, moved, deleted, listed and searched. Knows agentkit's public API.

The work is done in `textfiles`, `file_changes` and `file_search` of `agentkit_tools.folder`; `rooted_folder` keeps it
inside the folder. Needs a POSIX system.
"""

from __future__ import annotations

from agentkit import ToolResult, openapi_schema, xml_schema
from agentkit_tools.folder import file_changes, file_search
from agentkit_tools.folder.folder_walk import FileSelection
from agentkit_tools.folder.rooted_folder import RootedTool, answer
from agentkit_tools.folder.textfiles import read


class Files(RootedTool):
    """Creates, reads, changes, lists and searches text files in one folder, and reaches nothing outside it.

    Refused before anything is opened: `..`, absolute paths, `~`, drive letters, backslashes, NUL, over-long names.
    Refused while walking: symbolic links regardless of their target, pipes, devices, sockets. A file is changed by
    writing a new one next to it and renaming it, so that readers see either the old or the new text, never a mixture;
    its owner, mode, access list and extended attributes are preserved, or it is not changed.

    Any number of instances, in any number of processes on one machine, may work on the same files: a change holds the
    lock of the file's folder. A change by another program that does not take the lock is seen by a last check, and not
    overwritten, unless it falls between this check and the renaming, some microseconds later. On a file system that
    cannot lock a folder, such as NFS, only this check separates two processes.

    `list_files` and `search_files` need the extra `agentkit-calls[files]`.

    Args:
        root: the folder, by default the current one; created if missing. The tool is tied to this very folder: if
            another one, or a link, takes its place later, everything is refused.
        protected: entries that may be read but not written, like all below them: names, maybe with `*`, or paths such
            as `.github/workflows`; case-insensitive. By default `PROTECTED`, a set that can be extended.
    """

    @openapi_schema
    @xml_schema(name="create-file", attributes=["file_path"], content="file_contents")
    def create_file(self, file_path: str, file_contents: str) -> ToolResult:
        """Create a new text file, and any missing folders. An existing file is not changed.

        Args:
            file_path: path relative to the working folder, such as src/main.py
            file_contents: the complete text, written exactly as given
        """
        return answer(
            lambda: f"created {file_path} ({file_changes.create(self._place, file_path, file_contents)} bytes)"
        )

    @openapi_schema
    @xml_schema(name="read-file", attributes=["file_path", "offset", "limit"])
    def read_file(self, file_path: str, offset: int = 1, limit: int = 2000) -> ToolResult:
        """Read a text file. A long file is cut; a last line in square brackets then says how to continue.

        Args:
            file_path: path relative to the working folder
            offset: the first line to read, counted from 1
            limit: maximum number of lines to read
        """
        return answer(lambda: read(self._place, file_path, offset, limit))

    @openapi_schema
    @xml_schema(name="str-replace", attributes=["file_path", "replace_all"], elements=["old_str", "new_str"])
    def str_replace(self, file_path: str, old_str: str, new_str: str, replace_all: bool = False) -> ToolResult:
        """Replace a piece of a text file. The piece must occur exactly once, unless replace_all is true.

        Args:
            file_path: path relative to the working folder
            old_str: the text to replace, exactly as in the file, with enough context to occur only once
            new_str: the replacement; empty to delete the piece. In a file of CRLF lines, its lines also get CRLF
            replace_all: replace every occurrence instead of exactly one
        """
        return answer(lambda: self._replace(file_path, old_str, new_str, replace_all))

    @openapi_schema
    @xml_schema(name="full-file-rewrite", attributes=["file_path"], content="file_contents")
    def full_file_rewrite(self, file_path: str, file_contents: str) -> ToolResult:
        """Replace the complete contents of an existing file. For a small change use str_replace.

        Args:
            file_path: path relative to the working folder
            file_contents: the complete new text, written exactly as given
        """
        return answer(
            lambda: f"rewrote {file_path} ({file_changes.rewrite(self._place, file_path, file_contents)} bytes)"
        )

    @openapi_schema
    @xml_schema(name="delete-file", attributes=["file_path"])
    def delete_file(self, file_path: str) -> ToolResult:
        """Delete a file or an empty folder. A folder that contains anything is not deleted.

        Args:
            file_path: path relative to the working folder
        """
        return answer(lambda: f"deleted the {file_changes.delete(self._place, file_path)} {file_path}")

    @openapi_schema
    @xml_schema(name="move", attributes=["file_path", "new_path"])
    def move(self, file_path: str, new_path: str) -> ToolResult:
        """Move or rename a file, and create any missing folders. An existing file is never replaced.

        Args:
            file_path: path of the file, relative to the working folder
            new_path: its new path, including its name
        """
        return answer(lambda: self._move(file_path, new_path))

    @openapi_schema
    @xml_schema(name="list-files", attributes=["folder", "glob", "depth", "hidden", "ignored"])
    def list_files(
        self, folder: str = ".", glob: str = "", depth: int = 0, hidden: bool = False, ignored: bool = False
    ) -> ToolResult:
        """List files and folders, one per line; folders end with /. Skips hidden files and what .gitignore names.

        Args:
            folder: where to start, relative to the working folder
            glob: only these files, such as *.py or src/**/*.{ts,tsx}; with ! at the start, all except these
            depth: levels of folders to list; 1 for this folder only, 0 for all
            hidden: include names that start with a dot
            ignored: include what .gitignore, .ignore and .rgignore files exclude
        """
        where = FileSelection(folder, glob=glob, depth=depth, hidden=hidden, ignored=ignored)
        return answer(lambda: file_search.list_entries(self._place, where))

    @openapi_schema
    @xml_schema(
        name="search-files",
        attributes=["folder", "glob", "literal", "ignore_case", "context", "limit", "hidden", "ignored"],
        content="pattern",
    )
    def search_files(
        self,
        pattern: str,
        folder: str = ".",
        glob: str = "",
        literal: bool = False,
        ignore_case: bool = False,
        context: int = 0,
        limit: int = 200,
        hidden: bool = False,
        ignored: bool = False,
    ) -> ToolResult:
        """Search the contents of files, line by line, as ripgrep does. Skips hidden, ignored and binary files.

        Args:
            pattern: a regular expression in RE2 syntax, without look-around and backreferences
            folder: where to search, relative to the working folder; or one file
            glob: only these files, such as *.py or src/**/*.{ts,tsx}; with ! at the start, all except these
            literal: take the pattern as plain text, not as a regular expression
            ignore_case: find upper and lower case
            context: lines to show before and after each line found
            limit: maximum number of lines to find
            hidden: include names that start with a dot
            ignored: include what .gitignore, .ignore and .rgignore files exclude
        """
        where = FileSelection(folder, glob=glob, hidden=hidden, ignored=ignored)
        what = file_search.SearchQuery(pattern, literal=literal, ignore_case=ignore_case, context=context, limit=limit)
        return answer(lambda: file_search.search(self._place, where, what))

    def _replace(self, file_path: str, old_str: str, new_str: str, every: bool) -> str:
        names = self._place.writable(file_path)
        done = file_changes.edit(
            self._place, names, file_path, file_changes.replacement(old_str, new_str, file_path, every=every)
        )
        if done.times == 1:
            return f"replaced 1 occurrence in {file_path}, line {done.lines[0]}{done.ends}"
        lines = ", ".join(map(str, done.lines)) + (", …" if done.times > len(done.lines) else "")
        return f"replaced {done.times} occurrences in {file_path}, lines {lines}{done.ends}"

    def _move(self, file_path: str, new_path: str) -> str:
        file_changes.move(self._place, file_path, new_path)
        return f"moved {file_path} to {new_path}"
