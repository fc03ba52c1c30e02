"""The file tools beside others: other instances and processes, other programs, and what a change must not change."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest

from agentkit import Agent, ToolCall
from agentkit.messages import ToolMessage
from agentkit.testing import ScriptedModel
from agentkit_tools.files import Files
from agentkit_tools.folder import atomic_replace
from agentkit_tools.protected_names import PROTECTED, REASONS, protected_in

EDIT = """
import sys
from agentkit_tools.files import Files
root, first, step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
files = Files(root)
for n in range(first, 60, step):
    result = files.str_replace("c", f"<{n}>", f"[{n}]")
    assert result.ok, result.error
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "c").write_text("".join(f"<{n}>\n" for n in range(60)))
    return folder


ALL = "".join(f"[{n}]\n" for n in range(60))


def test_changes_of_several_instances_are_all_kept(root: Path) -> None:
    errors: list[str | None] = []

    def edit(files: Files, path: str, numbers: range) -> None:
        errors.extend(files.str_replace(path, f"<{n}>", f"[{n}]").error for n in numbers)

    work = [(Files(root), "c"), (Files(root), "c"), (Files(root.parent), "work/c")]  # the last has another root
    threads = [threading.Thread(target=edit, args=(*one, range(k, 60, 3))) for k, one in enumerate(work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(errors) == {None}
    assert (root / "c").read_text() == ALL


def test_changes_of_several_processes_are_all_kept(root: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", EDIT, str(root), str(k), "2"]) for k in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert (root / "c").read_text() == ALL


@pytest.mark.parametrize("locks", [True, False], ids=["locks", "no locks on folders"])
def test_what_another_program_changes_meanwhile_is_kept(
    root: Path, monkeypatch: pytest.MonkeyPatch, locks: bool
) -> None:
    """An editor that knows no lock saves between our reading and our writing, in both ways in which editors do."""
    flush, saves = os.fsync, iter(["in place", "by a new file"])

    def saved_by_an_editor(handle: int) -> None:
        flush(handle)
        how = next(saves, None)
        text = (root / "c").read_text()
        if how == "in place":
            (root / "c").write_text(text.replace("<1>", "<1, of an editor>"))
        elif how is not None:
            (root / "d").write_text(text.replace("<2>", "<2, of an editor>"))
            (root / "d").rename(root / "c")

    def no_lock(*_: object) -> None:
        raise OSError(atomic_replace.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(os, "fsync", saved_by_an_editor)
    if not locks:
        monkeypatch.setattr(fcntl, "flock", no_lock)
    assert Files(root).str_replace("c", "<3>", "[3]").ok
    text = (root / "c").read_text()
    assert [text.splitlines()[n] for n in (1, 2, 3)] == ["<1, of an editor>", "<2, of an editor>", "[3]"]
    assert os.listdir(root) == ["c"]


def test_a_file_that_never_rests_is_left_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def appended(_: int) -> None:
        with (root / "c").open("a") as file:
            file.write("more\n")

    monkeypatch.setattr(os, "fsync", appended)
    result = Files(root).str_replace("c", "<3>", "[3]")
    assert result.error == "'c' was not changed: another program keeps changing it; try again later"
    assert "<3>" in (root / "c").read_text()
    assert os.listdir(root) == ["c"]


def test_a_lock_that_is_never_given_back_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_replace, "LOCK_SECONDS", 0.02)
    holder = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        result = Files(root).str_replace("c", "<3>", "[3]")
        assert result.error == "system error: another program has kept the folder locked for 0.02 s"
        assert Files(root).read_file("c").ok, "who only reads waits for nobody"
    finally:
        os.close(holder)
    assert Files(root).str_replace("c", "<3>", "[3]").ok


def test_waiting_for_the_lock_leaves_the_event_loop_alone(root: Path) -> None:
    async def story() -> ToolMessage:
        call = ToolCall("1", "str_replace", {"file_path": "c", "old_str": "<3>", "new_str": "[3]"})
        holder = os.open(root, os.O_RDONLY)
        fcntl.flock(holder, fcntl.LOCK_EX)
        run = asyncio.ensure_future(Agent(ScriptedModel([call, "Done."]), [Files(root)]).run("Go."))
        for _ in range(20):
            await asyncio.sleep(0.002)
            assert not run.done()
        os.close(holder)
        (answer,) = (m for m in (await run).messages if isinstance(m, ToolMessage))
        return answer

    assert asyncio.run(story()).error is None


# What a change does not change


def access_list(*entries: tuple[int, int, int]) -> bytes:
    """A POSIX access list as Linux keeps it: a version, then tag, permissions and id of each entry."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


NOBODY = 65534
NO_ID = 0xFFFFFFFF
ACL = access_list((0x01, 6, NO_ID), (0x02, 4, NOBODY), (0x04, 0, NO_ID), (0x10, 4, NO_ID), (0x20, 0, NO_ID))


def set_attribute(path: Path, name: str, value: bytes) -> None:
    if not hasattr(os, "setxattr"):
        pytest.skip("this system gives Python no extended attributes")
    try:
        os.setxattr(path, name, value)
    except OSError as e:
        pytest.skip(f"this file system keeps no {name}: {e}")


@pytest.mark.parametrize(
    ("name", "value"), [("user.origin", b"web\0x"), ("user.empty", b""), ("system.posix_acl_access", ACL)]
)
def test_extended_attributes_and_access_lists_are_kept(root: Path, name: str, value: bytes) -> None:
    set_attribute(root / "c", name, value)
    mode = (root / "c").stat().st_mode
    assert Files(root).str_replace("c", "<3>", "[3]").ok
    assert os.getxattr(root / "c", name) == value
    assert (root / "c").stat().st_mode == mode


def test_an_access_list_for_new_files_is_not_given_to_a_changed_one(root: Path) -> None:
    set_attribute(root, "system.posix_acl_default", ACL)
    assert Files(root).str_replace("c", "<3>", "[3]").ok
    assert os.listxattr(root / "c") == []
    assert Files(root).create_file("new", "x").ok
    assert os.listxattr(root / "new") == ["system.posix_acl_access"]


def test_an_attribute_that_cannot_be_kept_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_attribute(root / "c", "user.origin", b"web")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "setxattr", full)
    assert Files(root).str_replace("c", "<3>", "[3]").error == (
        "system error: its extended attribute 'user.origin' could not be kept (No space left on device)"
    )
    assert os.listdir(root) == ["c"]


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@as_root
@pytest.mark.parametrize("mode", [0o640, 0o4755, 0o2755])
def test_root_keeps_the_owner_but_not_that_it_runs_as_him(root: Path, mode: int) -> None:
    os.chown(root / "c", 12, 34)
    (root / "c").chmod(mode)
    assert Files(root).str_replace("c", "<3>", "[3]").ok
    status = (root / "c").stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (12, 34, mode & 0o777)


ONE_EDIT = """
import os, sys
from agentkit_tools.files import Files
files = Files(sys.argv[1])
files.str_replace("no such file", "a", "b")  # all that is to be imported, while the modules can still be read
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
print(files.str_replace("c", "<3>", "[3]").error)
"""


@as_root
def test_who_cannot_keep_the_owner_changes_nothing() -> None:
    with tempfile.TemporaryDirectory() as name:  # not pytest's, which nobody else may look into
        root = Path(name)
        root.chmod(0o777)
        (root / "c").write_text("<3>")
        (root / "c").chmod(0o666)
        done = subprocess.run(
            [sys.executable, "-c", ONE_EDIT, name], capture_output=True, text=True, check=True, timeout=60
        )
        assert done.stdout.strip() == ("system error: the file belongs to user 0 and group 0, which could not be kept")
        assert (root / "c").read_text() == "<3>"
        assert os.listdir(root) == ["c"]


# The folder itself


@pytest.mark.parametrize("what", ["link", "folder", "file", "nothing", "link further up"])
def test_a_folder_that_takes_the_roots_place_is_not_worked_in(tmp_path: Path, what: str) -> None:
    outside, root = tmp_path / "outside", tmp_path / "up" / "work"
    (outside / "work").mkdir(parents=True)
    root.mkdir(parents=True)
    files = Files(root)
    for folder in (outside, outside / "work", root):
        (folder / "a").write_text("old")
    moved = root.parent if what == "link further up" else root
    moved.rename(tmp_path / "moved")
    match what:
        case "link" | "link further up":
            moved.symlink_to(outside)
        case "folder":
            (outside / "work").rename(root)
        case "file":
            root.write_text("x")
    for result in (files.read_file("a"), files.create_file("b", "x"), files.str_replace("a", "old", "new")):
        assert (result.code, "the working folder is" in str(result.error)) == ("denied", True)
    assert {p.read_text() for p in tmp_path.rglob("a")} == {"old"}
    assert not list(tmp_path.rglob("b"))


# Protected names


def sample(pattern: str) -> str:
    return pattern.replace("*", "x")


WAYS: list[Callable[[str], str]] = [
    str.upper,
    "deep/in/{}".format,
    "{}/below".format,
    lambda path: path[:2] + "\u200c" + path[2:],  # a character that shows nothing, and that some file systems drop
]


def test_what_is_protected_is_not_written_wherever_it_stands(tmp_path: Path) -> None:
    """Each pattern as it is, and in one of the ways."""
    files = Files(tmp_path)
    for n, pattern in enumerate(sorted(PROTECTED)):
        for path in (sample(pattern), WAYS[n % len(WAYS)](sample(pattern))):
            result = files.create_file(path, "x")
            assert (result.code, " is protected: " in str(result.error)) == ("denied", True), path
            assert files.str_replace(path, "a", "b").code == "denied", path
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "path",
    [
        *(
            "Makefile",
            "setup.py",
            "package.json",
            "test_a.py",
            ".github/ISSUE_TEMPLATE.md",
            ".env.example",
            ".gitignore",
        ),
        *(".github/CODEOWNERS", ".github/ISSUE_TEMPLATE/bug.yml", ".env.template", ".env.production.example"),
        *("AGENTS.md", "Dockerfile", "app.yml", "config.yaml", "docs/build.yml", ".config/a.toml", "profile.py"),
        *("env", "git/config", "pth", "x.pth.txt", "workflows/a.yml", ".dockerignore", ".editorconfig", ".config/a"),
    ],
)
def test_what_somebody_has_to_name_or_what_runs_nothing_is_written(tmp_path: Path, path: str) -> None:
    assert Files(tmp_path).create_file(path, "x").ok


@pytest.mark.parametrize(
    "path",
    [
        *(".bash_completion", ".rvmrc", ".xprofile", ".config/zsh/.zshrc", ".config/nushell/config.nu", "profile.ps1"),
        *("Microsoft.PowerShell_profile.ps1", ".elvish/rc.elv", ".ghci", ".iex.exs", ".ocamlinit", ".octaverc"),
        *(".RData", ".Rprofile", ".erlang", ".kakrc", ".helix/languages.toml", ".config/helix/config.toml"),
        *(".build.yml", ".builds/x.yml", ".semaphore/semaphore.yml", ".cirrus.star", ".drone.yaml", "buildspec.yml"),
        *("azure-pipelines.yaml", ".readthedocs.yaml", ".tekton/a.yml", ".github/dependabot.yml", "codemagic.yaml"),
        *(".kiro/hooks/a.kiro.hook", "opencode.json", ".opencode/plugin/x.js", ".roo/mcp.json", ".amazonq/mcp.json"),
        *(".qwen/settings.json", ".aider.conf.yml", ".clinerules/x", ".codex/config.toml", ".gemini/settings.json"),
        *(".trae/mcp.json", ".augment/x", "mcp.json", ".env.prod", ".env.dev", "keys/id_rsa", "id_ed25519", ".boto"),
        *(".my.cnf", ".pgpass", ".netrc", ".config/gh/hosts.yml", ".s3cfg", ".htpasswd", "lefthook-local.yaml"),
    ],
)
def test_what_programs_run_or_keep_secret_without_being_told_is_not_written(tmp_path: Path, path: str) -> None:
    assert Files(tmp_path).create_file(path, "x").code == "denied"


def test_a_program_that_reads_yaml_reads_it_by_either_extension() -> None:
    for one, other in ((".yml", ".yaml"), (".yaml", ".yml")):
        names = {pattern.removesuffix(one) + other for pattern in PROTECTED if pattern.endswith(one)}
        assert names <= PROTECTED


def test_many_names_take_no_longer_than_one(tmp_path: Path) -> None:
    """Not one comparison for each pattern: a folder of many files is looked through whenever a sandbox is made."""
    for number in range(300):
        (tmp_path / f"file{number}.py").touch()
    protected_in(tmp_path, PROTECTED)
    began = process_time()
    assert protected_in(tmp_path, PROTECTED) == []
    assert process_time() - began < 0.1


def test_each_protected_name_has_one_reason() -> None:
    assert sum(map(len, REASONS.values())) == len(PROTECTED)


def test_a_refusal_tells_the_reason(tmp_path: Path) -> None:
    assert Files(tmp_path).create_file("app/.envrc", "x").error == (
        "'app/.envrc' may be read but not written: '.envrc' is protected: "
        "a shell runs it on startup or when entering the folder"
    )
    assert Files(tmp_path, protected={"*.lock", "a/b"}).create_file("x/A/b/c", "x").error == (
        "'x/A/b/c' may be read but not written: 'a/b' is protected"
    )
