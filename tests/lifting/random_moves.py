"""Programs that grow move by move, for one device or for all ranks, each operator executed as it is added.

Execution tells which operators can follow: indices stay in range, and nothing depends on rounding (a comparison of
nearly equal numbers, say), so that two right evaluations of a program agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

from rewright import ops
from rewright.interp.collectives import simulate
from rewright.interp.placing import cut
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.operator import Operator
from rewright.ir.placement import Mesh, Placement, RankProgram, place
from rewright.ir.types import DType, TensorType
from rewright.ops.base import TensorOperator

Array = NDArray[np.generic]
REALS, WHOLES, TRUTHS = DType.F64, DType.I64, DType.BOOL
SIZES = (1, 2, 2, 3, 4, 6)
LARGEST = 150
APART = 1e-3


class Refused(Exception):
    """An operator that does not fit what there is."""


class Program:
    """A program that grows on all ranks alike; only constants may differ between ranks."""

    def __init__(self, seed: int, world: int = 1) -> None:
        self.random = Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.world = world
        self.builders = [GraphBuilder("random") for _ in range(world)]
        self.values: list[list[Array]] = []
        self.types: list[TensorType] = []
        self.inputs: dict[str, Array] = {}
        self.placements: dict[str, Placement] = {}
        self.mesh = Mesh((("tp", world),))

    # --- growing ---------------------------------------------------------------------------------------------------
    def add(self, op: Operator | Sequence[Operator], *operands: int) -> int:
        """Append an operator on every rank; raises Refused where it does not fit or cannot be compared."""
        each = list(op) if isinstance(op, Sequence) else [op] * self.world
        types = [self.types[p] for p in operands]
        try:
            kind = each[0].infer(types)
            if int(str(kind.size())) > LARGEST:
                raise Refused
            found = self._execute(each, operands, kind)
        except (RewrightError, ZeroDivisionError) as error:
            raise Refused(str(error)) from None
        for value in found:
            array = value.astype(np.float64)
            if np.isnan(array).any() or np.abs(array[np.isfinite(array)]).max(initial=0) > 1e4:
                raise Refused
        positions = {b.add(o, *operands) for b, o in zip(self.builders, each, strict=True)}
        self.values.append(found)
        self.types.append(kind)
        (position,) = positions
        return position

    def _execute(self, each: Sequence[Operator], operands: Sequence[int], kind: TensorType) -> list[Array]:
        rows = [[self.values[p][r] for p in operands] for r in range(self.world)]
        if isinstance(each[0], TensorOperator) and not isinstance(each[0], COLLECTIVES):
            return [o.execute(row) for o, row in zip(each, rows, strict=True) if isinstance(o, TensorOperator)]
        nodes = [Node(o, tuple(operands), kind) for o in each]
        return [np.asarray(v) for v in simulate(nodes, range(self.world), [row[0] for row in rows])]

    def input(self, name: str, value: Array, placement: str = "Replicate()") -> int:
        """An input; ranks hold their part of it."""
        self.inputs[name] = value
        held = self.placements[name] = place(value.shape, self.mesh, (placement,))
        dtype = {"f": REALS, "i": WHOLES, "b": TRUTHS}[value.dtype.kind]
        kind = TensorType(held.local_shape(0), dtype)
        self.values.append([cut(value, held.runs[r]) for r in range(self.world)])
        self.types.append(kind)
        (position,) = {builder.input(name, ops.Input(name, kind)) for builder in self.builders}
        return position

    def full(self, value: float, like: int) -> int:
        return self.add(ops.Constant(self.types[like], (value,)))

    def pick(self, dtype: DType, rank: int | None = None, size: int = 0) -> int:
        """A tensor that is there already, late ones more often."""
        fits = [
            p
            for p, t in enumerate(self.types)
            if t.dtype is dtype and (rank is None or t.rank == rank) and int(str(t.size())) >= size
        ]
        if not fits:
            raise Refused
        return fits[max(self.random.randrange(len(fits)), self.random.randrange(len(fits)))]

    def alike(self, position: int) -> int:
        """Another tensor of the same type."""
        fits = [p for p, t in enumerate(self.types) if t == self.types[position]]
        return self.random.choice(fits)

    def shape(self, position: int) -> tuple[int, ...]:
        return tuple(int(str(n)) for n in self.types[position].shape)

    def far(self, position: int, *points: float) -> int:
        """The tensor, if all its elements are far from some points."""
        for value in self.values[position]:
            for point in points:
                if np.any(np.abs(value.astype(np.float64) - point) < APART):
                    raise Refused
        return position

    def build(self) -> list[Graph]:
        for builder in self.builders:
            builder.output("output", len(self.types) - 1)
        return [builder.build() for builder in self.builders]

    def rank_program(self) -> RankProgram:
        return RankProgram(tuple(self.build()), self.mesh, self.placements, {})


COLLECTIVES = (
    ops.AllReduce,
    ops.AllGather,
    ops.ReduceScatter,
    ops.AllToAll,
    ops.CollectivePermute,
    ops.CollectiveBroadcast,
)
Move = Callable[[Program], int]


# --- moves: each appends an operator or a small pattern ---------------------------------------------------------------
def unary(p: Program) -> int:
    x = p.pick(REALS)
    op = p.random.choice([ops.Tanh(), ops.Negate(), ops.Tanh(), ops.Sine(), ops.Logistic(), ops.Exponential()])
    return p.add(op, x)


def steep(p: Program) -> int:
    """Functions that need care near zero."""
    x = p.far(p.pick(REALS), 0.0)
    op = p.random.choice([ops.Abs(), ops.Sign(), ops.Log(), ops.Rsqrt(), ops.Sqrt(), ops.Log()])
    if not isinstance(op, ops.Sign | ops.Abs):
        x = p.add(ops.Abs(), x)
    return p.add(op, x)


def binary(p: Program) -> int:
    x = p.pick(REALS)
    y = p.alike(x)
    op = p.random.choice([ops.Add(), ops.Add(), ops.Subtract(), ops.Multiply(), ops.Maximum(), ops.Minimum()])
    return p.add(op, x, y)


def quotient(p: Program) -> int:
    x = p.pick(REALS)
    return p.add(ops.Divide(), x, p.far(p.alike(x), 0.0))


def scaled(p: Program) -> int:
    x = p.pick(REALS)
    op = p.random.choice([ops.Multiply(), ops.Add(), ops.Divide(), ops.Maximum(), ops.Power()])
    value = p.random.choice([0.5, 2.0, -1.0, 3.0]) if not isinstance(op, ops.Power) else p.random.choice([2.0, 3.0])
    return p.add(op, x, p.full(value, x))


def log_of_exponential(p: Program) -> int:
    """exp(a + log b) and its like."""
    x = p.far(p.pick(REALS), 0.0)
    logarithm = p.add(ops.Log(), p.add(ops.Abs(), x))
    other = p.alike(x)
    inner = p.add(p.random.choice([ops.Add(), ops.Subtract()]), other, logarithm)
    return p.add(ops.Exponential(), inner)


def reshape(p: Program) -> int:
    x = p.pick(p.random.choice([REALS, REALS, WHOLES, TRUTHS]))
    rest, shape = int(np.prod(p.shape(x))), list[int]()
    while rest > 1 and len(shape) < 3:
        factor = p.random.choice([d for d in range(1, rest + 1) if rest % d == 0])
        shape.append(factor)
        rest //= factor
    return p.add(ops.Reshape((*shape, rest) if rest > 1 or p.random.random() < 0.3 else tuple(shape)), x)


def transpose(p: Program) -> int:
    x = p.pick(p.random.choice([REALS, REALS, WHOLES]))
    order = list(range(p.types[x].rank))
    p.random.shuffle(order)
    return p.add(ops.Transpose(tuple(order)), x)


def window(p: Program) -> int:
    x = p.pick(p.random.choice([REALS, REALS, WHOLES, TRUTHS]))
    start, limit, stride = list[int](), list[int](), list[int]()
    for n in p.shape(x):
        low = p.random.randrange(n) if n and p.random.random() < 0.5 else 0
        start.append(low)
        limit.append(p.random.randint(low + 1, n) if n and p.random.random() < 0.5 else n)
        stride.append(p.random.choice([1, 1, 1, 2]))
    return p.add(ops.Slice(tuple(start), tuple(limit), tuple(stride)), x)


def concatenate(p: Program) -> int:
    x = p.pick(p.random.choice([REALS, REALS, WHOLES]), size=2)
    axis = p.random.randrange(p.types[x].rank)
    shape = p.shape(x)
    if p.random.random() < 0.5:
        middle = p.random.randint(0, shape[axis])
        parts: list[int] = []
        for low, high in ((0, middle), (middle, shape[axis])):
            start, limit = [0] * len(shape), list(shape)
            start[axis], limit[axis] = low, high
            parts.append(p.add(ops.Slice(tuple(start), tuple(limit), (1,) * len(shape)), x))
        if p.random.random() < 0.5:
            parts.reverse()
        return p.add(ops.Concatenate(axis), *parts)
    fits = [
        q
        for q, t in enumerate(p.types)
        if t.dtype is p.types[x].dtype
        and t.rank == len(shape)
        and all(t.shape[a] == n for a, n in enumerate(shape) if a != axis)
    ]
    return p.add(ops.Concatenate(axis), x, p.random.choice(fits))


def broadcast(p: Program) -> int:
    x = p.pick(p.random.choice([REALS, REALS, WHOLES, TRUTHS]))
    shape = list(p.shape(x))
    at = p.random.randint(0, len(shape))
    shape.insert(at, p.random.choice(SIZES))
    axes = [a for a in range(len(shape)) if a != at]
    stretched = [p.random.choice(SIZES) if n == 1 and a != at else n for a, n in enumerate(shape)]
    return p.add(ops.BroadcastInDim(tuple(stretched), tuple(axes)), x)


def like(p: Program) -> int:
    """A vector spread to the shape of another tensor, which is what biases and masks do."""
    y = p.pick(REALS, size=2)
    fits = [
        (q, a)
        for q, t in enumerate(p.types)
        for a in range(p.types[y].rank)
        if t.rank == 1 and t.shape[0] == p.types[y].shape[a] and t.dtype is REALS
    ]
    if not fits:
        raise Refused
    x, axis = p.random.choice(fits)
    wide = p.add(ops.BroadcastInDim(p.types[y].shape, (axis,)), x)
    return p.add(p.random.choice([ops.Add(), ops.Multiply(), ops.Subtract()]), y, wide)


def reverse(p: Program) -> int:
    x = p.pick(p.random.choice([REALS, WHOLES]), size=2)
    return p.add(ops.Reverse((p.random.randrange(p.types[x].rank),)), x)


def pad(p: Program) -> int:
    x = p.pick(REALS, size=2)
    rank = p.types[x].rank
    zero = p.add(ops.Constant(TensorType((), REALS), (p.random.choice([0.0, 0.0, 2.5]),)))
    low, high = (tuple(p.random.choice([0, 0, 1, -1]) for _ in range(rank)) for _ in range(2))
    inner = tuple(p.random.choice([0, 0, 0, 1, 2]) for _ in range(rank))
    return p.add(ops.Pad(low, high, inner), x, zero)


def reduce(p: Program) -> int:
    x = p.pick(REALS, size=2)
    rank = p.types[x].rank
    axes = tuple(sorted(p.random.sample(range(rank), p.random.randint(1, rank))))
    return p.add(ops.Reduce(p.random.choice(["sum", "sum", "maximum", "minimum", "product"]), axes), x)


def softmax(p: Program) -> int:
    x = p.pick(REALS, size=2)
    axis = p.random.randrange(p.types[x].rank)
    others = tuple(a for a in range(p.types[x].rank) if a != axis)
    spread = ops.BroadcastInDim(p.types[x].shape, others)
    top = p.add(spread, p.add(ops.Reduce("maximum", (axis,)), x))
    grown = p.add(ops.Exponential(), p.add(ops.Subtract(), x, top))
    return p.add(ops.Divide(), grown, p.add(spread, p.add(ops.Reduce("sum", (axis,)), grown)))


def matrix_product(p: Program) -> int:
    x = p.pick(REALS, size=2)
    pairs = [
        (q, a, b)
        for q, t in enumerate(p.types)
        for a, n in enumerate(p.types[x].shape)
        for b, m in enumerate(t.shape)
        if t.dtype is REALS and n == m != 1
    ]
    if not pairs:
        raise Refused
    y, a, b = p.random.choice(pairs)
    batch = [
        (c, d)
        for c, n in enumerate(p.types[x].shape)
        for d, m in enumerate(p.types[y].shape)
        if c != a and d != b and n == m
    ]
    if batch and p.random.random() < 0.3:
        c, d = p.random.choice(batch)
        return p.add(ops.DotGeneral((c,), (d,), (a,), (b,)), x, y)
    return p.add(ops.DotGeneral((), (), (a,), (b,)), x, y)


def iota(p: Program) -> int:
    x = p.pick(p.random.choice([REALS, WHOLES]), size=2)
    shape = p.types[x].shape
    return p.add(ops.Iota(TensorType(shape, WHOLES), p.random.randrange(len(shape))))


def whole_numbers(p: Program) -> int:
    x = p.pick(WHOLES)
    choice = p.random.randrange(6)
    if choice == 0:
        return p.add(p.random.choice([ops.Add(), ops.Subtract(), ops.Multiply(), ops.Maximum()]), x, p.alike(x))
    if choice == 1:
        return p.add(ops.Remainder(), x, p.full(p.random.choice([2, 3]), x))
    if choice == 2:
        return p.add(ops.Divide(), x, p.full(p.random.choice([2, 3]), x))
    if choice == 3:
        return p.add(ops.Convert(REALS), x)
    if choice == 4:
        return p.add(ops.Not(), x)
    constants = [p.random.randint(-3, 6)] * p.world
    if p.random.random() < 0.5:
        constants = [c + r * 2 for r, c in enumerate(constants)]
    number = p.add([ops.Constant(p.types[x], (c,)) for c in constants])
    return p.add(p.random.choice([ops.Add(), ops.Subtract(), ops.Subtract()]), x, number)


def test_of_integers(p: Program) -> int:
    x = p.pick(WHOLES)
    direction = p.random.choice(["EQ", "NE", "LT", "LE", "GT", "GE"])
    if p.random.random() < 0.4:
        return p.add(ops.Compare(direction), x, p.alike(x))
    constants = [p.random.randint(-1, 5) + p.random.choice([0, r * 2]) for r in range(p.world)]
    return p.add(ops.Compare(direction), x, p.add([ops.Constant(p.types[x], (c,)) for c in constants]))


def test_of_reals(p: Program) -> int:
    x = p.pick(REALS)
    y = p.alike(x) if p.random.random() < 0.5 else p.full(p.random.choice([0.0, 0.25]), x)
    for left, right in zip(p.values[x], p.values[y], strict=True):
        with np.errstate(invalid="ignore"):
            if np.any(~(np.abs(left.astype(np.float64) - right.astype(np.float64)) > APART)):
                raise Refused
    return p.add(ops.Compare(p.random.choice(["EQ", "LT", "GE"])), x, y)


def multiple(p: Program) -> int:
    """A multiple of an integer and a number where a test of that integer holds, tested in turn."""
    x = p.pick(WHOLES)
    number = p.add(ops.Multiply(), x, p.full(p.random.choice([2, 3, -2, -1]), x))
    number = p.add(ops.Add(), number, p.full(p.random.randint(-3, 3), x))
    test = p.add(ops.Compare(p.random.choice(["EQ", "NE", "LT", "GE"])), x, p.full(p.random.randint(0, 4), x))
    chosen = p.add(ops.Select(), test, number, p.full(p.random.choice([0, 0, -1, 1, 5]), x))
    again = p.add(ops.Compare(p.random.choice(["EQ", "LT", "GE"])), chosen, p.full(p.random.randint(-2, 4), x))
    return p.add(ops.Select(), again, chosen, p.full(0, x))


def kept_in_range(p: Program) -> int:
    x = p.pick(WHOLES)
    low, high = (p.full(n, x) for n in sorted((p.random.randint(-2, 5), p.random.randint(-2, 5))))
    if p.random.random() < 0.5:
        return p.add(ops.Clamp(), low, x, high)
    return p.add(ops.Minimum(), p.add(ops.Maximum(), low, x), high)


def masked_places(p: Program) -> int:
    """A matrix where a test of row and column holds, as attention masks scores; ranks count from elsewhere."""
    x = p.pick(REALS, 2)
    kind = TensorType(p.types[x].shape, WHOLES)
    offset, step = p.random.choice([0, 0, 1, -1, 2, 3]), p.random.choice([0, p.shape(x)[0]])
    constants = [ops.Constant(kind, (offset + rank * step,)) for rank in range(p.world)]
    row = p.add(ops.Add(), p.add(ops.Iota(kind, 0)), p.add(constants))
    pair = [row, p.add(ops.Iota(kind, 1))]
    p.random.shuffle(pair)
    mask = p.add(ops.Compare(p.random.choice(["LE", "LT", "GE", "GT", "EQ"])), *pair)
    scores = p.add(ops.Select(), mask, x, p.full(p.random.choice([float("-inf"), float("-inf"), -3.0, 0.0]), x))
    if p.random.random() < 0.4:
        return scores
    top = p.add(ops.BroadcastInDim(kind.shape, (0,)), p.add(ops.Reduce("maximum", (1,)), scores))
    grown = p.add(ops.Exponential(), p.add(ops.Subtract(), scores, top))
    total = p.add(ops.Reduce("sum", (1,)), grown)
    return p.add(ops.Divide(), grown, p.add(ops.BroadcastInDim(kind.shape, (0,)), total))


def beside_infinity(p: Program) -> int:
    """Choices that an infinity, or zero, decides."""
    x = p.pick(REALS)
    choice = p.random.randrange(3)
    if choice == 0:
        pair = [x, p.full(p.random.choice([float("-inf"), float("inf")]), x)]
        p.random.shuffle(pair)
        return p.add(p.random.choice([ops.Maximum(), ops.Minimum()]), *pair)
    if choice == 1:
        grown = p.add(ops.Exponential(), x)
        bound = p.full(p.random.choice([0.0, float("-inf"), float("inf")]), x)
        test = p.add(ops.Compare(p.random.choice(["GE", "GT", "LE", "LT", "EQ", "NE"])), grown, bound)
        return p.add(ops.Select(), test, grown, p.full(0.0, x))
    most = reduce(p)
    return p.add(ops.Select(), p.add(ops.IsFinite(), most), most, p.full(0.0, most))


def logical(p: Program) -> int:
    x = p.pick(TRUTHS)
    choice = p.random.randrange(5)
    if choice == 0:
        return p.add(ops.Not(), x)
    if choice == 1:
        return p.add(ops.Convert(p.random.choice([REALS, WHOLES])), x)
    return p.add(p.random.choice([ops.And(), ops.Or(), ops.And(), ops.Or(), ops.Xor()]), x, p.alike(x))


def select(p: Program) -> int:
    """A choice between tensors or numbers, by a mask whose axes are those of the tensor or some of them."""
    dtype = p.random.choice([REALS, REALS, WHOLES])
    mask, x = _mask(p, dtype)
    other = p.alike(x)
    if p.random.random() < 0.6:
        other = p.full(p.random.choice([0, 0, 1, float("-inf")] if dtype is REALS else [0, 0, -1, 2]), x)
    pair = (x, other) if p.random.random() < 0.5 else (other, x)
    return p.add(ops.Select(), mask, *pair)


def _mask(p: Program, dtype: DType) -> tuple[int, int]:
    mask = p.pick(TRUTHS)
    same = [q for q, t in enumerate(p.types) if t.dtype is dtype and t.shape == p.types[mask].shape]
    if same and p.random.random() < 0.6:
        return mask, p.random.choice(same)
    wide = [
        (q, a)
        for q, t in enumerate(p.types)
        for a in range(t.rank)
        if t.dtype is dtype and p.types[mask].rank == 1 and t.shape[a] == p.types[mask].shape[0]
    ]
    if not wide:
        raise Refused
    x, axis = p.random.choice(wide)
    return p.add(ops.BroadcastInDim(p.types[x].shape, (axis,)), mask), x


def _within(p: Program, position: int, size: int) -> bool:
    return all(v.size and v.min() >= 0 and v.max() < size for v in p.values[position])


def gather(p: Program) -> int:
    x = p.pick(REALS, size=2)
    axis = p.random.randrange(p.types[x].rank)
    size = p.shape(x)[axis]
    fits = [q for q, t in enumerate(p.types) if t.dtype is WHOLES and t.rank in (0, 1, 2) and _within(p, q, size)]
    if not fits:
        raise Refused
    return take(p, x, p.random.choice(fits), axis)


def take(p: Program, x: int, indices: int, axis: int) -> int:
    """``x`` at indices along an axis, the axes of the indices in its place."""
    shape, rank = p.shape(x), p.types[indices].rank
    offsets = tuple(a if a < axis else a + rank - 1 for a in range(len(shape)) if a != axis)
    sizes = tuple(1 if a == axis else n for a, n in enumerate(shape))
    return p.add(ops.Gather(offsets, (axis,), (), (), (axis,), rank, sizes), x, indices)


def gather_rows(p: Program) -> int:
    """One element of every row."""
    x = p.pick(REALS, rank=2)
    rows, size = p.shape(x)
    fits = [q for q, t in enumerate(p.types) if t.dtype is WHOLES and t.shape == (rows,) and _within(p, q, size)]
    if not fits:
        raise Refused
    return p.add(ops.Gather((), (1,), (0,), (0,), (1,), 1, (1, 1)), x, p.random.choice(fits))


def masked_gather(p: Program) -> int:
    """A look-up of one's own rows, as for a split vocabulary."""
    x = p.pick(REALS, rank=2, size=2)
    ids = p.pick(WHOLES, rank=1)
    rows = p.shape(x)[0]
    starts = [p.random.choice([0, 1, rows]) + p.random.choice([0, r * rows]) for r in range(p.world)]
    if p.random.random() < 0.6:
        starts = [r * rows for r in range(p.world)]

    def number(shift: int) -> int:
        return p.add([ops.Constant(p.types[ids], (s + shift,)) for s in starts])

    below = p.add(ops.Compare("LT"), ids, number(0))
    above = p.add(ops.Compare("GE"), ids, number(rows))
    foreign = p.add(ops.Or(), below, above)
    own = p.add(ops.Select(), foreign, p.full(0, ids), p.add(ops.Subtract(), ids, number(0)))
    taken = take(p, x, own, 0)
    mask = p.add(ops.BroadcastInDim(p.types[taken].shape, (0,)), foreign)
    return p.add(ops.Select(), mask, p.full(0.0, taken), taken)


