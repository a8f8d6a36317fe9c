"""How much a plan computes beside how much its program does: what is computed again, and where.

A kernel computes each of its reductions once for every index of its grid and of its rows, and a product of tiles once
for every element of the lane besides, whether or not it depends on them. ``Share`` says both numbers for one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.optimize.kernel import Kernel
from rewright.optimize.planning.costs import weight
from rewright.optimize.planning.plan import LibraryStep, Plan
from rewright.optimize.scalars.expressions import Expression, unreduced_parts


@dataclass(frozen=True)
class Work:
    """Operations of a program, each tensor computed once, and of a plan of it."""

    program: float
    plan: float

    @property
    def ratio(self) -> float:
        """How many times the program's operations the plan does."""
        return self.plan / self.program if self.program else 1.0


@dataclass(frozen=True)
class Share:
    """A reduction in a kernel: the operations that the kernel does for it, and those that computing it once takes."""

    value: Expression
    done: float
    once: float
    is_product: bool = True
    """Whether the multiplications of a product are among them; else they are those of its elements."""


def work_of(plan: Plan, program: Graph) -> Work:
    """The work of a plan beside that of the program that it is for."""
    return Work(program_work(program), plan_work(plan))


def program_work(graph: Graph) -> float:
    """Operations of a graph whose sizes are numbers, each node computed once."""
    return sum(node_work(graph, graph.nodes[p]) for p in graph.live())


def plan_work(plan: Plan) -> float:
    """Operations of a plan: those of its kernels, and of the nodes that a library computes."""
    total = 0.0
    for step in plan.steps:
        if isinstance(step, LibraryStep):
            total += node_work(plan.graph, plan.graph.nodes[step.position])
        else:
            total += kernel_work(step.kernel)
    return total


def node_work(graph: Graph, node: Node) -> float:
    """Operations of one node: a sum or product is one; what only moves elements is none."""
    size, op = _size(node), node.op
    given = [graph.nodes[p] for p in node.operands]
    if isinstance(op, ops.DotGeneral):
        shape = given[0].type.shape
        return 2.0 * size * math.prod(int(str(shape[axis])) for axis in op.lhs_contracting)
    if isinstance(op, ops.Convolution):
        return 2.0 * size * _size(given[1]) / int(str(given[1].type.shape[0]))
    if isinstance(op, ops.Reduce):
        return float(_size(given[0]))
    if isinstance(op, ops.ReduceWindow):
        running = op.is_cumulative(given[0].type.shape)
        return float(size) * (1 if running else math.prod(int(str(width)) for width in op.window))
    if isinstance(op, ops.Convert):
        return 0.0
    if isinstance(op, ops.Elementwise):
        record = op.record(node.type.dtype)
        return float(size) * (record.code.cost if record is not None else 1)
    if isinstance(op, (ops.Leaf, ops.Layout)):
        return 0.0
    return float(max([size, *map(_size, given)]))


def kernel_work(kernel: Kernel) -> float:
    """Operations of a kernel: its reductions, and the elements that it computes for them and stores."""
    return sum(share.done for share in shares(kernel)) + sum(_elements(kernel))


def shares(kernel: Kernel) -> Iterator[Share]:
    """The reductions of a kernel, with what they take."""
    sizes = _sizes(kernel)
    outer = math.prod(loop.count for loop in kernel.grid) * kernel.row.count
    for sweep in kernel.sweeps:
        lane = sweep.lane.count
        for p in sweep.products:
            depth = 2.0 * p.depth.count
            yield Share(p.value, outer * lane * depth, _count(p.value.free, sizes) * depth)
        for r in sweep.running:
            features = kernel.features
            wide = features is not None and features.name in r.value.free
            is_product = r.factors is not None
            each = 2.0 if is_product else 1.0
            done = outer * lane * (features.count if wide and features is not None else 1)
            yield Share(r.value, each * done, each * _count(r.value.free, sizes) * lane, is_product)


def _elements(kernel: Kernel) -> Iterator[float]:
    """Operations for elements of the passes, and of what is stored at their end.

    A value that rows share is computed once for a block of them, and so counted once for each index of the grid.
    """
    sizes = _sizes(kernel)
    grid, row, features = math.prod(loop.count for loop in kernel.grid), kernel.row.name, kernel.features
    inner = (row,) if features is None else (row, features.name)
    for sweep in kernel.sweeps:
        values = [part for r in sweep.running for part in r.factors or (r.body,)]
        lane = sweep.lane.name
        yield from _spread(grid, (*inner, lane), sizes, *values, *(s.value for s in sweep.stores))
        for p in sweep.products:
            yield from _spread(grid, (row, lane, p.depth.name), {**sizes, p.depth.name: p.depth.count}, p.left)
            yield from _spread(grid, (row, lane, p.depth.name), {**sizes, p.depth.name: p.depth.count}, p.right)
    yield from _spread(grid, inner, sizes, *(s.value for s in kernel.finals))


def _spread(grid: int, loops: Sequence[str], sizes: Mapping[str, int], *values: Expression) -> Iterator[float]:
    """Operations of values for every index of the grid, and of those of some loops that they depend on."""
    for e in {e.number: e for value in values for e in unreduced_parts(value)}.values():
        yield weight(e) * grid * _count([name for name in loops if name in e.free], sizes)


def _sizes(kernel: Kernel) -> dict[str, int]:
    loops = [*kernel.grid, kernel.row, *(s.lane for s in kernel.sweeps)]
    loops += [kernel.features] if kernel.features is not None else []
    return {loop.name: loop.count for loop in loops}


def _count(names: Iterable[str], sizes: Mapping[str, int]) -> int:
    return math.prod(sizes.get(name, 1) for name in names)


def _size(node: Node) -> int:
    return int(str(node.type.size()))
