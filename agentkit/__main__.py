"""`python -m agentkit` is the command line."""

from __future__ import annotations

import sys

from agentkit.cli import main

sys.exit(main())