def one_hot(p: Program) -> int:
    """Whether an index equals a position, and a sum over the positions."""
    ids = p.pick(WHOLES, rank=1)
    count, size = p.shape(ids)[0], p.random.choice([2, 3, 4, 6])
    kind = TensorType((count, size), WHOLES)
    wide = p.add(ops.BroadcastInDim(kind.shape, (0,)), ids)
    positions = p.add(ops.Iota(kind, 1))
    if p.random.random() < 0.5:
        starts = [r * size for r in range(p.world)]
        positions = p.add(ops.Add(), positions, p.add([ops.Constant(kind, (s,)) for s in starts]))
    hot = p.add(ops.Convert(REALS), p.add(ops.Compare("EQ"), wide, positions))
    fits = [q for q, t in enumerate(p.types) if t.dtype is REALS and t.rank and t.shape[0] == size]
    if fits and p.random.random() < 0.7:
        return p.add(ops.DotGeneral((), (), (1,), (0,)), hot, p.random.choice(fits))
    fits = [q for q, t in enumerate(p.types) if t.dtype is REALS and t.shape == kind.shape]
    if fits and p.random.random() < 0.8:
        hot = p.add(ops.Multiply(), hot, p.random.choice(fits))
    return p.add(ops.Reduce("sum", (p.random.randrange(2),)), hot)


