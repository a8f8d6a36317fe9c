"""Global tensors and the tensors of the ranks: scattering by a placement, and reading a placement off values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from rewright.ir.dims import Shape
from rewright.ir.errors import RewrightError
from rewright.ir.placement import AxisRuns, Mesh, Placement, place
from rewright.ops.base import Array

TOLERANCE = 1e-6
"""Largest difference that counts as rounding, relative to the largest (usual) magnitude in the tensor."""

COMBINE = {"sum": np.add, "max": np.maximum, "min": np.minimum}
"""How addends of a partial placement make the global tensor, by DTensor's name of the reduction."""


def global_indices(runs: AxisRuns) -> Array:
    """The global index of each local index along one axis; raises RewrightError for symbolic runs."""
    pieces = [np.arange(_number(start), _number(start) + _number(length)) for start, length in runs]
    return np.concatenate([np.zeros(0, np.int64), *pieces])


def cut(value: Array, runs: Sequence[AxisRuns]) -> Array:
    """The part of a global tensor that a rank holds."""
    for axis, own in enumerate(runs):
        whole = len(own) == 1 and own[0] == (0, value.shape[axis])
        value = value if whole else np.take(value, global_indices(own), axis=axis)
    return value


def scatter(value: Array, placement: Placement, mesh: Mesh, generator: np.random.Generator) -> list[Array]:
    """The tensors of all ranks; addends of a partial placement are random and make the value together.

    Args:
        value: the global tensor.
        generator: draws the addends.
    """
    if not placement.partial:
        return [cut(value, placement.runs[rank]) for rank in range(mesh.size)]
    names = [name for name, _ in mesh.axes]
    parts = [mesh.axes[names.index(name)][1] for name in placement.partial]
    coordinates = list(itertools.product(*(range(size) for size in parts)))
    addends = dict(zip(coordinates, _addends(value, placement.reduction, len(coordinates), generator), strict=True))
    found: list[Array] = []
    for rank in range(mesh.size):
        own = tuple(mesh.coordinates(rank)[names.index(name)] for name in placement.partial)
        found.append(cut(addends[own], placement.runs[rank]))
    return found


def _addends(value: Array, reduction: str, count: int, generator: np.random.Generator) -> list[Array]:
    if reduction == "sum":
        rest = [generator.standard_normal(value.shape).astype(value.dtype) for _ in range(count - 1)]
        return [*rest, value - sum(rest, start=np.zeros_like(value))]
    # One random member holds the extreme value of each element, the others something weaker.
    owner = generator.integers(0, count, value.shape)
    sign = -1 if reduction == "max" else 1
    weaker = [sign * generator.uniform(0.5, 1.5, value.shape) for _ in range(count)]
    return [np.where(owner == i, value, value + shift).astype(value.dtype) for i, shift in enumerate(weaker)]


def largest_gap(value: Array, other: Array) -> float:
    """How far finite elements of two tensors are apart at most."""
    with np.errstate(all="ignore"):
        gap = np.abs(value.astype(np.float64) - other.astype(np.float64))
    return float(gap[np.isfinite(gap)].max(initial=0.0))


@dataclass(frozen=True)
class Difference:
    """Where two tensors part most: the global index, both values, and the size relative to the tensor."""

    index: tuple[int, ...]
    sequential: float
    distributed: float
    relative: float
    rank: int

    @property
    def is_rounding(self) -> bool:
        """Whether it is small enough to come from the order of floating-point operations."""
        return self.relative <= TOLERANCE


def added_up(locals_: Sequence[Array], placement: Placement, mesh: Mesh, rank: int) -> Array:
    """What a rank holds under a placement, with the addends of the others where it is one of a sum."""
    with np.errstate(all="ignore"):
        return reduce(COMBINE[placement.reduction], (locals_[p] for p in mesh.group(rank, placement.partial)))


def compare(
    value: Array, locals_: Sequence[Array], placement: Placement, mesh: Mesh, floor: float = 0.0
) -> Difference | None:
    """The largest difference between a global tensor and what the ranks hold under a placement.

    Differences are relative to the largest magnitude in the tensor, or to ``floor`` where that is larger.
    Returns None for tensors without elements. Raises RewrightError where shapes do not fit the placement.
    """
    found = (_largest(*parts, placement, rank) for rank, parts in _parts(value, locals_, placement, mesh, floor))
    return max(filter(None, found), key=lambda difference: difference.relative, default=None)


