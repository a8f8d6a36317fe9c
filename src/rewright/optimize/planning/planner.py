"""From a graph to steps: which tensors are stored, which kernels compute them, what is left to a library.

Everything is inlined until something forbids it: a reduction inside of another one that is no product of tiles, an
accumulator that is too wide, a plain matrix product. What is cut off there becomes a tensor in memory, and the search
starts
again with one more such tensor; so there are at most as many rounds as reductions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rewright import ops
from rewright.analysis.values import facts_of
from rewright.frontends.torch.lower.foreign import TARGET, names
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator, Unsupported
from rewright.ops.facts import Facts, integer_range
from rewright.ops.sorting import is_ranked
from rewright.optimize.kernel import Kernel, Store
from rewright.optimize.online.distributing import distribute_sums
from rewright.optimize.planning.costs import CPU, Machine, again_seconds, elements
from rewright.optimize.planning.dense import WHY, dense_products
from rewright.optimize.planning.flattening import flat_results
from rewright.optimize.planning.linear import sum_of
from rewright.optimize.planning.merging import Merger, loaded_tensors
from rewright.optimize.planning.plan import KernelStep, LibraryStep, Plan, Step, reads, writes
from rewright.optimize.planning.reading import DEEP, MOST_READ, NotScalar, Places, Reader, TooDeep
from rewright.optimize.planning.roles import Cut, Job, arrange, reductions
from rewright.optimize.planning.storing import CHEAP, Storing
from rewright.optimize.planning.work import node_work, shares
from rewright.optimize.scalars.expressions import Expression, Table, unreduced_parts, walk
from rewright.terms.scalar import Scalar

REPEATED, LARGE = 1.5, 4.0
"""What is computed more often, all kernels together, is stored where that is cheaper; or what is larger than all that
is given and returned, as the scores of attention are."""
ROUNDS = 4
"""For each node so many rounds of the search, each of which stores a tensor or leaves one to a library."""
THIN = 8
"""A tensor is thin where it has fewer elements than what it is computed from by this factor."""


class Planner(Storing):
    """The search for a plan of one graph whose sizes are numbers."""

    def __init__(
        self,
        graph: Graph,
        apart: Collection[int] = (),
        before: Planner | None = None,
        machine: Machine = CPU,
        like: Planner | None = None,
    ) -> None:
        self.graph = graph
        self.machine = machine if before is None else before.machine
        self.library: dict[int, str] = {}
        self.apart = apart
        """What a library has to do."""
        self.cuts: set[int] = set() if before is None else set(before.cuts) - set(apart)
        self.needed: set[int] = set()
        """Operands of libraries: they are stored, and nothing computes them again."""
        self.whole: set[int] = set()
        """Nor are these, whose slices are read side by side."""
        self.hard: dict[int, set[int]] = {} if before is None else {p: set(cuts) for p, cuts in before.hard.items()}
        """For the job of a tensor, the stored tensors that it has to read rather than compute again."""
        self.table = Table() if before is None else before.table
        self.origin: dict[Expression, tuple[int, Places]] = {} if before is None else before.origin
        self.jobs: dict[tuple[int, frozenset[int]], Job] = {} if before is None else before.jobs
        """The job of a tensor by the tensors in memory that it reads."""
        self.like = like if like is not None and _is_alike(graph, like.graph) else None
        """The planner of the same program at other sizes, whose choices are taken as they are."""
        self.decisions: list[str] = []
        self.repeated: list[str] = []
        """Decisions about what is computed more than once."""
        self.merger = Merger() if before is None else before.merger
        self.denotations: dict[int, Scalar | Unsupported] = {} if before is None else before.denotations
        self.live = sorted(graph.live())
        self.users = graph.users()
        self._facts: list[Facts] = []
        self.classes: list[int] = []
        """For each node the first one that computes the same, once that is asked for."""
        self.fixed = self._fixed()
        """What depends on no input, as masks do: it is known where it is computed, and not where it is read."""
        self.projections = frozenset(p for p in self.live if self._is_projection(p))

    def plan(self) -> Plan:
        """The plan; raises RewrightError where an operator can neither be fused nor run by a library."""
        for node in self.graph.nodes:
            if node.type.dtype.is_byte_float:
                raise RewrightError(
                    f"{node.op.name} at {node.span} has floats of 8 bits, which kernels are not printed for"
                )
        self._opaque()
        if self.like is None:
            for position in dense_products(self.graph, self.machine):
                self._leave(position, WHY)
            self._shared()
            self._side_by_side()
            self._rolled()
            self._looked_up()
            self._long()
            for position in flat_results(self.graph, frozenset(self.library)):
                self._leave(position, "a view of what is stored")
        else:
            self._follow(self.like)
        table, origin = self.table, self.origin
        for _ in range(ROUNDS * len(self.graph.nodes)):
            memory = self._memory()
            try:
                jobs = [self._job(table, memory, origin, p) for p in sorted(memory) if self._is_computed(p)]
            except _Again:
                continue
            jobs = self._read(jobs)
            made = {job.stores[0].tensor for job in jobs}
            memory = frozenset(p for p in memory if p in made or not self._is_computed(p))
            reads = {p: {self.base(o) for o in self.graph.nodes[p].operands} for p in self.library}
            kernels = self.merger.kernels(Reader(self.graph, table, memory, origin), jobs, reads)
            if self.like is not None or not self._store_repeated(kernels):
                self.decisions += self.repeated
                return Plan(self.graph, table, memory, self._order(kernels), self.decisions)
        raise RewrightError("the search for a plan does not come to an end")

    # --- what is stored

    def _follow(self, other: Planner) -> None:
        """Store what another planner stores in the end, and leave to a library what it leaves."""
        self.library |= other.library
        self.cuts |= other.cuts
        self.whole |= other.whole
        self.hard = {p: set(cuts) for p, cuts in other.hard.items()}

    def _opaque(self) -> None:
        """Operators without a scalar denotation are a library's."""
        for position in self.live:
            node = self.graph.nodes[position]
            if position in self.apart:
                self._leave(position, "as a part of a kernel it is not proved")
                continue
            if isinstance(node.op, ops.TopK) and not is_ranked(node.op, self.graph.nodes[node.operands[0]].type):
                continue
            if isinstance(node.op, (ops.Ordering, ops.Update)):
                self.library[position] = f"{node.op.name} at {node.span} is no loop nest"
            elif isinstance(node.op, ops.CustomCall):
                what = ", ".join(names(node.op)) if node.op.target == TARGET else node.op.target
                self._leave(position, f"{what} has no kernel")
            elif position in self.fixed and node.type.dtype.is_integer and self._wraps(position):
                self.library[position] = f"{node.op.name} at {node.span} may not fit its integers"
            elif _has_no_code(node):
                self.library[position] = f"{node.op.name} at {node.span} is a special function"
            elif isinstance(node.op, ops.ReduceWindow) and node.op.is_cumulative(node.type.shape):
                self.library[position] = f"{node.op.name} at {node.span} is a running total, which needs one step each"
            elif _contracts_several(node.op):
                self.library[position] = f"{node.op.name} at {node.span} contracts over several axes"

    def _wraps(self, position: int) -> bool:
        """Whether a number of places may wrap: as an index it would be computed as if it did not."""
        if not isinstance(self.graph.nodes[position].op, (ops.Elementwise, ops.Reduce)):
            return False
        if not self._facts:
            self._facts = facts_of(self.graph)
        known, (low, high) = self._facts[position], integer_range(self.graph.nodes[position].type.dtype)
        return known.low <= low or high <= known.high

    # --- kernels

    def _job(
        self, table: Table, memory: frozenset[int], origin: dict[Expression, tuple[int, Places]], position: int
    ) -> Job:
        """The job of one stored tensor, cut until its roles fit; raises _Again where something new is stored.

        What reads the same tensors as in a round before is the same job, so that a deep network is read about once.
        """
        while True:
            read = memory - self._transparent(position, memory)
            key = (position, self._stops(position, read))
            if key not in self.jobs:
                job = self._tried(table, read, origin, position)
                if job is None:
                    continue
                self.jobs[key] = job
            return self.jobs[key]

    def _stops(self, position: int, read: frozenset[int]) -> frozenset[int]:
        """The tensors in memory that a tensor is computed from, among those that are read."""
        found: set[int] = set()
        seen: set[int] = set()
        stack = list(self.graph.nodes[position].operands)
        while stack:
            p = stack.pop()
            if p in read:
                found.add(p)
            elif p not in seen:
                seen.add(p)
                stack.extend(self.graph.nodes[p].operands)
        return frozenset(found)

    def _too_deep(self, root: int, read: frozenset[int]) -> int | None:
        """A projection inside of so many reductions that a reader would give up there, found without reading."""
        seen: set[tuple[int, int]] = set()
        stack = [(root, 0)]
        while stack:
            position, depth = stack.pop()
            if (position, depth) in seen or (position in read and position != root):
                continue
            seen.add((position, depth))
            if depth >= DEEP and position in self.projections:
                return position
            node = self.graph.nodes[position]
            depth = min(depth + isinstance(node.op, (ops.Reduce, ops.DotGeneral, ops.ReduceWindow)), DEEP)
            stack.extend((p, depth) for p in reversed(node.operands))
        return None

    def _tried(
        self, table: Table, read: frozenset[int], origin: dict[Expression, tuple[int, Places]], position: int
    ) -> Job | None:
        """The job that reads these stored tensors; None where it has to read more, which is noted."""
        shape = self.graph.nodes[position].type.shape
        sizes = {f"o{axis}": size for axis, size in enumerate(shape) if isinstance(size, int)}
        names = tuple(f"o{axis}" for axis in range(len(shape)))
        returned = position in self.graph.outputs.values()
        deep = self._too_deep(position, read)
        if deep is not None:
            self.cuts.add(deep)
            raise _Again
        reader = Reader(self.graph, table, read, origin, self.projections, self.denotations, MOST_READ)
        try:
            value = reader.root(position, names)
        except TooDeep as inner:
            self.cuts.add(inner.position)
            self.hard.setdefault(position, set()).add(inner.position)
            raise _Again from None
        except NotScalar as error:
            self.library[position] = str(error)
            raise _Again from None
        try:
            return _arrange(table, Store(position, names, distribute_sums(table, value), returned), sizes)
        except Cut:
            pass  # it may fit as it was
        try:
            return _arrange(table, Store(position, names, value, returned), sizes)
        except Cut as cut:
            self._cut(reader, position, cut, value)
        return None

    def _transparent(self, root: int, memory: frozenset[int]) -> frozenset[int]:
        """Stored tensors that a job computes anew: reductions, and elementwise tensors that it reads first."""
        hard = self.hard.get(root, set())
        found: set[int] = set()
        seen: set[tuple[int, bool]] = set()
        stack = [(p, True) for p in self.graph.nodes[root].operands]
        while stack:
            p, first = stack.pop()
            if (p, first) in seen:
                continue
            seen.add((p, first))
            if p in memory:
                op = self.graph.nodes[p].op
                if (
                    p in hard
                    or p in self.whole
                    or not self._is_computed(p)
                    or (p in self.needed and p not in self.fixed)
                ):
                    continue
                if isinstance(op, ops.Reduce) or p in self.fixed:
                    found.add(p)
                elif first and isinstance(op, CHEAP):
                    found.add(p)
                    first = False
                else:
                    continue
            stack.extend((q, first) for q in self.graph.nodes[p].operands)
        return frozenset(found)

    def _cut(self, reader: Reader, root: int, cut: Cut, value: Expression) -> None:
        """Store what does not fit, for this job or for all; raises _Again where the tensors in memory change."""
        thin = None if cut.library else self._thin(reader, cut, value)
        if thin is not None:
            self.cuts.add(thin)
            self.hard.setdefault(root, set()).add(thin)
            self.decisions.append(
                f"{self.graph.nodes[thin].op.name} at {self.graph.nodes[thin].span} is stored: it is thin"
            )
            raise _Again
        fresh = again = False
        for e in cut.values:
            origin = reader.origin.get(e)
            if origin is None or origin[0] == root:
                continue
            position = origin[0]
            node = self.graph.nodes[position]
            if cut.library and isinstance(node.op, ops.DotGeneral):
                left = len(self.library)
                for twin in self._twins(position):
                    self._leave(twin, str(cut))
                again = again or len(self.library) > left
                continue
            if position in self.hard.get(root, ()):
                continue
            self.hard.setdefault(root, set()).add(position)
            fresh = True
            if position not in reader.memory and position not in self.cuts:
                self.cuts.add(position)
                self.decisions.append(f"{node.op.name} at {node.span} is stored: {cut}")
                again = again or position not in self.graph.outputs.values()
        if not fresh and not again:
            self._hardest(reader, root, value, str(cut))
            again = True
        if again:
            raise _Again

    def _twins(self, position: int) -> list[int]:
        """The nodes that compute the same, itself among them: they are one expression."""
        if not self.classes:
            known: dict[tuple[object, ...], int] = {}
            for p, node in enumerate(self.graph.nodes):
                key = (node.op, node.type, *(self.classes[q] for q in node.operands))
                self.classes.append(known.setdefault(key, p))
        return [p for p in self.live if self.classes[p] == self.classes[position]]

    def _thin(self, reader: Reader, cut: Cut, value: Expression) -> int | None:
        """What an outer reduction reads, where that is far smaller than what it is computed from."""
        around = {e.number for e in cut.values}
        for e in walk(value):
            if any(a.number in around for a in e.arguments):
                around.add(e.number)
        for outer in reductions(value):
            if outer not in reader.origin or outer.arguments[0].number not in around:
                continue
            node = self.graph.nodes[reader.origin[outer][0]]
            if not isinstance(node.op, ops.Reduce):
                continue
            operand = self.base(node.operands[0])
            leaves = sum(elements(self.graph, p) for p in self._leaves(operand))
            if operand not in reader.memory and THIN * elements(self.graph, operand) <= leaves:
                return operand
        return None

    def _leave(self, position: int, why: str) -> None:
        """Leave a node to a library."""
        node = self.graph.nodes[position]
        if position not in self.library:
            self.library[position] = f"{node.op.name} at {node.span}: {why}"
            self.decisions.append(f"{node.op.name} at {node.span} is left to the library: {why}")
            biased = sum_of(self.graph, self.users, position) if isinstance(node.op, ops.DotGeneral) else None
            if biased is not None:
                where = self.graph.nodes[biased].span
                self.library.setdefault(biased, f"add at {where}: a library adds a bias as it multiplies")

    def _hardest(self, reader: Reader, root: int, value: Expression, why: str) -> None:
        """Store the innermost reduction that is computed anew, or leave the node to a library."""
        for e in reductions(value):
            position = reader.origin.get(e, (root, ()))[0]
            if position != root and position not in self.hard.get(root, ()):
                self.hard.setdefault(root, set()).add(position)
                self.cuts.add(position)
                self.decisions.append(f"{self.graph.nodes[position].op.name} is stored: {why}")
                return
        if isinstance(self.graph.nodes[root].op, ops.Input) or root in self.library:
            raise RewrightError(f"no plan for {self.graph.nodes[root].op.name} at {self.graph.nodes[root].span}: {why}")
        self._leave(root, why)

    def _store_repeated(self, kernels: Sequence[Kernel]) -> bool:
        """Store the reduction that kernels compute again at the greatest cost, where storing it is cheaper."""
        nodes = self.graph.nodes
        done: dict[int, float] = {}
        for share in (share for kernel in kernels for share in shares(kernel)):
            position, _ = self.origin.get(share.value, (None, ()))
            if position is not None and position not in self.whole and not self._is_given(position):
                apart = isinstance(nodes[position].op, ops.DotGeneral) and not share.is_product
                done[position] = done.get(position, 0.0) + share.done * (2.0 if apart else 1.0)
        once = {p: node_work(self.graph, nodes[p]) for p in done}
        own = (*self.graph.inputs.values(), *self.graph.outputs.values())
        most = max(elements(self.graph, p) for p in own)
        self.repeated = []
        worth: dict[int, float] = {}
        for p, work in done.items():
            few = LARGE if elements(self.graph, p) > most else REPEATED
            if work > few * once[p]:
                worth[p] = again_seconds(self.graph, p, work - once[p], self.machine)
            elif work > REPEATED * once[p]:
                where = f"{nodes[p].op.name} at {nodes[p].span}"
                self.repeated.append(f"{where} is computed {work / once[p]:.1f} times: it is too large to be stored")
        worst = max(worth, key=lambda p: worth[p], default=None)
        if worst is None or worth[worst] <= 0:
            return False
        times = done[worst] / once[worst]
        worst = self._smaller_around(kernels, worst)
        self.cuts.add(worst)
        self.whole.add(worst)
        where = f"{nodes[worst].op.name} at {nodes[worst].span}"
        self.decisions.append(f"{where} is stored: it would be computed {times:.0f} times")
        return True

    def _smaller_around(self, kernels: Sequence[Kernel], position: int) -> int:
        """What to store instead of a reduction: one that it is a part of, is stored by none, and is no larger.

        Where heads are put side by side after attention, each element of them would have scores of its own.
        """
        found = position
        for store in (store for kernel in kernels for store in kernel.stores):
            for e in (e for e in unreduced_parts(store.value) if e.bound is not None):
                outer, _ = self.origin.get(e, (store.tensor, ()))
                inside = {self.origin[x][0] for x in reductions(e) if x in self.origin}
                fits = elements(self.graph, outer) <= elements(self.graph, position)
                free = outer not in self.whole and outer != store.tensor and outer not in self.cuts
                if fits and free and position in inside and outer != position:
                    larger = found == position or elements(self.graph, outer) > elements(self.graph, found)
                    found = outer if larger else found
        return found

    # --- order

    def _read(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs of what is an output or is read: what every reader computes again is not stored for them."""
        made = {job.stores[0].tensor: job for job in jobs}
        wanted: set[int] = set()
        stack = [p for p in (*self.graph.outputs.values(), *self.needed) if p in made]
        while stack:
            tensor = stack.pop()
            if tensor not in wanted:
                wanted.add(tensor)
                stack.extend(loaded_tensors(made[tensor]) & made.keys())
        return [job for job in jobs if job.stores[0].tensor in wanted]

    def _order(self, kernels: Sequence[Kernel]) -> tuple[Step, ...]:
        """Steps such that everything is written before it is read."""
        steps: list[Step] = [LibraryStep(p, why) for p, why in sorted(self.library.items())]
        steps += [KernelStep(k) for k in kernels]
        ready = {p for p in self._memory() if self._is_given(p)}
        waiting = [(step, reads(self.graph, step, self.base)) for step in steps]
        done: list[Step] = []
        while waiting:
            now = [step for step, read in waiting if read <= ready]
            assert now, "a cycle among kernels"
            waiting = [(step, read) for step, read in waiting if not read <= ready]
            done += now
            ready |= {tensor for step in now for tensor in writes(step)}
        return tuple(done)


def _is_alike(one: Graph, other: Graph) -> bool:
    """Whether two graphs have the same operators on the same operands, at sizes of their own."""
    same = [(node.op.name, node.operands) for node in one.nodes] == [(n.op.name, n.operands) for n in other.nodes]
    return same and one.outputs == other.outputs


def _has_no_code(node: Node) -> bool:
    """Whether a kernel cannot compute an elementwise operator on its dtype."""
    record = node.op.record(node.type.dtype) if isinstance(node.op, ops.Elementwise) else None
    return record is not None and record.code.cpp is None


def _contracts_several(op: Operator) -> bool:
    several = isinstance(op, ops.DotGeneral) and len(op.lhs_contracting) != 1
    return several or isinstance(op, ops.Convolution)


def _arrange(table: Table, store: Store, sizes: Mapping[str, int]) -> Job:
    """The job of a store; raises Cut where no roles fit."""
    job = Job((store,), sizes)
    arrange(table, job, "probe")
    return job


class _Again(Exception):
    """Something new is stored; plan again."""
