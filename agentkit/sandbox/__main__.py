"""`python -m agentkit.sandbox`: which sandboxes work on this machine for this user, by trying to escape from each."""

from __future__ import annotations

import asyncio
import json
import sys

from agentkit.sandbox.sandbox_choice import VARIANTS, report


async def main(variants: list[str], as_json: bool) -> int:
    """Print a line for each variant, or everything as JSON. Fails if none is available or one leaks."""
    reports = {variant: await report(variant) for variant in variants}
    if as_json:
        sys.stdout.write(json.dumps(reports) + "\n")
        return 0
    for variant, found in reports.items():
        if isinstance(found, str):
            sys.stdout.write(f"{variant}: not available: {found}\n")
            continue
        reached = {name: what for name, what in found.items() if what}
        sys.stdout.write(f"{variant}: {len(found) - len(reached)} of {len(found)} attempts contained\n")
        sys.stdout.writelines(f"  {name}: {what}\n" for name, what in reached.items())
    whole = [found for found in reports.values() if isinstance(found, dict)]
    return 0 if whole and not any(any(found.values()) for found in whole) else 1


if __name__ == "__main__":
    words = sys.argv[1:]
    chosen = [word for word in words if word in VARIANTS] or list(VARIANTS)
    raise SystemExit(asyncio.run(main(chosen, "--json" in words)))
