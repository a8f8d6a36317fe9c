"""Makes the environment known to Gymnasium, which since its version 1 finds none by itself: importing it does."""

from __future__ import annotations

from importlib import import_module
from typing import Any

ID = "rewright/HloRewrite-v0"


def register() -> None:
    """Register ``rewright/HloRewrite-v0``; calling it again changes nothing."""
    registration: Any = import_module("gymnasium.envs.registration")
    if ID not in registration.registry:
        registration.register(id=ID, entry_point="rewright.env.environment:HloRewrite")
