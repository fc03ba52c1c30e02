"""A file of records as a report: one HTML page that needs no network and no script, and a PNG of its charts."""

from __future__ import annotations

from agentkit.rollout.report.findings import Findings, findings
from agentkit.rollout.report.page import write_page, write_png

__all__ = ["Findings", "findings", "write_page", "write_png"]
