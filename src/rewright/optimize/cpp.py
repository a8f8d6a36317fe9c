"""Kernels as C++ with OpenMP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rewright.ir.graph import Graph
from rewright.optimize.cpp_rows import Rows
from rewright.optimize.cpp_runtime import HEADER
from rewright.optimize.cpp_scalars import (
    COSTLY,
    ELEMENT,
    ctype,
    literal,
    offset,
    tile_condition,
)
from rewright.optimize.cpp_states import is_state
from rewright.optimize.expressions import Expression, Table, names, walk
from rewright.optimize.kernel import Kernel, Product, Running, Sweep
from rewright.optimize.phases import Work, kept, new_estimates, phases, variants
from rewright.optimize.scopes import Scope
from rewright.optimize.values import identity

PACKED_LIMIT = 16 << 20
"""Bytes that a thread may keep of packed tiles, so that all row blocks of one grid index share them."""


@dataclass(frozen=True)
class Tiling:
    """Sizes of tiles."""

    rows: int = 48
    lanes: int = 64


@dataclass(frozen=True)
class Source:
    """A printed kernel: its text, and the tensors that it takes, in order."""

    name: str
    text: str
    tensors: tuple[int, ...]
    written: frozenset[int]


def print_kernel(graph: Graph, table: Table, kernel: Kernel, tiling: Tiling | None = None, prefix: str = "") -> Source:
    """The C++ function of a kernel, without the header; ``prefix`` is put before its name."""
    named = replace(kernel, name=prefix + kernel.name)
    return _Printer(graph, table, named, tiling or choose_tiling(kernel)).source()


def choose_tiling(kernel: Kernel) -> Tiling:
    """Tiles of products fit the first cache; rows of elementwise work are long and few."""
    heavy = any(s.products for s in kernel.sweeps) or kernel.features is not None
    return Tiling(48, 64) if heavy else Tiling(8, 1024)


def translation_unit(sources: Sequence[Source]) -> str:
    """All kernels of a plan in one file."""
    return HEADER + "\n" + "\n".join(s.text for s in sources)


class _Printer(Rows):
    def __init__(self, graph: Graph, table: Table, kernel: Kernel, tiling: Tiling) -> None:
        super().__init__(graph, table, kernel)
        self.buffers: list[str] = []
        self.bytes = 0
        stored = [s.tensor for s in kernel.stores]
        read = {e.tensor for s in kernel.stores for e in walk(s.value) if e.op == "load" and e.tensor >= 0}
        self.tensors = tuple(dict.fromkeys([*sorted(read), *stored]))
        self.written = frozenset(stored)
        self.real = "double" if kernel.is_wide else "float"
        self.width = 8 if kernel.is_wide else 4
        self.rows = kernel.rows.size if kernel.rows else 1
        self.block = min(tiling.rows, self.rows)
        self.max_lanes = tiling.lanes
        self.features = _padded(kernel.features.size) if kernel.features else 0
        self.ranges = {loop.name: (0, loop.size - 1) for loop in kernel.grid}
        self.ranges[self.row_name] = (0, self.rows - 1)
        if kernel.features:
            self.ranges[kernel.features.name] = (0, kernel.features.size - 1)
        self.packs: dict[int, str] = {}
        self.blocks_shared = self.rows > self.block

    # --- the function

    def source(self) -> Source:
        """The text of the kernel."""
        kernel = self.kernel
        task = self.scopes.push(*(loop.name for loop in kernel.grid))
        task.indent = 3
        self.decode(task)
        block = self.scopes.push()
        block.indent = 4
        block.line(f"const long rows = std::min<long>({self.block}, {self.rows} - first);")
        for sweep in kernel.sweeps:
            self.sweep(sweep)
        if kernel.finals:
            self.finals()
        self.scopes.pop()
        task.line(f"for (long first = from; first < to; first += {self.block}) {{")
        task.lines += block.lines
        task.line("}")
        return Source(kernel.name, self.frame(task), self.tensors, self.written)

    def frame(self, task: Scope) -> str:
        """The function around the work of one task."""
        lines = [f'extern "C" void {self.kernel.name}(void** tensors, long threads) {{']
        for number, tensor in enumerate(self.tensors):
            kind = ELEMENT[self.graph.nodes[tensor].type.dtype]
            const = "" if tensor in self.written else "const "
            what = "writes" if tensor in self.written else "reads"
            lines.append(
                f"  {const}{kind}* __restrict t{tensor} = ({const}{kind}*)tensors[{number}];"
                f"  // {what} {self.title(tensor)}"
            )
        grid = 1
        for loop in self.kernel.grid:
            grid *= loop.size
        blocks = -(-self.rows // self.block)
        lines.append(f"  const long blocks = {blocks}, wanted = (4 * threads + {grid - 1}) / {grid};")
        lines.append("  const long chunks = wanted < blocks ? wanted : blocks;")
        lines.append("  #pragma omp parallel num_threads(threads)\n  {")
        lines.append(f"    Scratch scratch({self.bytes});")
        lines += [f"    {b}" for b in self.buffers]
        lines.append("    #pragma omp for schedule(dynamic)")
        lines.append(f"    for (long task = 0; task < {grid}L * chunks; ++task) {{")
        lines += [*task.lines, "    }", "  }", "}"]
        return "\n".join(lines) + "\n"

    def title(self, tensor: int) -> str:
        """What a tensor is, for comments."""
        node = self.graph.nodes[tensor]
        label = getattr(node.op, "label", None)
        return f"{label} {node.type}" if label else f"{node.op.name} {node.type} of {node.span}"

    def decode(self, task: Scope) -> None:
        """Grid indices and the range of rows of a task."""
        task.line("long rest = task / chunks;")
        for loop in reversed(self.kernel.grid):
            task.line(f"const long {loop.name} = rest % {loop.size}; rest /= {loop.size};")
        task.line(f"const long from = (task % chunks) * blocks / chunks * {self.block};")
        task.line(f"const long to = std::min<long>((task % chunks + 1) * blocks / chunks * {self.block}, {self.rows});")

    def buffer(self, stem: str, count: int, kind: str | None = None) -> str:
        """Memory of a thread."""
        name = self.scopes.fresh(stem)
        kind = kind or self.real
        self.bytes += count * 8 + 64
        self.buffers.append(f"{kind}* __restrict {name} = scratch.take<{kind}>({count});")
        return name

    # --- one sweep

    def sweep(self, sweep: Sweep) -> None:
        """States, the loop over tiles, and the ends of the states."""
        block = self.scopes.here
        lanes = min(self.max_lanes, _padded(sweep.lane.size))
        self.ranges[sweep.lane.name] = (0, sweep.lane.size - 1)
        for product in sweep.products:
            self.ranges[product.depth.name] = (0, product.depth.size - 1)
        for running in sweep.running:
            self.start(block, running)
        left = {p.value.number: self.pack_left(block, p) for p in sweep.products}
        tile = self.scopes.push()
        tile.indent = block.indent + 1
        tile.line(f"const long cols = std::min<long>({lanes}, {sweep.lane.size} - begin);")
        found = variants(self.table, sweep)
        bounds = {n: (n, n) for n in self.ranges}
        bounds[self.row_name] = ("first", "(first + rows - 1)")
        bounds[sweep.lane.name] = ("begin", "(begin + cols - 1)")
        for number, condition in enumerate(found.conditions):
            if found.skip or found.special or found.plain:
                tile.line(f"const int known{number} = {tile_condition(condition, bounds)};")
        if found.skip:
            tests = [self.simpler(tile, sweep, (one,), found.taken[one,]) for one in found.skip]
            if any(tests):
                tile.line(f"if ({' || '.join(filter(None, tests))}) continue;  // the mask absorbs the whole tile")
        cases: list[tuple[str, Work]] = []
        for (n, v), special in found.special:
            cases.append((self.simpler(tile, sweep, ((n, v),), found.taken[(n, v),]), special))
        if found.plain:
            cases.append((self.simpler(tile, sweep, found.plain[0], found.taken[found.plain[0]]), found.plain[1]))
        opened = False
        for test, case in (one for one in cases if one[0]):
            tile.line(f"{'} else ' if opened else ''}if ({test}) {{")
            self.tile(sweep, case, lanes, left)
            opened = True
        if opened:
            tile.line("} else {")
        self.tile(sweep, found.mixed, lanes, left)
        if opened:
            tile.line("}")
        self.absorbing(sweep, tile)
        self.scopes.pop()
        block.line(f"for (long begin = 0; begin < {sweep.lane.size}; begin += {lanes}) {{")
        block.lines += tile.lines
        block.line("}")
        self.settle(block, sweep)
        self.done += sweep.running

    def settle(self, block: Scope, sweep: Sweep) -> None:
        """Means as they are, and what follows them, where the sweep knows how far its estimates are from them."""
        if not sweep.remainders:
            return
        row = self.scopes.push(self.row_name)
        row.indent = block.indent + 1
        self.enter_row(row)
        self.settle_row(row, sweep)
        self.scopes.pop()
        block.line("for (long r = 0; r < rows; ++r) {  // means were estimated; what is left of them tells how well")
        block.lines += row.lines
        block.line("}")

    def start(self, block: Scope, running: Running) -> None:
        """The state before the first tile."""
        assert running.value.bound is not None
        count = (1 if running.is_shared else self.block) * (self.features if running.factors else 1)
        name = self.buffer("sum" if running.factors else "state", count, self.state_type(running))
        self.state[running.value.number] = name
        first = literal(identity(running.value.bound.kind), running.value.dtype, self.real)
        total = f"rows * {self.features}" if running.factors else "rows"
        total = str(self.features) if running.is_shared else total
        if running.factors is not None:
            self.states_of[running.value.number] = self.feature_state(running)
        block.line(f"for (long r = 0; r < {total}; ++r) {name}[r] = {first};")

    def absorbing(self, sweep: Sweep, tile: Scope) -> None:
        """Stop where every state has the value that nothing changes."""
        kinds = {r.value.bound.kind for r in sweep.running if r.value.bound}
        if kinds and kinds <= {"or", "and"} and not sweep.stores:
            tile.line("bool settled = true;")
            for r in sweep.running:
                assert r.value.bound is not None
                test = "" if r.value.bound.kind == "or" else "!"
                tile.line(f"for (long r = 0; r < rows; ++r) settled &= {test}{self.state[r.value.number]}[r];")
            tile.line("if (settled) break;  // nothing changes any more")

    # --- operands of products

    def pack_left(self, block: Scope, product: Product) -> str:
        """The left operand of a product for a block of rows."""
        depth = product.depth
        name = self.buffer("left", self.block * depth.size)
        self.fill(
            block,
            [(self.row_name, "r", "rows", "first"), (depth.name, "d", str(depth.size), "0")],
            product.left,
            f"{name}[r * {depth.size} + d]",
        )
        return name

    def pack_tile(
        self, tile: Scope, e: Expression, sweep: Sweep, inner: tuple[str, int, int], lanes: int, across: bool
    ) -> str:
        """An operand that depends on the lane, packed once for all row blocks where there is room for it."""
        name, size, padded = inner
        tiles = -(-sweep.lane.size // lanes)
        whole = tiles * lanes * padded
        share = self.blocks_shared and whole * self.width <= PACKED_LIMIT
        base = self.buffer("tile", whole if share else lanes * padded)
        text = self.scopes.fresh("packed")
        if share:
            flags = self.buffer("filled", tiles, "char")
            task = self.scopes.stack[0]
            task.line(f"memset({flags}, 0, {tiles});")
            tile.line(f"{self.real}* __restrict {text} = {base} + begin * {padded};")
            tile.line(f"if (!{flags}[begin / {lanes}]) {{")
            tile.line(f"  {flags}[begin / {lanes}] = 1;")
        else:
            tile.line(f"{self.real}* __restrict {text} = {base};")
            tile.line("{")
        lane = (sweep.lane.name, "c", "cols", "begin")
        if across:  # one row for each depth: the lane is contiguous
            if sweep.lane.size % lanes:
                tile.line(f"  if (cols < {lanes}) memset({text}, 0, sizeof({self.real}) * {lanes * padded});")
            self.fill(tile, [lane, (name, "d", str(size), "0")], e, f"{text}[d * {lanes} + c]")
        else:
            if padded != size:
                tile.line(f"  memset({text}, 0, sizeof({self.real}) * {lanes * padded});")
            self.fill(tile, [lane, (name, "d", str(size), "0")], e, f"{text}[c * {padded} + d]")
        tile.line("}")
        return text

    def fill(self, scope: Scope, loops: Sequence[tuple[str, str, str, str]], e: Expression, target: str) -> None:
        """Loops that write an expression to memory."""
        opened: list[Scope] = []
        for name, counter, _, start in loops:
            inner = self.scopes.push(name)
            inner.indent = scope.indent + len(opened) + 1
            inner.line(f"const long {name} = {start} + {counter};")
            opened.append(inner)
        opened[-1].line(f"{target} = {self.text(e)};")
        for inner, (_, counter, count, _) in zip(reversed(opened), reversed(loops), strict=True):
            self.scopes.pop()
            above = self.scopes.here if inner is not opened[0] else scope
            above.lines.append(
                "  " * (inner.indent - 1) + f"for (long {counter} = 0; {counter} < {count}; ++{counter}) {{"
            )
            above.lines += inner.lines
            above.lines.append("  " * (inner.indent - 1) + "}")

    # --- one tile

    def tile(self, sweep: Sweep, work: Work, lanes: int, left: Mapping[int, str]) -> None:
        """Products, then for every row the phases, then sums over features."""
        body = self.scopes.push()
        body.indent = self.scopes.stack[-2].indent + 1
        values = work.values()
        needed = {e.number for e in walk(*values)}
        products: dict[int, str] = {}
        for product in sweep.products:
            if product.value.number in needed:
                products[product.value.number] = self.product(body, sweep, product, lanes, left)
        weights: dict[int, tuple[Expression, Expression]] = {}
        for running, _ in work.bodies:
            if running.factors is not None:
                weights[running.value.number] = running.factors
        work, weights = self.hoisted(body, sweep, work, weights, lanes)
        shared = {r.value.number for r in sweep.running if r.is_shared}
        buffers = {n: self.buffer("weight", self.block * lanes) for n in weights if n not in shared}
        row = self.scopes.push(self.row_name)
        row.indent = body.indent + 1
        self.enter_row(row)
        self.run_phases(sweep, work, lanes, products, weights, buffers, row)
        self.scopes.pop()
        body.line("for (long r = 0; r < rows; ++r) {")
        body.lines += row.lines
        body.line("}")
        feature = self.kernel.features
        for running, _ in work.bodies:
            number = running.value.number
            if number in weights:
                assert feature is not None
                item = self.pack_tile(
                    body, weights[number][1], sweep, (feature.name, feature.size, self.features), lanes, False
                )
                acc = self.state[number]
                if number in shared:
                    body.line(f"add_rows<{self.real}>(cols, {self.features}, {item}, {acc});")
                    continue
                body.line(
                    f"tile_product<{self.real}>(rows, {self.features}, cols, {buffers[number]}, {lanes}, {item}, "
                    f"{self.features}, {acc}, {self.features}, true);"
                )
        self.scopes.pop()
        self.scopes.here.lines += body.lines

    def hoisted(
        self, body: Scope, sweep: Sweep, work: Work, weights: Mapping[int, tuple[Expression, Expression]], lanes: int
    ) -> tuple[Work, dict[int, tuple[Expression, Expression]]]:
        """Values that no row changes, computed once for a tile; a quotient by one is a product with its inverse."""
        lane, table = sweep.lane.name, self.table

        def fixed(e: Expression) -> bool:
            return lane in e.free and self.row_name not in e.free and not any(map(is_state, walk(e)))

        def inverse(e: Expression) -> Expression | None:
            if is_state(e):
                return e  # it is known as it is
            if e.op != "divide" or not e.dtype.is_float or not fixed(e.arguments[1]) or fixed(e.arguments[0]):
                return None
            top, bottom = table.replace(e.arguments[0], inverse), e.arguments[1]
            return table.plain("multiply", (top, table.plain("divide", (table.constant(1.0, e.dtype), bottom))))

        feature = self.kernel.features.name if self.kernel.features is not None else ""
        work = work.changed(lambda e: table.replace(e, inverse))
        found = {n: (table.replace(w, inverse), item) for n, (w, item) in weights.items()}
        self.lane_values: dict[int, str] = {}
        stack = [*work.values(), *(w for w, _ in found.values())]
        seen: set[int] = set()
        while stack and self.row_name in self.ranges and self.rows > 1:
            e = stack.pop()
            if e.number in seen:
                continue
            seen.add(e.number)
            if fixed(e) and feature not in e.free and any(x.op in COSTLY for x in walk(e)):
                name = self.buffer("lane", lanes, ctype(e.dtype, self.real))
                self.fill(body, [(lane, "c", "cols", "begin")], e, f"{name}[c]")
                self.lane_values[e.number] = f"{name}[c]"
            elif e.op == "load" and not is_state(e) and self.runs_across(e, lane):
                name = self.buffer("across", self.block * lanes, ctype(e.dtype, self.real))
                loops = [(lane, "c", "cols", "begin"), (self.row_name, "r", "rows", "first")]
                self.fill(body, loops, e, f"{name}[r * {lanes} + c]")
                self.lane_values[e.number] = f"{name}[r * {lanes} + c]"
            elif e.op != "reduce":
                stack.extend(e.arguments)
        return work, found

    def runs_across(self, e: Expression, lane: str) -> bool:
        """Whether neighbours in memory are rows, and not lanes: such a tile is turned before it is used."""
        if any(a.op not in ("index", "constant") for a in e.arguments):
            return False
        place = offset(self.table, e.arguments, self.shape(e.tensor))
        steps = {str(atom): factor for atom, factor in place.terms}
        return steps.get(self.row_name) == 1 and steps.get(lane, 0) not in (0, 1)

    def product(self, body: Scope, sweep: Sweep, product: Product, lanes: int, left: Mapping[int, str]) -> str:
        """The code of a product of tiles."""
        depth = product.depth
        right = self.pack_tile(body, product.right, sweep, (depth.name, depth.size, depth.size), lanes, True)
        name = self.buffer("product", self.block * lanes)
        body.line(
            f"tile_product<{self.real}>(rows, {lanes}, {depth.size}, {left[product.value.number]}, {depth.size}, "
            f"{right}, {lanes}, {name}, {lanes}, false);"
        )
        return name

    def run_phases(
        self,
        sweep: Sweep,
        work: Work,
        lanes: int,
        products: Mapping[int, str],
        weights: Mapping[int, tuple[Expression, Expression]],
        buffers: Mapping[int, str],
        row: Scope,
    ) -> None:
        """For one row: loops over the lane, each followed by the new states."""
        bodies = {r.value.number: e for r, e in work.bodies}
        order = phases(sweep, self.kernel)
        roots = [
            [weights[r.value.number][0] if r.value.number in weights else bodies[r.value.number] for r in p]
            for p in order
        ]
        roots[-1] = [*roots[-1], *(e for _, e in work.stores)]
        everything = [e for p in roots for e in p]
        # What is compared with its own extremum is computed once, so that one of them is equal to it in every bit.
        same = {bodies[e.number].number for r in sweep.running if r.update.reset for e in r.update.depends}
        worth = {
            e.number: sweep.lane.name in e.free
            and (self.row_name in e.free or e.number in products or e.number in same)
            and self.costly(e, products)
            for e in walk(*everything)
        }
        saved: dict[int, str] = {}
        known: set[int] = set()
        for number, phase in enumerate(order):
            for estimate in new_estimates(phase, known):
                self.estimate(row, sweep, estimate)
            later = [e for p in roots[number + 1 :] for e in p]
            keep = [e for e in kept(roots[number], later, worth) if e.number not in saved]
            loop = self.scopes.push(sweep.lane.name)
            loop.indent = row.indent + 1
            loop.line(f"const long {sweep.lane.name} = begin + c;")
            for value, name in products.items():
                loop.names[value] = f"{name}[r * {lanes} + c]"
            for value, name in saved.items():
                loop.names[value] = f"{name}[c]"
            loop.names.update(self.lane_values)
            clauses = self.loop_body(sweep, phase, bodies, weights, buffers, lanes, row, loop)
            if number == len(order) - 1:
                for store, e in work.stores:
                    self.put(loop, store, e)
            for e in keep:
                name = self.buffer("kept", lanes, ctype(e.dtype, self.real))
                loop.line(f"{name}[c] = {self.text(e)};")
                saved[e.number] = name
            self.scopes.pop()
            row.line("#pragma omp simd " + clauses)
            row.line("for (long c = 0; c < cols; ++c) {")
            row.lines += loop.lines
            row.line("}")
            for running in phase:
                if running.factors is None:
                    self.renew(row, sweep, running)
        for phase in reversed(order):  # what a state grows by is added as it was
            for running in phase:
                if running.factors is not None:
                    self.renew_features(row, running)

    def loop_body(
        self,
        sweep: Sweep,
        phase: Sequence[Running],
        bodies: Mapping[int, Expression],
        weights: Mapping[int, tuple[Expression, Expression]],
        buffers: Mapping[int, str],
        lanes: int,
        row: Scope,
        loop: Scope,
    ) -> str:
        """The partial results of a phase; returns the clauses of the vector loop."""
        clauses: list[str] = []
        for running in phase:
            number = running.value.number
            if number in weights:
                if number in buffers:
                    loop.line(f"{buffers[number]}[r * {lanes} + c] = {self.text(weights[number][0])};")
                continue
            clauses += self.partial(row, loop, sweep, running, bodies[number])
        return " ".join(clauses)

    # --- the end

    def finals(self) -> None:
        """What is stored once for a row."""
        block = self.scopes.here
        row = self.scopes.push(self.row_name)
        row.indent = block.indent + 1
        self.enter_row(row)
        feature = self.kernel.features
        for store in self.kernel.finals:
            if feature is None or feature.name not in store.axes:
                self.put(row, store, store.value)
        wide = [s for s in self.kernel.finals if feature is not None and feature.name in s.axes]
        if wide:
            assert feature is not None
            loop = self.scopes.push(feature.name)
            loop.indent = row.indent + 1
            loop.line(f"const long {feature.name} = f;")
            for running in self.done:
                if running.factors is not None:
                    self.bind_state(loop, running, self.feature_state(running))
            for store in wide:
                self.put(loop, store, store.value)
            self.scopes.pop()
            row.line("#pragma omp simd")
            row.line(f"for (long f = 0; f < {feature.size}; ++f) {{")
            row.lines += loop.lines
            row.line("}")
        self.scopes.pop()
        block.line("for (long r = 0; r < rows; ++r) {")
        block.lines += row.lines
        block.line("}")


def _padded(size: int) -> int:
    return -(-size // 16) * 16


__all__ = ["COSTLY", "Callable", "Source", "Tiling", "names", "print_kernel", "translation_unit"]
