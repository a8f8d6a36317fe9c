"""The programs of the benchmark by family, one module a family; how one is made, ``bench.optimize.program`` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.optimize.program import Program
from bench.optimize.programs import (
    attention,
    convolutions,
    decoding,
    eviction,
    experts,
    images,
    losses,
    masks,
    mixing,
    models,
    norms,
    optimizers,
    statistics,
)

_MODULES = (
    eviction,
    masks,
    attention,
    mixing,
    norms,
    losses,
    experts,
    convolutions,
    decoding,
    optimizers,
    statistics,
    images,
    models,
)
FAMILIES: Mapping[str, tuple[Program, ...]] = {module.PROGRAMS[0].family: module.PROGRAMS for module in _MODULES}
PROGRAMS: Mapping[str, Program] = {program.name: program for family in FAMILIES.values() for program in family}


def chosen(families: Sequence[str] | None, names: Sequence[str] | None) -> list[Program]:
    """The programs of these families that have these names; all for None."""
    return [
        p
        for p in PROGRAMS.values()
        if (families is None or p.family in families) and (names is None or p.name in names)
    ]
