"""Every rewrite of an HLO module as a choice, on stock jaxlib. Read ``sites``, then ``environment``.

Names are looked up at first use. Importing it makes ``rewright/HloRewrite-v0`` known to Gymnasium, where that is
installed.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rewright.env.dryrun import dry_change as dry_change
    from rewright.env.dryrun import dry_run as dry_run
    from rewright.env.environment import HloRewrite as HloRewrite
    from rewright.env.module import HloModule as HloModule
    from rewright.env.passes import Pipeline as Pipeline
    from rewright.env.passes import XlaPass as XlaPass
    from rewright.env.registration import register as register
    from rewright.env.repairs import runnable as runnable
    from rewright.env.session import Session as Session
    from rewright.env.trajectory import replay as replay

_HOMES = {
    "HloModule": "rewright.env.module",
    "HloRewrite": "rewright.env.environment",
    "Pipeline": "rewright.env.passes",
    "Session": "rewright.env.session",
    "XlaPass": "rewright.env.passes",
    "dry_change": "rewright.env.dryrun",
    "dry_run": "rewright.env.dryrun",
    "register": "rewright.env.registration",
    "replay": "rewright.env.trajectory",
    "runnable": "rewright.env.repairs",
}
__all__ = [
    "HloModule",
    "HloRewrite",
    "Pipeline",
    "Session",
    "XlaPass",
    "dry_change",
    "dry_run",
    "register",
    "replay",
    "runnable",
]


with suppress(ModuleNotFoundError):
    import_module("rewright.env.registration").register()


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'rewright.env' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
