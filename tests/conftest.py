"""What all tests share: how Hypothesis runs. Knows no part of agentkit."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No deadline: the machine is shared, and one slow example says nothing about the code. Deterministic in CI: a run that
# fails there fails again at home; elsewhere random, so that daily work keeps searching.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")
