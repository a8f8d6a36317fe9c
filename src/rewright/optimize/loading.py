"""Loading what an optimised program needs: over a thousand modules, of which nothing is garbage."""

from __future__ import annotations

import gc
import sys
from importlib import import_module

DYNAMO = "torch._dynamo.config"
"""What PyTorch's fake tensors import when the first of them is made."""


def load(name: str) -> None:
    """Import a module without looking for cycles meanwhile, and take what is new for old.

    Modules stay. Else they are looked at as young objects, as older ones, and soon with all that there is.
    """
    if name in sys.modules:
        return
    collects = gc.isenabled()
    gc.disable()
    try:
        import_module(name)
    finally:
        if collects:
            if not gc.get_freeze_count():  # else somebody keeps objects out of collections
                gc.freeze()
                gc.unfreeze()  # which puts them among the oldest
            gc.enable()
