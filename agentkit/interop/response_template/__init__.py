"""Hugging Face's `response_template`: a checkpoint's own template read as a format, and a format written as one."""

from __future__ import annotations

from agentkit.interop.response_template.exporting import to_response_template
from agentkit.interop.response_template.importing import from_response_template

__all__ = ["from_response_template", "to_response_template"]