def scatter(p: Program) -> int:
    """Rows added into rows."""
    updates = p.pick(REALS, rank=2)
    count, width = p.shape(updates)
    fits = [q for q, t in enumerate(p.types) if t.dtype is WHOLES and t.shape == (count,)]
    if not fits:
        raise Refused
    indices = p.random.choice(fits)
    size = p.random.choice([2, 3, 4, 6])
    base = p.add(ops.Constant(TensorType((size, width), REALS), (p.random.choice([0.0, 0.0, 1.0]),)))
    kind = p.random.choice(["sum", "sum", "sum", "maximum"])
    return p.add(ops.Scatter(kind, (1,), (0,), (), (), (0,), 1), base, indices, updates)


def scatter_pairs(p: Program) -> int:
    """Elements added at (row, column) pairs."""
    updates = p.pick(REALS, rank=1)
    fits = [q for q, t in enumerate(p.types) if t.dtype is WHOLES and t.shape == p.types[updates].shape]
    if not fits:
        raise Refused
    count = p.shape(updates)[0]
    columns = [p.add(ops.Reshape((count, 1)), p.random.choice(fits)) for _ in range(2)]
    pairs = p.add(ops.Concatenate(1), *columns)
    base = p.add(ops.Constant(TensorType((3, 4), REALS), (0.0,)))
    return p.add(ops.Scatter("sum", (), (0, 1), (), (), (0, 1), 1), base, pairs, updates)


