"""Rewright rewrites tensor programs and proves the result right.

The public names are looked up when they are first used, so that ``import rewright`` costs nothing and an optional
package such as torch has to be there only for what needs it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rewright.certificates import audit as audit
    from rewright.equiv import equiv as equiv
    from rewright.frontends.capture import capture as capture
    from rewright.frontends.capture import capture_ranks as capture_ranks
    from rewright.frontends.files import load as load
    from rewright.frontends.files import save as save
    from rewright.frontends.ranks import ranks as ranks
    from rewright.optimize.api import optimize as optimize
    from rewright.refine import refine as refine

__version__ = "0.1.0"
__all__ = ["audit", "capture", "capture_ranks", "equiv", "load", "optimize", "ranks", "refine", "save"]

_HOMES = {
    "audit": "rewright.certificates",
    "capture": "rewright.frontends.capture",
    "capture_ranks": "rewright.frontends.capture",
    "equiv": "rewright.equiv",
    "load": "rewright.frontends.files",
    "optimize": "rewright.optimize",
    "ranks": "rewright.frontends.ranks",
    "refine": "rewright.refine",
    "save": "rewright.frontends.files",
}
"""The module that each public name is defined in."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'rewright' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


if "IPython" in sys.modules:
    import_module("rewright.notebook").register()
