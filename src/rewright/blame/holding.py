"""Whether the ranks hold a sequential tensor at a place, by the values of one trial."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from rewright import ops
from rewright.blame.index import TensorIndex
from rewright.blame.merged import merged_placements
from rewright.blame.places import Place, Places
from rewright.interp.placing import are_copies, compare, has_shapes, is_held, placements
from rewright.interp.trial import Trial
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import AxisRuns, Placement, RankProgram, place
from rewright.ops.base import Array


class Holding:
    """Answers for one trial that kept all values.

    ``inputs`` says how the ranks hold inputs, by placements or as equations have it.
    """

    def __init__(self, sequential: Graph, program: RankProgram, trial: Trial, inputs: Mapping[str, Placement]) -> None:
        self.sequential, self.program, self.trial, self.inputs = sequential, program, trial, inputs
        self.places = Places(sequential, program)
        self.mesh = program.mesh
        self._index: TensorIndex | None = None
        self._known: dict[tuple[int, Place], Placement | None] = {}
        self._holders: dict[int, Place | None] = {}
        self._placements: dict[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]], list[Placement]] = {}
        self._irregular = self._irregular_runs()

    def value(self, position: int) -> Array:
        """The value of a sequential node."""
        return self.trial.sequential.values[position]

    def local(self, at: Place) -> list[Array]:
        """What the ranks have at a place."""
        return [execution.values[p] for execution, p in zip(self.trial.ranks, at, strict=True)]

    def holds(self, position: int, at: Place) -> Placement | None:
        """How the ranks hold a sequential tensor at a place, None where they do not.

        Where the shapes do not fit, what both only lay out is compared: one program may flatten what the other does
        not.
        """
        key = (position, at)
        if key not in self._known:
            found = self._direct(position, at)
            if found is None and not self.fitting(position, at):
                pairs = itertools.product(self.places.laid_out(position), self.places.laid_out_ranks(at))
                found = next((p for pair in pairs if pair != key and (p := self._direct(*pair)) is not None), None)
            self._known[key] = found
        return self._known[key]

    def fitting(self, position: int, at: Place) -> list[Placement]:
        """The placements of a sequential tensor with the shapes that the ranks have at a place, clean ones first."""
        value, local = self.value(position), self.local(at)
        if any(tensor.dtype.kind != value.dtype.kind or tensor.ndim != value.ndim for tensor in local):
            return []
        return self.by_shapes(position, at)

    def by_shapes(self, position: int, at: Place) -> list[Placement]:
        """The same for tensors of any type."""
        shape, shapes = self.value(position).shape, tuple(tensor.shape for tensor in self.local(at))
        key = shape, shapes
        if key not in self._placements:
            clean = [p for p in self._all(shape) if has_shapes(p, shapes)]
            self._placements[key] = [*clean, *merged_placements(shape, shapes, self.mesh)]
        return self._placements[key]

    def error(self, position: int, at: Place) -> float:
        """How far off the ranks are at a place that should hold a tensor, relative to it; infinite for other shapes."""
        for placement in self.fitting(position, at)[:1]:
            worst = compare(self.value(position), self.local(at), placement, self.mesh)
            return worst.relative if worst else 0.0
        return float("inf")

    def holder(self, position: int) -> Place | None:
        """The first place at which the ranks hold a sequential tensor, None where there is none."""
        if position not in self._holders:
            if self._index is None:
                self._index = TensorIndex(self.program, self.trial)
            self._holders[position] = next((at for at, _ in self._index.find(self.value(position))), None)
        return self._holders[position]

    def _direct(self, position: int, at: Place) -> Placement | None:
        label = self.places.label(at)
        op = self.sequential.nodes[position].op
        if label is not None and isinstance(op, ops.Input) and op.label == label:
            return self._as_placed(label)
        value, local = self.value(position), self.local(at)
        kind = op.kind if isinstance(op, ops.Reduce) else ""
        may_be_addends = value.dtype.kind == "f" or (kind == "sum" and value.dtype.kind in "iu")  # a count of labels
        for placement in self.fitting(position, at):
            if placement.partial and (
                not may_be_addends
                or (placement.reduction == "max" and kind != "maximum")
                or are_copies(local, placement, self.mesh)
            ):
                continue
            if is_held(value, local, placement, self.mesh):
                return placement
        return None

    def _as_placed(self, name: str) -> Placement | None:
        """The placement of an input, None where its runs are not what its printed form says."""
        found = self.inputs.get(name)
        regular = None if found is None else self._regular(name, found)
        return None if regular is not None and found is not None and regular.runs != found.runs else found

    def _regular(self, name: str, placement: Placement) -> Placement | None:
        shape = self.value(self.sequential.inputs[name]).shape
        try:
            return place(shape, self.mesh, placement.printed)
        except RewrightError:
            return None

    def _irregular_runs(self) -> list[tuple[int, tuple[AxisRuns, ...]]]:
        """How inputs are cut for which DTensor has no plain name: what is computed from them may be cut so too."""
        found: dict[tuple[int, tuple[AxisRuns, ...]], None] = {}
        for name, placement in self.inputs.items():
            if name in self.sequential.inputs and self._regular(name, placement) is None:
                shape = self.value(self.sequential.inputs[name]).shape
                for axis, size in enumerate(shape):
                    runs = tuple(own[axis] for own in placement.runs)
                    if any(own != ((0, size),) for own in runs):
                        found[size, runs] = None
        return list(found)

    def _all(self, shape: tuple[int, ...]) -> list[Placement]:
        found = list(placements(shape, self.mesh, "Partial(sum)", "Partial(max)"))
        for size, runs in self._irregular:
            for axis in (axis for axis, length in enumerate(shape) if length == size):
                whole = place(shape, self.mesh, ("Replicate()",)).runs[0]
                cut = tuple((*whole[:axis], own, *whole[axis + 1 :]) for own in runs)
                found.append(Placement(cut, (f"a cut of axis {axis}",)))
        return found
