"""Tasks for the user's own tools, generated from their schemas. Pure.

The tools are never run: their calls wait for an approval, and are judged.
"""

from __future__ import annotations

import json
from typing import Final

from agentkit.fit.plain_tasks import FitTask
from agentkit.formats.teach import example_arguments
from agentkit.tool import ToolRegistry
from agentkit.toolspec import ToolSpec

MOST: Final = 12
"""So many of the user's tools are tried, in their order."""


def own_tasks(registry: ToolRegistry) -> tuple[FitTask, ...]:
    """One task for each tool: to call it with sample arguments."""
    return tuple(map(_task, registry.specs()[:MOST]))


def _task(spec: ToolSpec) -> FitTask:
    required = spec.parameters.get("required", ())
    arguments = {name: value for name, value in example_arguments(spec, "my {}").items() if name in required}
    values = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return FitTask(
        f"{spec.name} (yours)",
        f"Call the tool {spec.name} with {values or 'no arguments'}.",
        ((spec.name, arguments),),
        own=True,
    )
