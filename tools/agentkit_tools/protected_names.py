"""The names that a model may not write, each with its reason. Reads no file.

They run code, or change which code runs, when someone only enters the folder, opens it in an editor, commits, pushes or
starts a common program there, without naming the file; or they contain secrets. Files that only run when named, such as
a `Makefile` or a test, are not included.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple


def _yaml(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}.{extension}" for name in names for extension in ("yml", "yaml"))


def _settings(*names: str) -> tuple[str, ...]:
    """Files of settings, hidden or not, in each format: a program that reads one of these also reads the others."""
    return tuple(f"{dot}{name}.{ending}" for name in names for dot in ("", ".") for ending in ("y*ml", "toml", "json*"))


REASONS: Final[Mapping[str, tuple[str, ...]]] = {
    "git and other version control systems run hooks and commands from it": (
        *(".git", "git~1", ".gitconfig", ".gitmodules", ".config/git", ".githooks", ".git-hooks", ".hg", ".hgrc"),
        *(".svn", ".bzr", ".jj", "_darcs", ".config/jj", ".husky", ".huskyrc*", ".simple-git-hooks.*"),
        *("simple-git-hooks.*", ".lefthook", ".lefthook-local", ".lintstagedrc*", "lint-staged.config.*"),
        *_settings("pre-commit-config", "prek", "lefthook", "lefthook-local", "overcommit", "captainhook", "grumphp"),
    ),
    "it contains secrets, or says where they are sent": (
        # not `.env.example`, `.env.production.template` and their kind, which exist to be shared, and not `.venv`
        *(".[!v]*env", ".env", ".env.local", ".env.*.local", ".env.dev", ".env.development", ".env.prod"),
        ".env.production",
        *(".env.stage", ".env.staging", ".env.test", ".env.testing", ".env.ci", ".env.qa", ".env.uat", ".env.int"),
        *(".env.preview", ".env.preprod", ".env.live", ".env.docker", ".env.secret", ".env.secrets", ".env.private"),
        *(".env.vault", ".env.keys", ".env.bak", ".env.backup", ".env.old", ".env.orig", ".env.save"),
        *("id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", ".password-store"),
        *(".ssh", ".gnupg", ".aws", ".azure", ".oci", ".config/gcloud", ".boto", ".s3cfg", ".config/rclone", ".kube"),
        *(".docker", ".dockercfg", ".config/containers", ".config/doctl", ".config/op", ".databrickscfg", ".snowsql"),
        *(".netrc", ".netrc.gpg", "_netrc", ".htpasswd", ".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf"),
        *(".rediscli_auth", ".msmtprc", ".fetchmailrc", ".git-credentials", ".gitcookies", ".config/gh"),
        *(".config/glab-cli", ".config/hub", ".pypirc", ".pip", ".config/pip", "pip.conf", "pip.ini", ".condarc"),
        *(".npmrc", ".yarnrc", *_yaml(".yarnrc"), ".gem", ".gemrc", ".m2", ".nuget", ".composer", ".config/composer"),
        *(".curlrc", "_curlrc", ".wgetrc", ".terraformrc", "terraform.rc", ".terraform.d", ".vault-token", ".kaggle"),
        *(".huggingface", ".modal.toml"),
    ),
    "a shell runs it on startup or when entering the folder": (
        *(".envrc", ".envrc.*", ".config/direnv", ".autoenv*", ".localrc", ".*rc.local"),
        *(*_settings("mise", "mise.*"), ".mise", "mise", ".config/mise.toml", ".tool-versions", ".asdfrc"),
        *(".rvmrc", ".sdkmanrc", ".bashrc", ".bashrc.d", ".bash_profile", ".bash_login", ".bash_logout"),
        *(".bash_aliases", ".bash_completion", ".bash_completion.d", ".profile", ".inputrc", ".editrc", ".zshrc"),
        *(".zshrc.d", ".zshrc.local", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".config/zsh", ".oh-my-zsh"),
        *(".kshrc", ".mkshrc", ".shrc", ".shinit", ".cshrc", ".tcshrc", ".login", ".logout", ".login_conf", ".yashrc"),
        *(".yash_profile", ".config/yash", ".config/fish", "config.fish", ".config/nushell", ".xonshrc"),
        *(".config/xonsh", ".elvish", ".config/elvish", ".config/powershell", "profile.ps1", "*_profile.ps1"),
        *(".xinitrc", ".xserverrc", ".xsession", ".xsessionrc", ".xprofile", ".pam_environment"),
        *(".config/environment.d", ".config/autostart", ".config/systemd", ".tmux.conf", ".config/tmux", ".screenrc"),
        *(".config/zellij", ".config/starship.toml", ".wezterm.lua", ".config/wezterm", ".config/kitty"),
    ),
    "Python runs it when started there": (
        *("sitecustomize.py", "usercustomize.py", "*.pth", "*.egg-link", "pyvenv.cfg", "__pycache__", "conftest.py"),
        *(".pythonrc", ".pythonrc.py", ".pythonstartup", ".pdbrc", ".pdbrc.py", ".ipython", ".jupyter", ".ptpython"),
        *(".config/ptpython", ".config/bpython"),
    ),
    "another program runs it when started there": (
        *(".gdbinit", ".gdbearlyinit", ".config/gdb", ".lldbinit", ".radare2rc", ".Rprofile", ".Renviron", ".RData"),
        *(".octaverc", ".juliarc.jl", ".julia", ".irbrc", ".pryrc", ".byebugrc", ".perldb", ".psysh.php", ".ghci"),
        *(".ocamlinit", ".iex.exs", ".erlang", ".guile", ".racketrc", ".sbclrc", ".clisprc", ".eclrc", ".gnuplot"),
        *(".psqlrc", ".sqliterc", ".duckdbrc", ".mongorc.js", ".mongoshrc.js", ".mailcap", ".lessfilter"),
        *(".latexmkrc", "latexmkrc", ".cargo", ".mvn", ".gradle", "init.gradle", "init.gradle.kts", ".sbtopts"),
        *(".jvmopts", ".sbt", ".lein", ".bazelrc", ".buckconfig", ".bundle", ".pnpmfile.*", ".pnp.*", ".yarn"),
        *("ansible.cfg", ".ansible.cfg", ".ansible"),
    ),
    "an editor runs tasks and commands from it": (
        *(".vscode", "*.code-workspace", ".config/Code", ".idea", ".vs", ".fleet", ".zed", ".config/zed", ".nova"),
        *("*.sublime-project", "*.sublime-workspace", "*.sublime-build", ".externalToolBuilders", ".devcontainer"),
        *(*_settings("devcontainer", "gitpod", "devfile"), ".idx", ".replit", "replit.nix"),
        *(".codesandbox", ".stackblitzrc", ".vimrc", "_vimrc", ".gvimrc", "_gvimrc", ".ideavimrc", ".exrc", ".nvimrc"),
        *(".nvim.lua", ".lvimrc", ".vimspector.json", ".vim", "vimfiles", ".config/nvim", ".helix", ".config/helix"),
        *(".kakrc", ".config/kak", ".nanorc", ".config/nano", ".config/micro", ".dir-locals.el", ".dir-locals-2.el"),
        *(".emacs", ".emacs.el", ".emacs.d", ".config/emacs", ".spacemacs", ".spacemacs.d", ".doom.d", ".config/doom"),
    ),
    "a coding agent starts commands and servers from it": (
        *(".claude", ".claude.json", ".cursor", ".codex", ".gemini", ".windsurf", ".continue", ".continuerc.json"),
        *(*_settings("mcp", "opencode", "crush"), ".opencode", ".config/opencode", ".roo"),
        *(".kilocode", ".kiro", ".amazonq", ".qwen", ".cline", ".clinerules", ".augment", ".trae", ".junie", ".goose"),
        *(".config/goose", ".crush", ".copilot", ".factory", ".openhands", ".agents"),
        *(".agent", ".amp", ".zencoder", ".qoder", ".codebuddy", ".iflow", ".vibe", ".warp", ".devin", ".tabnine"),
        *(*_settings("aider.conf", "aider.model.settings"), ".github/agents", ".github/hooks", ".github/prompts"),
        *(".github/skills", ".github/instructions", ".github/copilot-instructions.md"),
    ),
    "a CI server runs it when it is pushed": (
        *(".github/workflows", ".github/actions", *_yaml(".github/*"), ".github/*.json", ".gitea/workflows"),
        *(".forgejo/workflows", ".gitlab/ci", ".gitlab/agents", ".circleci", ".azure-pipelines", "Jenkinsfile*"),
        *(".woodpecker", ".buildkite", ".teamcity", ".semaphore", ".tekton", ".harness", ".builds", ".depot"),
        *(".space.kts", ".drone.star", ".drone.jsonnet", ".cirrus.star", ".vela", ".zuul.d", "zuul.d", ".copr"),
        *_settings("gitlab-ci", "travis", "azure-pipelines", "vsts-ci", "bitbucket-pipelines", "drone", "woodpecker"),
        *_settings("cirrus", "appveyor", "cloudbuild", "buildspec", "readthedocs", "codemagic", "bitrise", "wercker"),
        *_settings("shippable", "codefresh", "screwdriver", "vela", "zuul", "packit", "onedev-buildspec"),
        *_settings("scrutinizer", "netlify", "vercel"),
        *_yaml(".build", "amplify", "render"),
    ),
    "a desktop runs it when someone opens it or the folder": (
        *("*.desktop", ".directory", "autorun.inf", "desktop.ini", "*.lnk", "*.scf"),
    ),
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
    folded = [_fold_case(name) for name in names]
    read = _Patterns.of(frozenset(patterns))
    if not any(map(read.begins, folded)):  # most names begin none of them
        return None
    for pattern, wanted in read.all:
        for start in range(len(folded) - len(wanted) + 1):
            if all(match(name) for match, name in zip(wanted, folded[start:], strict=False)):
                return f"{pattern!r} is protected" + (f": {_WHY[pattern]}" if pattern in _WHY else "")
    return None


_Match = Callable[[str], object]


class _Patterns(NamedTuple):
    """Patterns as they are compared: `fnmatch` itself remembers fewer than there are."""

    begins: _Match
    """Whether a name is the first one of any pattern."""
    all: tuple[tuple[str, tuple[_Match, ...]], ...]
    """The patterns in order, each with what matches its names."""

    @classmethod
    @lru_cache(maxsize=32)
    def of(cls, patterns: frozenset[str]) -> _Patterns:
        read = [(pattern, [translate(_fold_case(part)) for part in pattern.split("/")]) for pattern in sorted(patterns)]
        firsts = dict.fromkeys(parts[0] for _, parts in read)
        every = tuple((pattern, tuple(re.compile(part).match for part in parts)) for pattern, parts in read)
        return cls(re.compile("|".join(firsts) or r"(?!)").match, every)


def protected_in(root: str | Path | None, patterns: Collection[str]) -> list[str]:
    """The files and folders at the top of a folder that patterns protect; of consecutive names, the first one's folder.

    Links are left out: only their targets can be protected.
    """
    if root is None or not os.path.isdir(root):
        return []
    with os.scandir(root) as entries:
        names = [entry.name for entry in entries if not entry.is_symlink()]
    read = _Patterns.of(frozenset(patterns))
    return sorted(name for name in names if read.begins(_fold_case(name)) and _protects(read, Path(root, name)))


def _protects(patterns: _Patterns, path: Path) -> bool:
    begun = (pattern for pattern, wanted in patterns.all if wanted[0](_fold_case(path.name)))
    rests = (pattern.partition("/")[2] for pattern in begun)
    return any(not rest or any(path.glob(rest)) for rest in rests)


_UNSEEN: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""What file systems that ignore case also ignore, besides format characters. Source: Default_Ignorable_Code_Point."""


def _fold_case(name: str) -> str:
    """A name as the most lenient file system compares it.

    Ignoring case, Unicode forms and invisible characters; without the dots and spaces at its end and the stream after a
    colon, which Windows' file systems drop, wherever they are mounted.
    """
    plain = unicodedata.normalize("NFKC", name)
    folded = "".join(c for c in plain if unicodedata.category(c) != "Cf" and not _UNSEEN.match(c)).casefold()
    return folded.partition(":")[0].rstrip(". ") if folded.strip(". ") else folded
