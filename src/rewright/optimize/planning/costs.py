"""What plans cost: operations of expressions over their loops, bytes, and how many units of a machine have work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.ops.functions import FUNCTIONS
from rewright.optimize.kernel import Kernel
from rewright.optimize.scalars.constants import power_of_two
from rewright.optimize.scalars.expressions import Expression, walk

FREE = ("load", "index", "constant", "reduce")
POWER_OF_TWO = 13
"""Operations of two to a power, which needs no multiplication and a shorter reduction than the exponential."""
BYTES = {DType.F64: 8, DType.I64: 8, DType.F32: 4, DType.I32: 4, DType.BF16: 2, DType.F16: 2, DType.I16: 2}


@dataclass(frozen=True)
class Machine:
    """What the cost model knows of a target: units that work side by side, and what one of them does in a second."""

    name: str
    units: int
    operations: float
    """Operations of one unit in a second."""
    bytes: float
    """Bytes from memory in a second, for all units together."""
    launch: float
    """Seconds that one more kernel takes to start."""
    rows: int
    """Rows of a block."""
    least: int
    """The fewest elements of a lane that are worth a task of their own."""
    products: float = 1e11
    """Operations of a library's matrix products, of one unit in a second."""
    share: float = 0.8
    """How much of that kernels reach with theirs."""


CPU = Machine("the CPU", 1, 4e10, 2e10, 1e-5, 48, 256)
"""One core: rough figures; only their ratios matter."""


def operations(values: Iterable[Expression], sizes: Mapping[str, int]) -> float:
    """Operations of expressions, each value computed once for every index of the loops that it depends on."""
    found = list(walk(*values))
    every = dict(sizes)
    for e in found:
        if e.bound is not None:
            every[e.bound.index] = e.bound.count
    total = 0.0
    for e in found:
        loops = e.arguments[0].free if e.bound is not None else e.free
        total += weight(e) * math.prod(every.get(name, 1) for name in loops)
    return total


def weight(e: Expression) -> float:
    """Operations of one value beside those of its arguments."""
    if e.op == "reduce":
        return 1
    if not e.free or e.op in FREE or e.op.startswith("convert_"):
        return 0
    if e.op == "multiply" and _is_log_two(e.arguments[1]):
        return 0  # the exponent of a power of two: only the power is computed
    if power_of_two(e) is not None:
        return POWER_OF_TWO
    return FUNCTIONS[e.op].code.cost if e.op in FUNCTIONS else 1  # a condition on indices


def _is_log_two(e: Expression) -> bool:
    return e.op == "log" and e.arguments[0].op == "constant" and e.arguments[0].value == 2


def tasks(kernel: Kernel, machine: Machine) -> int:
    """Blocks of rows of a kernel, which is what runs side by side."""
    rows = kernel.row.count
    return math.prod(loop.count for loop in kernel.grid) * -(-rows // machine.rows)


def pieces_for(graph: Graph, kernel: Kernel, machine: Machine, most: int) -> int:
    """Into how many pieces the first lane of a kernel is best cut; one where cutting it is not worth a kernel more."""
    sweep = kernel.sweeps[0]
    best, choice = seconds(graph, kernel, machine, 1), 1
    pieces = 2
    while pieces <= most and sweep.lane.count // pieces >= machine.least:
        needed = seconds(graph, kernel, machine, pieces)
        if needed < 0.8 * best:
            best, choice = needed, pieces
        pieces *= 2
    return choice


def seconds(graph: Graph, kernel: Kernel, machine: Machine, pieces: int) -> float:
    """The time of a kernel whose lane is cut into pieces, with that of the kernel that merges them."""
    sizes = {loop.name: loop.count for loop in kernel.grid}
    sizes |= {loop.name: loop.count for loop in (kernel.rows, kernel.features) if loop is not None}
    values = [store.value for store in kernel.stores]
    work = operations(values, sizes) / machine.operations
    read = {e.tensor for e in walk(*values) if e.op == "load" and e.tensor >= 0}
    traffic = sum(bytes_of(graph, tensor) for tensor in read) / machine.bytes
    count = tasks(kernel, machine) * pieces
    rounds = -(-count // machine.units)
    used = min(count, machine.units) / machine.units
    needed = max(work * rounds / count, traffic / used)
    if pieces == 1:
        return needed
    rows = math.prod(sizes.values())
    return needed + machine.launch + 2 * 4 * pieces * rows / machine.bytes


def again_seconds(graph: Graph, position: int, more: float, machine: Machine) -> float:
    """The seconds that are saved where a kernel stores a tensor, two read it, and ``more`` operations are not done."""
    is_product = isinstance(graph.nodes[position].op, ops.DotGeneral)
    speed = machine.products * machine.share if is_product else machine.operations
    return more / (speed * machine.units) - 3 * bytes_of(graph, position) / machine.bytes - machine.launch


def elements(graph: Graph, position: int) -> int:
    """The elements of a tensor; those of a size that is a symbol are not counted."""
    size = graph.nodes[position].type.size()
    return size if isinstance(size, int) else 0


def bytes_of(graph: Graph, tensor: int) -> int:
    """The bytes of a tensor in memory; those of a size that is a symbol are not counted."""
    return elements(graph, tensor) * BYTES.get(graph.nodes[tensor].type.dtype, 1)
