"""Every declared format, grouped by body kind. Data only."""

from __future__ import annotations

from agentkit.formats.catalog.envelopes import ENVELOPES
from agentkit.formats.catalog.name_then_json import NAMED
from agentkit.formats.catalog.odd import ODD
from agentkit.formats.catalog.parameters import PARAMETERS
from agentkit.formats.catalog.python import PYTHON
from agentkit.formats.catalog.xml import ELEMENTS
from agentkit.formats.format import Format

CATALOG: tuple[Format, ...] = (*ELEMENTS, *PARAMETERS, *ENVELOPES, *NAMED, *PYTHON, *ODD)