def is_held(value: Array, locals_: Sequence[Array], placement: Placement, mesh: Mesh, floor: float = 0.0) -> bool:
    """Whether the ranks hold a global tensor under a placement, up to rounding; as ``compare``, and no further than
    the first rank that does not."""
    parts = _parts(value, locals_, placement, mesh, floor)
    return all(float(_gaps(*own).max(initial=0.0)) <= TOLERANCE for _, own in parts)


def _parts(
    value: Array, locals_: Sequence[Array], placement: Placement, mesh: Mesh, floor: float
) -> Iterator[tuple[int, tuple[Array, Array, float]]]:
    """By rank what it should hold, what it holds, and the magnitude that differences are relative to."""
    scale = max(_scale(value), floor)
    for rank in range(mesh.size):
        expected = cut(value, placement.runs[rank])
        if any(locals_[member].shape != expected.shape for member in mesh.group(rank, placement.partial)):
            raise RewrightError(
                f"rank {rank} holds {list(locals_[rank].shape)} where {placement} asks for {list(expected.shape)}"
            )
        held = added_up(locals_, placement, mesh, rank)
        yield rank, (expected.astype(np.float64), held.astype(np.float64), scale)


HUGE = 1e6
"""Magnitudes above this are fill values of masks, and no measure of what else is in the tensor."""


def _scale(value: Array) -> float:
    finite = np.abs(value[np.isfinite(value)].astype(np.float64))
    usual = finite[finite <= HUGE]
    return max(float((usual if usual.size else finite).max(initial=0.0)), 1e-30)


def _gaps(left: Array, right: Array, scale: float) -> Array:
    """How far elements are apart, relative to a magnitude; infinite where one is no number, or another infinity."""
    with np.errstate(invalid="ignore"):
        gap = np.abs(left - right)
    if np.max(gap, initial=0.0) <= TOLERANCE * scale:  # false for what is no number
        return gap / scale
    gap = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, gap)
    gap = np.where(np.isnan(gap), np.inf, gap)
    with np.errstate(invalid="ignore"):
        # Infinities are equal or they are not: everything is within rounding of one.
        huge = (np.abs(left) > HUGE) & np.isfinite(left)
        return np.where(huge & (gap <= TOLERANCE * np.abs(left)), 0.0, gap) / scale


def _largest(left: Array, right: Array, scale: float, placement: Placement, rank: int) -> Difference | None:
    if not left.size:
        return None
    gaps = _gaps(left, right, scale)
    local = np.unravel_index(int(np.argmax(gaps)), gaps.shape)
    runs = placement.runs[rank]
    index = tuple(int(global_indices(own)[i]) for own, i in zip(runs, local, strict=True))
    return Difference(index, float(left[local]), float(right[local]), float(gaps[local]), rank)


def multiple(value: Array, locals_: Sequence[Array], mesh: Mesh, placement: Placement | None = None) -> float | None:
    """The number by which the ranks hold a multiple of a tensor, the same in every element; None where there is none.

    ``placement`` is how they hold it; by default the first without addends, then with them, that the shapes fit.
    """
    if value.dtype.kind != "f" or not value.size or not np.isfinite(value).all():
        return None
    shapes = [tensor.shape for tensor in locals_]
    found = candidates(value.shape, shapes, mesh) if placement is None else [placement]
    tried = (_multiple(value, locals_, p, mesh) for p in found if has_shapes(p, shapes))
    factor = next((factor for factor in tried if factor is not None), None)
    # Any number is a multiple of another one: of a single element only what counts ranks is told.
    return None if factor is not None and value.size == 1 and not _counts_ranks(factor, mesh) else factor


def _counts_ranks(factor: float, mesh: Mesh) -> bool:
    """Whether a number, or its inverse, is one of ranks that divides all of them; minus one too."""
    count = factor if abs(factor) >= 1 else 1 / factor if factor else 0.0
    return count == -1.0 or (count > 1 and math.isclose(count, round(count)) and mesh.size % round(count) == 0)


