"""Placements of outputs at the sizes of a twin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rewright.ir.dims import Shape
from rewright.ir.errors import RewrightError
from rewright.ir.placement import Mesh, Placement, place
from rewright.refine.shrink.rewriting import small_placement
from rewright.refine.shrink.units import Scale
from rewright.refine.twin.symbols import placement_at_sizes


@dataclass(frozen=True)
class Resize:
    """What the sizes of outputs were and how they changed."""

    shapes: Mapping[str, Shape] = field(default_factory=dict[str, Shape])
    """Of the sequential outputs, as captured."""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Numbers that size symbols got."""
    scales: Mapping[str, tuple[Scale, ...]] = field(default_factory=dict[str, tuple[Scale, ...]])
    """How the axes of outputs were shrunk."""

    def __call__(self, name: str, placement: Placement, shape: Shape, mesh: Mesh) -> Placement:
        """A placement of an output at the new sizes.

        Args:
            name: of the output.
            placement: at the captured sizes.
            shape: of the output at the new sizes.
            mesh: of the distributed program.
        """
        if name not in self.shapes or self.shapes[name] == shape:
            return placement
        if self._is_standard(placement, self.shapes[name], mesh):
            return place(shape, mesh, placement.printed)
        numbers = placement_at_sizes(placement, self.sizes)
        return small_placement(numbers, self.scales[name]) if name in self.scales else numbers

    def _is_standard(self, placement: Placement, shape: Shape, mesh: Mesh) -> bool:
        """Whether the printed form says it all."""
        try:
            return place(shape, mesh, placement.printed) == placement
        except RewrightError:
            return False
