"""Ignore files and globs as ripgrep reads them. Knows patterns and relative paths; opens nothing.

pathspec, the library for such patterns, judges the paths of files: of `*`, `!*/`, `!*.py` it says that every folder is
ignored. A walk that leaves ignored folders out has to judge each folder by itself, so the patterns are translated here.
Matching is RE2's, in linear time: a pattern such as `*a*a*a*a*b` in somebody's ignore file cannot make a walk hang.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentkit.errors import install_command
from agentkit_tools.folder.rooted_folder import Refusal

IGNORE_FILES: Final = (".rgignore", ".ignore", ".gitignore")
"""By precedence: a verdict of the first kind, wherever it is, outweighs all verdicts of the next."""

MAX_PATTERN: Final = 2000
"""Characters of one; the system's longest name has 255."""

MAX_PATTERNS: Final = 10_000
"""Of one ignore file that are honoured; the longest in large public repositories has about 1,000."""


def re2() -> Any:
    """The library RE2, which comes with the extra `files`."""
    try:
        import re2 as library
    except ImportError as e:
        raise Refusal(
            "listing and searching need the library google-re2, which is not installed here: "
            f"{install_command('files')}"
        ) from e
    return library


def options(**changed: Any) -> Any:
    """RE2's options, silent on errors, which are raised anyway."""
    made = re2().Options()
    for name, value in {"log_errors": False, **changed}.items():
        setattr(made, name, value)
    return made


class Rules:
    """The patterns of one ignore file, or one glob.

    Args:
        lines: the patterns, one per line, in the syntax of `.gitignore`, and with `{a,b}` for alternatives. A line that
            is not a pattern is skipped.

    Attributes:
        left_out: how many patterns are not honoured: they are too long, or all are together too much for RE2.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._verdicts: list[tuple[bool, bool]] = []  # whether it excludes, whether it is about folders only
        self.left_out = 0
        patterns = re2().Set.SearchSet(options(dot_nl=True))
        for line in lines:
            if len(line) > MAX_PATTERN or len(self._verdicts) == MAX_PATTERNS:
                self.left_out += 1
                continue
            read = translate(line)
            if read is None:
                continue
            pattern, excludes, folders_only = read
            try:
                patterns.Add(pattern)
            except re2().error:  # such as the reversed range [z-a], which git also skips
                continue
            self._verdicts.append((excludes, folders_only))
        try:
            if self._verdicts:
                patterns.Compile()
        except re2().error:  # more than its memory holds
            self.left_out += len(self._verdicts)
            self._verdicts = []
        self._patterns = patterns

    @property
    def includes(self) -> bool:
        """True if any pattern includes entries, that is, does not start with `!`; those of a glob all do."""
        return any(excludes for excludes, _ in self._verdicts)

    def __bool__(self) -> bool:
        return bool(self._verdicts)

    def match(self, path: str, is_folder: bool) -> bool | None:
        """The verdict of the last pattern that matches: True for a plain one, False for one with `!`; None without."""
        if not self._verdicts:
            return None
        found = self._patterns.Match(path.encode("utf-8", "replace")) or ()
        last = max((n for n in found if is_folder or not self._verdicts[n][1]), default=None)
        return None if last is None else self._verdicts[last][0]


def translate(line: str) -> tuple[str, bool, bool] | None:
    """Translate a line of an ignore file to a regular expression, and say if it excludes, and if only folders match."""
    line = line.rstrip("\r\n")
    line = re.sub(r"(?<!\\) +$", "", line)
    if not line or line.startswith("#"):
        return None
    excludes = not line.startswith("!")
    line = line if excludes else line[1:]
    folders_only, line = line.endswith("/"), line.removesuffix("/")
    if not line:
        return None
    anywhere = "" if "/" in line else "(?:.*/)?"
    body = glob_regex(line.removeprefix("/"))
    return None if body is None else (f"^{anywhere}{body}$", excludes, folders_only)


_TOKEN: Final = re.compile(
    r"""(?P<escaped>\\.)
    | (?P<above>(?:^|(?<=/))\*\*/)           # **/ at the start or in the middle: any folders, or none
    | (?P<below>(?<=/)\*\*$)                 # /** at the end: everything inside
    | (?P<stars>\*+)
    | (?P<any>\?)
    | \[ (?P<not>[!^]?) (?P<set> \]? (?: \\. | \[:[a-z]+:\] | [^\]\\] )* ) \]
    | (?P<brace>[{},])
    | (?P<plain>.)""",
    re.VERBOSE | re.DOTALL,
)

_MEANING: Final[Mapping[str, str]] = {
    "above": "(?:.*/)?",
    "below": ".+",
    "stars": "[^/]*",
    "any": "[^/]",
}


def glob_regex(glob: str) -> str | None:
    """A glob as a regular expression for a whole relative path; None if its brackets or braces are not closed."""
    pieces: list[str] = []
    depth = 0
    for token in _TOKEN.finditer(glob):
        kind = token.lastgroup or "plain"
        if kind in _MEANING:
            pieces.append(_MEANING[kind])
        elif kind == "set":
            pieces.append(_class(token["set"], negated=bool(token["not"])))
        elif kind == "brace" and (token[0] != "," or depth):
            depth += {"{": 1, "}": -1, ",": 0}[token[0]]
            pieces.append({"{": "(?:", "}": ")", ",": "|"}[token[0]])
        elif token[0] == "[" or depth < 0:
            return None
        else:
            pieces.append(re.escape(token[0][-1]))
    return "".join(pieces) if depth == 0 else None


def _class(body: str, *, negated: bool) -> str:
    """The body of a bracket expression as RE2 writes it."""
    body = re.sub(r"^\]", r"\\]", body)
    body = re.sub(r"\[(?!:)", r"\\[", body)
    body = re.sub(r"^\^", r"\\^", body)
    return f"[^/{body}]" if negated else f"[{body}]"


@dataclass(frozen=True, slots=True)
class Scope:
    """The ignore files of one folder.

    Args:
        depth: the number of components of the folder's path.
        rules: by the name of the ignore file.
        is_repository: whether the folder contains `.git`: the `.gitignore` files above it do not count below it.
    """

    depth: int
    rules: Mapping[str, Rules]
    is_repository: bool


def verdict(scopes: Sequence[Scope], names: Sequence[str], is_folder: bool) -> bool | None:
    """Return True if the ignore files exclude an entry, False if a pattern with `!` includes it, None without a match.

    Args:
        scopes: of the folders on the entry's path, the outermost first.
        names: the components of its path.
        is_folder: whether it is a folder.
    """
    for file in IGNORE_FILES:
        for scope in reversed(scopes):
            if file in scope.rules:
                found = scope.rules[file].match("/".join(names[scope.depth :]), is_folder)
                if found is not None:
                    return found
            if file == ".gitignore" and scope.is_repository:
                break
    return None
