"""Which sandbox is taken, and that nothing weaker is."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from sandboxes import CONFINED, FAST, ROOT, opened

from agentkit.sandbox import SandboxUnavailable, sandbox
from agentkit.sandbox.base_sandbox import Setup
from agentkit.sandbox.sandbox_choice import VARIANTS, fault_of

NESTED = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}]
from agentkit.sandbox import SandboxUnavailable, sandbox
for kind in ("auto", "landlock"):
    try:
        sandbox(kind)
    except SandboxUnavailable as e:
        print(e)
print(sandbox("none").name)
"""


@pytest.mark.parametrize("variant", CONFINED[:2])
def test_where_nothing_works_it_is_refused_with_the_reasons(variant: str) -> None:
    """Inside a sandbox there is neither a namespace nor a socket to be had."""
    asyncio.run(opened(variant).close())
    setup = Setup(read=(ROOT,), limits=FAST)

    async def main() -> list[str]:
        async with VARIANTS[variant](setup) as box:
            outcome = await box.run([box.python, "-c", NESTED])
            assert outcome.exit_code == 0, outcome.stderr
            return outcome.stdout.splitlines()

    lines = asyncio.run(main())
    assert lines[0] == "no sandbox of kind 'auto' works on this machine; nothing weaker is used instead:"
    assert [line.split(":")[0] for line in lines[1:3]] == ["- bwrap", "- landlock"]
    assert lines[3] == "no sandbox of kind 'landlock' works on this machine; nothing weaker is used instead:"
    assert lines[-1] == "none"


def test_the_first_that_holds_is_taken() -> None:
    working = [variant for variant, make in VARIANTS.items() if not fault_of(make)]
    if not working:
        pytest.skip("neither bwrap nor landlock works here: " + fault_of(VARIANTS["landlock"]))
    box = sandbox()
    assert box.name == working[0].split()[0]
    asyncio.run(box.close())


def test_a_kind_may_be_chosen_inside_an_event_loop() -> None:
    """It is tried in a thread with a loop of its own."""
    script = "import asyncio, agentkit.sandbox as s\nasync def main():\n    try:\n        print(s.sandbox().name)\n"
    script += "    except s.SandboxUnavailable:\n        print('refused')\nasyncio.run(main())"
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("bwrap", "landlock", "refused")


def test_none_is_never_chosen_by_itself() -> None:
    try:
        box = sandbox("auto")
    except SandboxUnavailable:
        return
    assert box.name != "none"
    asyncio.run(box.close())


@pytest.mark.parametrize("variant", CONFINED)
def test_a_path_that_is_listed_can_be_read_and_not_written(
    variant: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    asyncio.run(opened(variant).close())
    shared = tmp_path_factory.mktemp("shared")
    (shared / "known").write_text("42")

    async def main() -> None:
        async with VARIANTS[variant](Setup(read=(shared,), limits=FAST)) as box:
            assert (await box.run(["cat", str(shared / "known")])).stdout == "42"
            assert not (await box.run(["sh", "-c", f"echo 1 > {shared}/known"])).ok

    asyncio.run(main())
    assert (shared / "known").read_text() == "42"
