"""Thin adapters to other systems, one file or package each; of agentkit only the command line imports them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.foreign.absent_imports import explained_module

if TYPE_CHECKING:
    from agentkit.interop.peers import export_report

__all__ = ["export_report"]

explained_module(__name__, homes={"agentkit.interop.peers": "export_report"})
