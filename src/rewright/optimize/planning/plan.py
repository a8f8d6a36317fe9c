"""What a plan is: steps, each a kernel or a call of a library, and the tensors that they read and write."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property

from rewright.ir.graph import Graph
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import Facts
from rewright.optimize.kernel import Kernel
from rewright.optimize.scalars.expressions import Expression, Table, walk
from rewright.optimize.scalars.facts import facts_of_tensors

WANT = "for want of a proof"
"""Why a part of a program is left to a library, in a decision."""


@dataclass(frozen=True)
class LibraryStep:
    """A node that a library computes."""

    position: int
    why: str


@dataclass(frozen=True)
class KernelStep:
    """A fused kernel."""

    kernel: Kernel


Step = LibraryStep | KernelStep


@dataclass
class Plan:
    """Steps in an order in which they can run, and what was decided on the way."""

    graph: Graph
    table: Table
    memory: frozenset[int]
    steps: tuple[Step, ...]
    decisions: list[str] = field(default_factory=list[str])

    @cached_property
    def tensors(self) -> list[Facts]:
        """What its tensors may be, of inputs that are real numbers or masks."""
        return facts_of_tensors(self.graph)

    @cached_property
    def defined(self) -> list[Facts]:
        """What its tensors may be wherever the program is defined."""
        return facts_of_tensors(self.graph, defined=True)

    @property
    def kernels(self) -> list[Kernel]:
        """The fused kernels."""
        return [s.kernel for s in self.steps if isinstance(s, KernelStep)]


def base_of(graph: Graph, memory: Collection[int], position: int) -> int:
    """The stored tensor that a tensor is, or is a view of."""
    while position not in memory and graph.nodes[position].operands:
        position = graph.nodes[position].operands[0]
    return position


def reads(graph: Graph, step: Step, base: Callable[[int], int]) -> set[int]:
    """The stored tensors that a step reads; ``base`` says of which one a tensor is a view."""
    if isinstance(step, LibraryStep):
        return {base(p) for p in graph.nodes[step.position].operands}
    return loads(step.kernel) - set(writes(step))


def widen_storage(plan: Plan) -> Plan:
    """The plan with 16-bit tensors that only kernels read stored in float32, as what they compute is.

    A sum of squares that PyTorch keeps in float32 within one operator would overflow in fp16 between two kernels, and
    scores that a library computes would be rounded as coarsely as in the program. A linear layer is left as it is,
    and so are scores in bfloat16, which libraries multiply several times as fast as what is widened before.
    """
    libraries = [step.position for step in plan.steps if isinstance(step, LibraryStep)]
    read = {p for position in libraries for p in plan.graph.nodes[position].operands}
    fixed = {base_of(plan.graph, plan.memory, p) for p in (*read, *plan.graph.outputs.values())} | set(
        plan.graph.outputs.values()
    )
    products = {p for p in libraries if getattr(plan.graph.nodes[p].op, "lhs_batch", ()) and _is_half(plan, p)}
    own = ({s.tensor for kernel in plan.kernels for s in kernel.stores} | products) - fixed
    nodes = tuple(
        replace(node, type=TensorType(node.type.shape, DType.F32))
        if position in own and node.type.dtype in (DType.F16, DType.BF16)
        else node
        for position, node in enumerate(plan.graph.nodes)
    )
    return replace(plan, graph=replace(plan.graph, nodes=nodes))


def _is_half(plan: Plan, position: int) -> bool:
    return plan.graph.nodes[position].type.dtype is DType.F16


def writes(step: Step) -> tuple[int, ...]:
    """The tensors that a step writes."""
    return (step.position,) if isinstance(step, LibraryStep) else tuple(s.tensor for s in step.kernel.stores)


def loads(kernel: Kernel) -> set[int]:
    """The tensors that a kernel reads."""
    return {e.tensor for e in walk(*roots(kernel)) if e.op == "load" and e.tensor >= 0}


def roots(kernel: Kernel) -> list[Expression]:
    """The expressions that a kernel stores."""
    return [s.value for s in kernel.stores]
