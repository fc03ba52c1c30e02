"""The names that a model may not write, each with its reason. Reads no file.

They run code, or change what is run, when someone merely enters the folder, opens it in an editor, commits, pushes or
starts a common program there, without naming the file; or they contain secrets. Files that only run when named, such as
a `Makefile` or a test, are not included.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

REASONS: Final[Mapping[str, tuple[str, ...]]] = {
    "git and other version control systems run hooks and commands from it": (
        *(".git", "git~1", ".gitconfig", ".gitmodules", ".config/git", ".hg", ".hgrc", ".svn", ".husky", ".githooks"),
        *(".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook.yml", ".lefthook.yml", "lefthook.yaml"),
    ),
    "it contains secrets, or says where they are sent": (
        *(".env", ".env.local", ".env.*.local", ".env.development", ".env.production", ".env.staging", ".env.test"),
        *(".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".kube", ".docker", ".netrc", "_netrc", ".pgpass"),
        *(".git-credentials", ".pypirc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pip", "pip.conf", ".condarc", ".gemrc"),
        *(".curlrc", ".wgetrc", ".terraformrc", ".vault-token"),
    ),
    "a shell runs it on startup or when entering the folder": (
        *(".envrc", ".direnv", ".autoenv", ".autoenv.zsh", ".mise.toml", "mise.toml", ".mise", ".tool-versions"),
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login"),
        *(".config/fish", "config.fish", ".config/autostart", ".config/systemd", ".tmux.conf", ".screenrc"),
    ),
    "Python runs it when started there": (
        *("sitecustomize.py", "usercustomize.py", "*.pth", "*.egg-link", "pyvenv.cfg", "__pycache__"),
        *(".pythonrc", ".pythonrc.py", ".pdbrc", ".pdbrc.py", ".ipython", ".jupyter", "conftest.py"),
    ),
    "another program runs it when started there": (
        *(".gdbinit", ".lldbinit", ".Rprofile", ".Renviron", ".irbrc", ".pryrc", ".psqlrc", ".sqliterc", ".perldb"),
        *(".cargo", ".mvn", ".gradle", "init.gradle", ".bundle", ".pnpmfile.cjs", ".pnp.cjs", ".yarn", "ansible.cfg"),
    ),
    "an editor runs tasks and commands from it": (
        *(".vscode", "*.code-workspace", ".idea", ".vs", ".fleet", ".zed", "*.sublime-project"),
        *(".devcontainer", ".devcontainer.json", ".vimrc", ".gvimrc", ".exrc", ".nvimrc", ".nvim.lua", ".lvimrc"),
        *(".vim", ".config/nvim", ".dir-locals.el", ".dir-locals-2.el", ".emacs", ".emacs.d"),
    ),
    "a coding agent starts commands and servers from it": (
        *(".claude", ".cursor", ".codex", ".gemini", ".windsurf", ".continue", ".mcp.json"),
    ),
    "a CI server runs it when it is pushed": (
        *(".github/workflows", ".github/actions", ".gitea/workflows", ".forgejo/workflows", ".gitlab-ci.yml"),
        *(".gitlab/ci", ".circleci", ".travis.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "Jenkinsfile"),
        *(".drone.yml", ".woodpecker", ".woodpecker.yml", ".woodpecker.yaml", ".buildkite", ".cirrus.yml"),
        *("appveyor.yml", ".appveyor.yml", ".teamcity", "cloudbuild.yaml"),
    ),
    "a desktop runs it when someone opens it or the folder": ("*.desktop", "autorun.inf"),
}
"""Patterns by their reason: a name, a name with `*`, or consecutive names separated by `/`."""

PROTECTED: Final = frozenset(pattern for patterns in REASONS.values() for pattern in patterns)
"""What may be read but not written, including everything below it."""

_WHY: Final = {pattern: reason for reason, patterns in REASONS.items() for pattern in patterns}


def why_protected(names: Iterable[str], patterns: Collection[str]) -> str | None:
    """The pattern that protects a path, with its reason; None if there is none.

    Args:
        names: the components of the path.
        patterns: patterns as in `PROTECTED`; case-insensitive.

    >>> why_protected(["app", ".envrc"], PROTECTED)
    "'.envrc' is protected: a shell runs it on startup or when entering the folder"
    """
    folded = [_folded(name) for name in names]
    for pattern in sorted(patterns):
        wanted = [_folded(part) for part in pattern.split("/")]
        for start in range(len(folded) - len(wanted) + 1):
            if all(map(fnmatchcase, folded[start : start + len(wanted)], wanted)):
                return f"{pattern!r} is protected" + (f": {_WHY[pattern]}" if pattern in _WHY else "")
    return None


def protected_in(root: str | Path | None, patterns: Collection[str]) -> list[str]:
    """The files and folders at the top of a folder that patterns protect; of consecutive names, the first one's folder.

    Links are left out: what can be protected is what they lead to.
    """
    if root is None or not os.path.isdir(root):
        return []
    with os.scandir(root) as entries:
        names = [entry.name for entry in entries if not entry.is_symlink()]
    return sorted(name for name in names if any(_protects(pattern, Path(root, name)) for pattern in patterns))


def _protects(pattern: str, path: Path) -> bool:
    first, _, rest = pattern.partition("/")
    return why_protected([path.name], [first]) is not None and (not rest or Path(path, rest).exists())


def _folded(name: str) -> str:
    """A name as the most lenient file system compares it.

    Ignoring case, Unicode forms and invisible characters; without the dots and spaces at its end and the stream after a
    colon, which Windows' file systems, also mounted elsewhere, drop.
    """
    plain = unicodedata.normalize("NFKC", name)
    folded = "".join(c for c in plain if unicodedata.category(c) != "Cf").casefold()
    return folded.partition(":")[0].rstrip(". ") if folded.strip(". ") else folded
