"""Tiles that are read through a tensor descriptor: tiles of two axes of a tensor, the last of stride 1.

The copy engine of a device reads such a tile by itself, and zeros beyond the tensor. It needs addresses that are
multiples of 16 bytes (CUDA C++ Programming Guide, tensor memory accelerator).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rewright.ir.types import DType
from rewright.optimize.printing.places import offset
from rewright.optimize.printing.statements import Assign, If, Name, Scalar, call, whole
from rewright.optimize.printing.tiles.context import DESCRIPTORS, Block, Context, Way
from rewright.optimize.scalars.expressions import Expression
from rewright.optimize.scalars.ranges import number_span
from rewright.optimize.scalars.simplify import as_index
from rewright.terms.index import Index, variable

_BYTES = {DType.F16: 2, DType.BF16: 2, DType.F32: 4}
"""Sizes of what is read through descriptors."""


def load_by_descriptor(k: Context, c: Block, e: Expression, index: Callable[[Index], Scalar]) -> Scalar | None:
    """A load through a descriptor, which is made before the loops of the sweep; None where none can do it."""
    shape, size = k.shape(e.tensor), _BYTES.get(e.dtype, 0)
    if c.descriptors is None or len(shape) < 2 or not size:
        return None
    ways: dict[int, Way] = {}
    fixed = list(e.arguments)
    for axis, (argument, extent) in enumerate(zip(e.arguments, shape, strict=True)):
        names = argument.free & c.ways.keys()
        if not names and not _is_fixed(k, argument, extent):
            return None
        if names:
            (name,) = names if len(names) == 1 else ("",)
            if as_index(argument) != variable(name) or k.ranges[name] != (0, extent - 1):
                return None
            ways[axis], fixed[axis] = c.ways[name], k.table.constant(0, DType.I64)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    is_aligned = all(stride * size % 16 == 0 for stride in strides[:-1])
    if not is_aligned or len(ways) != 2 or len(shape) - 1 not in ways or {w.axis for w in ways.values()} != {0, 1}:
        return None
    (axis, first), (_, last) = sorted(ways.items())
    base = index(offset(k.table, tuple(fixed), shape))
    key = e.tensor, base, first.block, last.block
    if key not in c.descriptors.names:
        name = c.descriptors.names[key] = k.fresh("tiles")
        sizes = [whole(n) for n in (shape[axis], shape[-1], strides[axis])]
        made = call("descriptor", Name(f"t{e.tensor}"), base, *sizes, first.block, last.block)
        c.descriptors.statements.append(If(DESCRIPTORS, (Assign(Name(name), made),)))
    tile = call("descriptor_load", Name(c.descriptors.names[key]), first.start, last.start)
    return call("transposed", tile) if first.axis else tile


def _is_fixed(k: Context, argument: Expression, extent: int) -> bool:
    """Whether an index is one for the whole block of rows, inside of the tensor, and nothing is read for it."""
    index = as_index(argument)
    found = number_span(index, k.ranges) if index is not None and not argument.arguments else None
    return found is not None and 0 <= found[0] <= found[1] < extent and k.kernel.row.name not in argument.free
