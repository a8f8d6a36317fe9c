"""The tensors that a printed kernel takes."""

from __future__ import annotations

from rewright.ir.graph import Graph
from rewright.optimize.kernel import Kernel
from rewright.optimize.printing.statements import Argument
from rewright.optimize.scalars.expressions import walk


def arguments(graph: Graph, kernel: Kernel) -> tuple[Argument, ...]:
    """The tensors that a kernel takes: those that it reads, in order, and then those that it writes."""
    stored = [s.tensor for s in kernel.stores]
    read = {e.tensor for s in kernel.stores for e in walk(s.value) if e.op == "load" and e.tensor >= 0}
    found: list[Argument] = []
    for tensor in dict.fromkeys([*sorted(read), *stored]):
        node = graph.nodes[tensor]
        label = getattr(node.op, "label", None)
        title = f"{label} {node.type}" if label else f"{node.op.name} {node.type} of {node.span}"
        found.append(Argument(tensor, node.type.dtype, tensor in stored, title))
    return tuple(found)
