"""Which tensors of a program are stored, so that nothing is computed from the start for each of its readers."""

from __future__ import annotations

from rewright import ops
from rewright.analysis.moving import laid_out
from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.optimize.planning.beside import parts_to_store
from rewright.optimize.planning.costs import Machine, elements
from rewright.optimize.planning.reading import NotScalar, Reader
from rewright.optimize.planning.roles import reductions
from rewright.optimize.scalars.expressions import Table
from rewright.terms.scalar import Scalar

CHEAP = (ops.Elementwise, ops.Layout)
LONG, LONGEST = 32, 96
"""Functions of an element that are not computed twice, and not even once within others; reductions end them."""
SPREAD = 4
"""Looked-up values are stored where this many times as many elements read them."""


class Storing:
    """What is known of the tensors of a graph, and which of them are stored."""

    graph: Graph
    table: Table
    live: list[int]
    users: list[list[int]]
    library: dict[int, str]
    cuts: set[int]
    needed: set[int]
    whole: set[int]
    fixed: frozenset[int]
    projections: frozenset[int]
    denotations: dict[int, Scalar | Unsupported]
    decisions: list[str]
    machine: Machine

    def _memory(self) -> frozenset[int]:
        graph = self.graph
        found = set(graph.inputs.values()) | self.cuts
        self.needed = set()
        found |= set(graph.outputs.values())
        for position in self.library:
            found.add(position)
            self.needed |= {self.base(p) for p in graph.nodes[position].operands}
        found |= self.needed
        found |= {p for p in self.live if ops.is_table(graph.nodes[p].op)}
        return frozenset(found)

    def base(self, position: int) -> int:
        """The tensor that a chain of layout operators is a view of."""
        stored = self.cuts | set(self.graph.outputs.values())
        while isinstance(self.graph.nodes[position].op, ops.View) and position not in stored:
            position = self.graph.nodes[position].operands[0]
        return position

    def _is_computed(self, position: int) -> bool:
        return position not in self.library and not self._is_given(position)

    def _is_given(self, position: int) -> bool:
        """Whether a tensor is in memory from the start."""
        op = self.graph.nodes[position].op
        return isinstance(op, ops.Input) or ops.is_table(op)

    def _fixed(self) -> frozenset[int]:
        found: set[int] = set()
        for position in self.live:
            node = self.graph.nodes[position]
            given = self._is_given(position) or isinstance(node.op, ops.CustomCall)
            if not given and all(p in found for p in node.operands):
                found.add(position)
        return frozenset(found)

    def _is_projection(self, position: int) -> bool:
        """Whether a node is the product of something computed and an input, as a linear layer is."""
        if not isinstance(self.graph.nodes[position].op, ops.DotGeneral):
            return False
        given: list[bool] = []
        for p in self.graph.nodes[position].operands:
            given.append(isinstance(self.graph.nodes[laid_out(self.graph, p)].op, ops.Input))
        return sorted(given) == [False, True]

    def _is_linear(self, position: int) -> bool:
        """Whether a node is a projection whose two sides have no axis in common, as a linear layer is."""
        op = self.graph.nodes[position].op
        return position in self.projections and isinstance(op, ops.DotGeneral) and not op.lhs_batch

    def _shared(self) -> None:
        """A tensor that several readers would compute again from larger ones is stored."""
        for position in self.live:
            node = self.graph.nodes[position]
            if not isinstance(node.op, ops.Elementwise) or len(self.users[position]) < 2:
                continue
            size = elements(self.graph, position)
            leaves = self._leaves(position)
            if size > 1 and leaves and sum(elements(self.graph, p) for p in leaves) > size and len(leaves) > 1:
                readers = {r for u in self.users[position] for r in self._consumers(u)}
                # What another reader is computed from may be in the same pass: the numerator of a softmax and its sum.
                # A linear layer is a pass of its own, also where the other reader comes after it, as a residual does.
                apart = [r for r in readers if self._is_linear(r) or r not in self._before(readers - {r})]
                if len(apart) > 1:
                    self.cuts.add(position)

    def _before(self, positions: set[int]) -> set[int]:
        """What may be in one pass with some tensors: all that they are computed from, back to linear layers."""
        found: set[int] = set()
        stack = list(positions)
        while stack:
            position = stack.pop()
            if position not in found:
                found.add(position)
                ends = position not in positions and (position in self.library or self._is_linear(position))
                stack.extend(() if ends else self.graph.nodes[position].operands)
        return found

    def _rolled(self) -> None:
        """A tensor that is put together anew from its slices is stored where each of them would reduce anew.

        So a normalisation is not computed for every part of a shifted window. What turns pairs of a normalised head
        has one statistic for the head.
        """
        for position in self.live:
            node = self.graph.nodes[position]
            parts = [self.graph.nodes[p] for p in node.operands]
            if not isinstance(node.op, ops.Concatenate) or not all(isinstance(p.op, ops.Slice) for p in parts):
                continue
            source, base = parts[0].operands[0], self.base(parts[0].operands[0])
            if any(p.operands[0] != source for p in parts) or base in self.library or not self._is_computed(base):
                continue
            products = {p for p in self.live if isinstance(self.graph.nodes[p].op, ops.DotGeneral)}
            read = (self._memory() | products) - {base}
            names = tuple(f"o{axis}" for axis in range(len(node.type.shape)))
            try:
                value = Reader(self.graph, self.table, read, {}, (), self.denotations).root(source, names)
            except NotScalar:
                continue
            if any(names[node.op.dimension] in e.free for e in reductions(value)):
                self.cuts.add(base)
                self.whole.add(base)
                self.decisions.append(f"{self.graph.nodes[base].op.name} is stored: its slices are put together")

    def _side_by_side(self) -> None:
        """Products that are parts of a larger tensor are stored, where computing them at all its places costs more."""
        for position in parts_to_store(self.graph, self.machine, self.live, self.base, self._is_mapped):
            if position not in self.cuts:
                self.cuts.add(position)
                self.whole.add(position)
                node = self.graph.nodes[position]
                self.decisions.append(f"{node.op.name} at {node.span} is stored: it is a part of a tensor")

    def _is_mapped(self, position: int) -> bool:
        """Whether kernels compute a tensor where they read it."""
        return position not in self.cuts and self._is_computed(position)

    def _looked_up(self) -> None:
        """What is looked up at computed places is stored where several times as many elements read it.

        So a bias by distance is looked up once for all windows of an image, and not for each of them. A view of more
        elements than it shows repeats them.
        """
        for position in self.live:
            if not isinstance(self.graph.nodes[position].op, ops.Gather) or not self._is_computed(position):
                continue
            stack, size = [position], elements(self.graph, position)
            while stack:
                p = stack.pop()
                for user in self.users[p]:
                    op = self.graph.nodes[user].op
                    if isinstance(op, ops.View) and elements(self.graph, user) >= SPREAD * size:
                        self.cuts.add(self.base(p))
                        self.whole.add(self.base(p))
                    elif isinstance(op, ops.View) or (isinstance(op, ops.Elementwise) and len(self._one(user)) == 1):
                        stack.append(user)

    def _one(self, position: int) -> set[int]:
        """The operands of a node but constants."""
        return {p for p in self.graph.nodes[position].operands if p not in self.fixed}

    def _long(self) -> None:
        """What takes many functions for an element is stored, where several readers would have them again.

        So the state of a recurrence, or of a scan that is written out, is not computed from the start for each step.
        """
        effort: dict[int, int] = {}  # as a tree, which is cheap to count and never less
        for position in self.live:
            node = self.graph.nodes[position]
            effort[position] = 1
            if position in self.cuts or position in self.library or position in self.fixed:
                continue
            if isinstance(node.op, CHEAP):
                own = isinstance(node.op, ops.Elementwise)
                effort[position] = min(own + sum(effort[p] for p in node.operands), LONGEST + 1)
            most = LONGEST if len(self.users[position]) < 2 else LONG
            if effort[position] > most and not isinstance(node.op, ops.View) and self._functions(position, most) > most:
                self.cuts.add(position)
                self.decisions.append(f"{node.op.name} at {node.span} is stored: it takes many functions")
                effort[position] = 1

    def _functions(self, root: int, most: int) -> int:
        """The number of functions an element takes, counted up to a bound; what is read at two places counts twice."""
        seen: set[tuple[int, tuple[int, ...]]] = set()
        stack: list[tuple[int, tuple[int, ...]]] = [(root, ())]
        count = 0
        while stack and count <= most:
            position, way = stack.pop()
            node = self.graph.nodes[position]
            stops = position in self.cuts or position in self.library or position in self.fixed
            if (position, way) in seen or (stops and position != root) or not isinstance(node.op, CHEAP):
                continue
            seen.add((position, way))
            if isinstance(node.op, ops.Elementwise):
                count += 1
            else:
                way = (*way, position)
            stack.extend((p, way) for p in node.operands)
        return count

    def _consumers(self, position: int) -> set[int]:
        """The matrix products and outputs that read a tensor element by element.

        What only reads reductions of it is none: they are statistics of a row, which the pass has that goes through
        the tensor anyway, as that of ``softmax(s) @ v`` has the maximum of s.
        """
        found: set[int] = set()
        seen: set[int] = set()
        stack = [position]
        outputs = set(self.graph.outputs.values())
        while stack:
            p = stack.pop()
            if p in seen:
                continue
            seen.add(p)
            op = self.graph.nodes[p].op
            if p in outputs or p in self.cuts or isinstance(op, ops.DotGeneral):
                found.add(p)
            elif not isinstance(op, ops.Reduce):
                stack.extend(self.users[p])
        return found

    def _leaves(self, position: int) -> set[int]:
        found: set[int] = set()
        seen: set[int] = set()
        stack = list(self.graph.nodes[position].operands)
        while stack:
            p = stack.pop()
            if p in seen:
                continue
            seen.add(p)
            if p in self.cuts or not self._is_computed(p):
                found.add(p)
            elif isinstance(self.graph.nodes[p].op, ops.DotGeneral):
                found |= {self.base(o) for o in self.graph.nodes[p].operands}
            else:
                stack.extend(self.graph.nodes[p].operands)
        return found
