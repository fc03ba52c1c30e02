"""Every declared format, grouped by body kind. Data only."""

from __future__ import annotations

from agentkit.formats.catalog.envelopes import ENVELOPES
from agentkit.formats.catalog.parameters import PARAMETERS
from agentkit.formats.catalog.xml import ELEMENTS
from agentkit.formats.spec import Format

CATALOG: tuple[Format, ...] = (*ELEMENTS, *PARAMETERS, *ENVELOPES)
