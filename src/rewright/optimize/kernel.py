"""The kernel IR: loops over tiles, running reductions, tile products and stores; every printer reads this."""

from __future__ import annotations

from dataclasses import dataclass

from rewright.ir.dims import Dim
from rewright.ir.types import DType
from rewright.optimize.online.update import Estimate, Update
from rewright.optimize.scalars.expressions import Expression, number_of, walk


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop index with its size."""

    name: str
    size: Dim

    @property
    def count(self) -> int:
        """The size as a number; raises RewrightError for a symbol."""
        return number_of(self.size)


@dataclass(frozen=True, slots=True)
class Product:
    """A reduction that is a matrix product of tiles: ``value[row, lane] = sum over depth of left * right``.

    ``left`` does not depend on the lane and ``right`` not on the row.
    """

    value: Expression
    left: Expression
    right: Expression
    depth: Loop


@dataclass(frozen=True, slots=True)
class Running:
    """A reduction over the lane with its state, one number per row, or one per row and feature.

    ``update`` says how the state follows the other states that it depends on. With ``factors``, the body is
    ``weight[row, lane] * item[lane, feature]``, and the sum is a matrix product of tiles.
    """

    value: Expression
    body: Expression
    update: Update
    factors: tuple[Expression, Expression] | None = None

    @property
    def is_shared(self) -> bool:
        """Whether it is a sum of items alone, one number per feature that all rows have."""
        if self.factors is None or self.update.depends:
            return False
        weight, _ = self.factors
        return weight.op == "constant" and weight.value == 1


@dataclass(frozen=True, slots=True)
class Store:
    """A tensor of the graph that a kernel writes, with the loops that are its axes."""

    tensor: int
    axes: tuple[str, ...]
    value: Expression
    returned: bool = False
    """Whether NaN has to reach it: it is an output of the program, or what such outputs are merged from."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """One pass over the tiles of a lane: products first, then reductions in order, then stores along the lane."""

    lane: Loop
    products: tuple[Product, ...]
    running: tuple[Running, ...]
    stores: tuple[Store, ...]
    compared: frozenset[int] = frozenset()
    """The reductions, by number, that what is stored compares, chooses, or returns without a sum that follows them."""

    @property
    def exact(self) -> frozenset[int]:
        """The extrema, by number, that NaN has to reach: no sum that follows them by a factor takes it to the end.

        Where an extremum is compared, the sum may be no part of the result: attention is zero where a mask left no key.
        """
        scaled = {e.number for r in self.running for e in r.update.extrema}
        marked = {e.number for r in self.running if r.update.reset is not None for e in r.update.depends}
        kinds = ("maximum", "minimum")
        found = {r.value.number for r in self.running if r.value.bound and r.value.bound.kind in kinds}
        found &= {r.value.number for r in self.running if r.value.dtype.is_float}
        return frozenset(n for n in found if n in marked or n in self.compared or n not in scaled)

    @property
    def grown(self) -> frozenset[int]:
        """The extrema by whose differences other states of the sweep grow, by number."""
        growing = [(r.update.growth, r.update.depends) for r in self.running]
        return frozenset(e.number for g, depends in growing if g is not None for e in g.following(depends))

    @property
    def remainders(self) -> tuple[tuple[Estimate, Running], ...]:
        """The means that are estimated in the sweep, each with the state of what is left of it, the sum of ``x - e``.

        That is zero but for the rounding of e, which it tells: the mean is ``e`` and so much for each element.
        """
        every = [r.update.growth for r in self.running if r.update.growth is not None]
        found = dict.fromkeys(e for growth in every for e in growth.estimates)
        pairs = ((e, next((r for r in self.running if r.body is e.left), None)) for e in found)
        return tuple((e, r) for e, r in pairs if r is not None and r.update.finish is None and r.factors is None)

    @property
    def settled(self) -> tuple[Running, ...]:
        """The states that follow such means alone, each before those that it grows by."""
        known = {e for e, _ in self.remainders}
        every = [(r, r.update.growth) for r in reversed(self.running) if not r.update.extrema]
        return tuple(r for r, g in every if g and not g.following(r.update.depends) and known.issuperset(g.estimates))

    @property
    def counts(self) -> bool:
        """Whether a state depends on how many elements were seen, so that no tile may be skipped."""
        grown = any(r.update.growth is not None and r.update.growth.counts for r in self.running)
        return grown or any(r.update.reset is not None for r in self.running)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A fused kernel: for every index of ``grid`` and every row, the sweeps in order and then the final stores."""

    name: str
    grid: tuple[Loop, ...]
    rows: Loop | None
    features: Loop | None
    sweeps: tuple[Sweep, ...]
    finals: tuple[Store, ...]

    @property
    def row(self) -> Loop:
        """The loop over rows; over one where there is none."""
        return self.rows or Loop("row0", 1)

    @property
    def stores(self) -> tuple[Store, ...]:
        """Everything that the kernel writes."""
        return (*(s for sweep in self.sweeps for s in sweep.stores), *self.finals)

    @property
    def has_products(self) -> bool:
        """Whether tiles are multiplied in it."""
        return self.features is not None or any(s.products for s in self.sweeps)

    @property
    def is_wide(self) -> bool:
        """Whether it computes in float64. A scale that is one and is read as a float32 makes no kernel so."""
        roots = [s.value for s in self.stores]
        used = (a for e in walk(*roots) if not e.op.startswith("convert_") for a in e.arguments)
        return any(e.dtype is DType.F64 for e in (*roots, *used))
