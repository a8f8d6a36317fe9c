"""How kernels part the numbers of instances: ``id // 6`` and ``id % 6`` are those of a row and a column."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from rewright.frontends.triton.text import Function, all_operations
from rewright.ir.dims import Dim, SizeExpr, divide


@dataclass(frozen=True, slots=True)
class _Part:
    """``id // stride``, below ``end`` if that is known: an id or a quotient or remainder of it."""

    axis: str
    stride: Dim = 1
    end: Dim | None = None


def _quotient(left: Dim, right: Dim) -> Dim | None:
    """A quotient of sizes that is cut off as TTIR does, where it is known."""
    if isinstance(left, int) and isinstance(right, int):
        return left // right if left >= 0 and right > 0 else None
    return divide(left, right)


_ON_SIZES: Mapping[str, Callable[..., Dim | None]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divsi": _quotient,
}


def strides_of_ids(kernel: Function, arguments: Mapping[str, object]) -> dict[str, list[Dim]]:
    """By axis of the grid the sizes by which a kernel parts program ids: of ``id // 6 % 2``, 6 and 12."""
    ids: dict[str, _Part] = {}
    sizes = {name: value for name, value in arguments.items() if isinstance(value, int | SizeExpr)}
    found: dict[str, list[Dim]] = {}
    for op in all_operations(kernel.body):
        if op.name == "tt.get_program_id":
            ids[op.results[0]] = _Part(op.words[0])
        elif op.name in ("arith.extsi", "arith.trunci") and op.operands[0] in ids:
            ids[op.results[0]] = ids[op.operands[0]]
        elif op.name in ("arith.extsi", "arith.trunci") and op.operands[0] in sizes:
            sizes[op.results[0]] = sizes[op.operands[0]]
        elif op.name == "arith.constant" and op.types and not op.types[0].shape and op.words[0].isdecimal():
            sizes[op.results[0]] = int(op.words[0])
        elif op.name in _ON_SIZES and all(name in sizes for name in op.operands):
            result = _ON_SIZES[op.name](*(sizes[name] for name in op.operands))
            sizes |= {} if result is None else {op.results[0]: result}
        elif op.name in ("arith.divsi", "arith.remsi") and op.operands[0] in ids and op.operands[1] in sizes:
            part, by = ids[op.operands[0]], sizes[op.operands[1]]
            found.setdefault(part.axis, []).append(part.stride * by)
            is_rest = op.name == "arith.remsi"
            ids[op.results[0]] = replace(part, end=by) if is_rest else replace(part, stride=part.stride * by)
    return found
