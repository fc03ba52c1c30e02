"""Hugging Face's `response_template`: imports a checkpoint's own template as a format, and exports a format as one."""

from __future__ import annotations

from agentkit.interop.response_template.template_export import to_response_template
from agentkit.interop.response_template.template_import import from_response_template

__all__ = ["from_response_template", "to_response_template"]
