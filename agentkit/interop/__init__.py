"""Thin adapters to other systems, one file or package each; of agentkit only the command line imports them."""

from __future__ import annotations

from agentkit.interop.peers import export_report

__all__ = ["export_report"]
