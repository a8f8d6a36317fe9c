"""Every run draws the same examples: a change that breaks a test has broken it, and not the dice."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("reproducible", derandomize=True, deadline=None, database=None)
settings.load_profile("reproducible")
