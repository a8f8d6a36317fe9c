"""Makes the environment known to Gymnasium; its plug-in mechanism calls this."""

from __future__ import annotations

ID = "rewright/HloRewrite-v0"


def register() -> None:
    """Register ``rewright/HloRewrite-v0``; calling it again changes nothing."""
    from gymnasium.envs import registration

    if ID not in registration.registry:
        registration.register(id=ID, entry_point="rewright.env.environment:HloRewrite")