def _multiple(value: Array, locals_: Sequence[Array], placement: Placement, mesh: Mesh) -> float | None:
    parts = ((cut(value, placement.runs[rank]), added_up(locals_, placement, mesh, rank)) for rank in range(mesh.size))
    found: set[float | None] = {ratio(right, held) for right, held in parts if right.any() or held.any()}
    return next(iter(found)) if len(found) == 1 else None


def ratio(right: Array, held: Array) -> float | None:
    """The number that makes the second tensor of the first one, to six digits; None where there is none."""
    if right.dtype.kind != "f" or not right.size:
        return None
    largest = np.unravel_index(int(np.argmax(np.abs(right))), right.shape)
    if not np.isfinite(right[largest]) or right[largest] == 0 or not np.isfinite(held[largest]):
        return None
    factor = float(held[largest] / right[largest])
    with np.errstate(all="ignore"):
        off = np.abs(held - factor * right).max()
    close = off <= TOLERANCE * np.abs(right[largest]) * (abs(factor) or 1.0)
    return float(f"{factor:.6g}") if close else None


def fitting(
    values: Sequence[Array], held: Sequence[Sequence[Array]], mesh: Mesh, floor: float = 0.0
) -> Placement | None:
    """The first placement in DTensor's vocabulary under which the ranks hold a value in each of several runs, or None.

    Replicated comes before sharded, sharded before partial. One run may leave it open: a row of equal numbers is the
    same however it is cut.
    """
    for placement in candidates(values[0].shape, [tensor.shape for tensor in held[0]], mesh):
        if placement.partial and any(are_copies(locals_, placement, mesh) for locals_ in held):
            continue
        if all(is_held(value, locals_, placement, mesh, floor) for value, locals_ in zip(values, held, strict=True)):
            return placement
    return None


def closest(value: Array, locals_: Sequence[Array], mesh: Mesh) -> Difference | None:
    """Where the ranks differ under the placement without addends that fits best, None where no shapes fit."""
    shapes = [tensor.shape for tensor in locals_]
    whole = [p for p in candidates(value.shape, shapes, mesh) if not p.partial]
    found = [worst for p in whole if (worst := compare(value, locals_, p, mesh)) is not None]
    return min(found, key=lambda worst: worst.relative, default=None)


def are_copies(locals_: Sequence[Array], placement: Placement, mesh: Mesh) -> bool:
    """Whether the members of a partial placement hold one tensor along a mesh axis: copies are no addends."""
    return any(
        all(np.array_equal(locals_[rank], locals_[mesh.group(rank, (name,))[0]]) for rank in range(mesh.size))
        for name in placement.partial
    )


def placements(shape: Shape, mesh: Mesh, *partial: str) -> Iterator[Placement]:
    """Every placement by ``Replicate``, ``Shard`` and one of these reductions, replicated ones first."""
    clean = ["Replicate()", *(f"Shard({axis})" for axis in range(len(shape)))]
    for texts in itertools.product([*clean, *partial], repeat=len(mesh.axes)):
        if sum(reduction in texts for reduction in partial) > 1:
            continue
        try:
            yield place(shape, mesh, texts)
        except RewrightError:
            continue


def has_shapes(placement: Placement, local_shapes: Sequence[Shape]) -> bool:
    """Whether every rank holds a tensor of its shape."""
    return all(placement.local_shape(rank) == local for rank, local in enumerate(local_shapes))


def candidates(shape: Sequence[int], local_shapes: Sequence[tuple[int, ...]], mesh: Mesh) -> Iterator[Placement]:
    """Every placement by ``Replicate``, ``Shard`` and ``Partial(sum)`` whose local shapes are these."""
    return (p for p in placements(tuple(shape), mesh, "Partial(sum)") if has_shapes(p, local_shapes))


def local_inputs(
    values: Mapping[str, Array], placements: Mapping[str, Placement], mesh: Mesh, generator: np.random.Generator
) -> list[dict[str, Array]]:
    """The inputs of every rank from the global ones; raises RewrightError for an input without a placement."""
    found: list[dict[str, Array]] = [{} for _ in range(mesh.size)]
    for name, value in values.items():
        if name not in placements:
            continue
        for rank, own in enumerate(scatter(value, placements[name], mesh, generator)):
            found[rank][name] = own
    return found


def _number(size: object) -> int:
    if not isinstance(size, int):
        raise RewrightError(f"a placement at size {size} cannot be executed; give every size symbol a number first")
    return size