def overwrite(p: Program) -> int:
    """Rows, or columns, of a tensor overwritten at numbers or at indices from data, which may repeat."""
    updates = p.pick(REALS, rank=2)
    axis = p.random.randrange(2)
    shape = list(p.shape(updates))
    count, shape[axis] = shape[axis], p.random.choice([2, 3, 4, 6])
    found = [q for q, t in enumerate(p.types) if t.dtype is WHOLES and t.shape == (count,)]
    if p.random.random() < 0.5 or not found:
        rows = tuple(p.random.randint(-1, shape[axis]) for _ in range(count))
        indices = p.add(ops.Constant(TensorType((count,), WHOLES), rows))
    else:
        indices = p.random.choice(found)
    bases = [q for q, t in enumerate(p.types) if t.dtype is REALS and t.shape == tuple(shape)]
    base = p.random.choice(bases) if bases else p.add(ops.Constant(TensorType(tuple(shape), REALS), (1.0,)))
    window = (1 - axis,)
    return p.add(ops.Scatter("replace", window, (axis,), (), (), (axis,), 1), base, indices, updates)


def rare(p: Program) -> int:
    """Operators without a law of their own."""
    choice = p.random.randrange(5)
    x = p.pick(REALS, size=2)
    rank = p.types[x].rank
    if choice == 0:
        return p.add(ops.Sort(p.random.randrange(rank), p.random.random() < 0.5, "values"), x)
    if choice == 1:
        sizes = tuple(min(2, n) if p.random.random() < 0.7 else 1 for n in p.shape(x))
        return p.add(ops.ReduceWindow("sum", sizes, (1,) * rank, ((0, 0),) * rank), x)
    if choice == 2:
        return p.add(ops.TopK(p.random.randint(1, p.shape(x)[-1]), "values"), x)
    if choice == 3:
        fits = [q for q, t in enumerate(p.types) if t.dtype is WHOLES and t.rank == 0]
        if not fits:
            raise Refused
        return p.add(ops.DynamicSlice(tuple(max(1, n - 1) for n in p.shape(x))), x, *p.random.choices(fits, k=rank))
    table = tuple(p.random.choice([0, 1, 3, 4]) for _ in range(int(np.prod(p.shape(x)))))
    return p.add(ops.Constant(TensorType(p.types[x].shape, WHOLES), table))


def collective(p: Program) -> int:
    """A collective over all ranks."""
    x = p.pick(p.random.choice([REALS, REALS, REALS, WHOLES]))
    everyone = (tuple(range(p.world)),)
    kind = p.random.choice(["sum", "sum", "sum", "maximum", "minimum"])
    rank = p.types[x].rank
    axis = p.random.randrange(rank) if rank else 0
    choice = p.random.randrange(9)
    if choice < 4 or not rank:
        return p.add(ops.AllReduce(kind, everyone), x)
    if choice < 6:
        return p.add(ops.AllGather(axis, everyone), x)
    if choice == 6:
        return p.add(ops.ReduceScatter(kind, axis, everyone), x)
    if choice == 7:
        return p.add(ops.AllToAll(axis, p.random.randrange(rank), everyone, None, None), x)
    pairs = tuple((r, (r + 1) % p.world) for r in range(p.world - p.random.randrange(2)))
    return p.add(ops.CollectivePermute(pairs), x)
