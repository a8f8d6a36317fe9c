"""Which passes the installed XLA has, and what each did to a module."""

from __future__ import annotations

from collections.abc import Mapping

from rewright.env.module import HloModule
from rewright.env.session import Change, Session
from rewright.env.xla.names import CPU_PASSES, GPU_PASSES


def passes(session: Session, module: HloModule, target: str = "") -> Mapping[str, tuple[Change, ...]]:
    """Every pass by name with each of its runs in XLA's pipeline that changed the module; most have none.

    ``target`` is a GPU that need not be there, for its pipeline in the place of XLA:CPU's. Names that are not known
    here and that the installed XLA uses are listed as well. Raises RewrightError where XLA refuses the module.
    """
    changes = session.gpu_changes(module, target) if target else session.changes(module)
    found: dict[str, list[Change]] = {name: [] for name in sorted(GPU_PASSES if target else CPU_PASSES)}
    for change in changes:
        found.setdefault(change.name, []).append(change)
    return {name: tuple(own) for name, own in found.items()}
