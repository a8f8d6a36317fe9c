"""What differs at a place where two programs part, in words, from what both compute there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rewright import ops
from rewright.analysis.moving import laid_out
from rewright.blame.cones import Cone
from rewright.blame.exchanges import Exchange
from rewright.blame.regions import readers_behind
from rewright.ir.dims import Dim
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator, Unsupported
from rewright.ops.splitting import axis_roles
from rewright.terms.roles import Follows

_ACTIVATIONS = {"tanh": "tanh", "erf": "erf", "logistic": "the logistic function", "maximum": "a maximum with zero"}
_ROOTS = {"rsqrt", "sqrt", "power"}
_SOON = 24
"""So many operators after a tensor what reads it is looked for."""
_FARTHEST = 48
"""So many operators back axes are followed."""
_LITTLE = 1e-2
"""What is added below a root is less."""


@dataclass(frozen=True)
class Diagnosis:
    """A kind, in words that stay the same over releases, and a sentence."""

    kind: str
    text: str


_STYLE = Diagnosis("rotary_style", "pairs or halves are rotated in another order, or over another width")


def diagnose(left: Graph, right: Graph, exchange: Exchange, unread: Iterable[str] = ()) -> Diagnosis:
    """What differs between the two parts that an exchange puts one in the place of the other."""
    if exchange.cones is None:
        return Diagnosis("other_operator", "the two compute something else")
    mine, theirs = (_Part(cone) for cone in exchange.cones)
    if _turns(right, exchange.right) and not theirs.names & {"dot_general", "reduce"}:
        own, other = mine.floats(), theirs.floats()
        text = f"the angles are made with {_list(other) if other else 'other numbers'}"
        more = f", on the left with {_list(own) if own else 'other numbers'}" if own or other else " than on the left"
        return Diagnosis("rotary_frequencies", text + more)
    missing = [name for name in unread if name in mine.inputs()]
    if missing:
        return Diagnosis("unread_input", f"{missing[0]} is never read by the right program")
    found = next(((rule, one) for rule in _RULES for one in rule(mine, theirs)), None)
    if found is not None:
        is_style = found[0] is _operators and is_turned(left, exchange.left) and is_turned(right, exchange.right)
        return _STYLE if is_style else found[1]
    if mine.work() == theirs.work() and {p for p, _ in exchange.sources.values()} != set(theirs.leaves):
        return Diagnosis("other_operand", "the same operators read another tensor here")
    return Diagnosis("other_operator", "the two compute something else")


def _reach(graph: Graph, position: int, *through: type[Operator]) -> Iterator[Node]:
    """A node, and what reads it soon after, directly or through operators that move elements, or of other kinds."""
    readers = readers_behind(graph, position, (*_MOVING, *through), _SOON)
    return (graph.nodes[p] for p in (position, *readers))


def _turns(graph: Graph, position: int) -> bool:
    """Whether a tensor is an angle, or the sine or cosine of one."""
    reached = _reach(graph, position, ops.Scaling, ops.DotGeneral)
    return any(isinstance(node.op, ops.Trigonometric) for node in reached)


def is_turned(graph: Graph, position: int) -> bool:
    """Whether a tensor is a product by sines or cosines, or is moved and then multiplied by them."""
    products = (node for node in _reach(graph, position, ops.Negate) if isinstance(node.op, ops.Multiply))
    return any(_is_made_of_turns(graph, p) for node in products for p in node.operands)


def _is_made_of_turns(graph: Graph, position: int) -> bool:
    """Whether a tensor is sines or cosines that are laid out."""
    node = graph.nodes[position]
    for _ in range(16):
        if not isinstance(node.op, _MOVING):
            break
        node = graph.nodes[node.operands[0]]
    return isinstance(node.op, ops.Trigonometric)


class _Part:
    """The operators of a cone."""

    def __init__(self, cone: Cone) -> None:
        self.graph = cone.graph
        self.nodes: list[Node] = [cone.graph.nodes[p] for p in cone.positions]
        self.names = {node.op.name for node in self.nodes}
        self._positions = cone.positions
        self.leaves = cone.leaves.keys()

    def line(self) -> list[Node]:
        """All nodes of the source line of the result."""
        span = self.nodes[-1].span
        return [node for node in self.graph.nodes if node.span == span] if span.line else []

    def inputs(self) -> set[str]:
        """The inputs of the program that the part reads."""
        leaves = [self._source(p).op for p in self.leaves]
        return {op.label for op in leaves if isinstance(op, ops.Input)}

    def floats(self, *, plain: bool = False) -> list[float]:
        """Its finite numbers, without zero and one where these ``plain`` ones are not asked for."""
        below = {p for node in self.nodes if isinstance(node.op, ops.Sqrt) for p in node.operands}
        pairs = zip(self._positions, self.nodes, strict=True)
        found = [self._number(node) for p, node in pairs if node.type.dtype.is_float and p not in below]
        return sorted({v for v in found if v is not None and math.isfinite(v) and (plain or v not in (0.0, 1.0))})

    def _spread(self, position: int) -> float | None:
        """The number that a tensor is filled with."""
        return self._number(self._source(position))

    def _source(self, position: int) -> Node:
        """What is cast, or laid out, to be a node."""
        return self.graph.nodes[laid_out(self.graph, position)]

    def integers(self) -> list[int]:
        """Its whole numbers."""
        found = [self._number(node) for node in self.nodes if node.type.dtype.is_integer]
        return sorted({int(v) for v in found if v is not None})

    def _number(self, node: Node) -> float | None:
        if (value := ops.splat(node.op)) is not None:
            return float(value)
        if isinstance(node.op, ops.Sqrt):  # a rounded root stands for the root
            number = self._spread(node.operands[0])
            return None if number is None or number < 0 else math.sqrt(number)
        return None

    def beside(self, *kinds: type[Operator], first: int = 0) -> list[float]:
        """The numbers that its operators of these kinds read, from some operand on."""
        own = [self._spread(p) for node in self.nodes if isinstance(node.op, kinds) for p in node.operands[first:]]
        return [number for number in own if number is not None]

    def added(self) -> list[str]:
        """The inputs of the program that it adds to what has more axes, as biases are."""
        found: list[str] = []
        for node in self.nodes:
            sources = [self._source(p) for p in node.operands if isinstance(node.op, ops.Add)]
            ranks = [(s.op.label, s.type.rank) for s in sources if isinstance(s.op, ops.Input)]
            found += [name for name, rank in ranks if rank < node.type.rank]
        return found

    def rows(self) -> list[int]:
        """The sizes of what it reduces, before slices left out elements of the axes."""
        found: dict[tuple[int, int], int] = {}
        nodes = [(n.operands[0], n.op.dimensions) for n in self.nodes if isinstance(n.op, ops.Reduce)]
        return sorted(math.prod(self._whole(p, axis, found) for axis in axes) for p, axes in nodes)

    def _whole(self, position: int, axis: int, found: dict[tuple[int, int], int], steps: int = 0) -> int:
        """The size of an axis before slices left out elements, as far back as it is one axis."""
        node, key = self.graph.nodes[position], (position, axis)
        if key not in found and steps < _FARTHEST:
            is_joined = isinstance(node.op, ops.Concatenate) and node.op.dimension == axis
            is_cut = is_joined or isinstance(node.op, ops.Slice)
            before = [(p, axis) for p in node.operands] if is_cut else list(self._along(node, axis))
            wholes = [self._whole(p, own, found, steps + 1) for p, own in before]
            found[key] = sum(wholes) if is_joined else max(wholes, default=_number(node.type.shape[axis]))
        return found.get(key, _number(node.type.shape[axis]))

    def _along(self, node: Node, axis: int) -> Iterator[tuple[int, int]]:
        """The operands, and their axes, that an axis of a node goes along."""
        assert isinstance(node.op, ops.TensorOperator)
        known = axis_roles(node.op, [self.graph.nodes[p].type for p in node.operands])
        if not isinstance(known, Unsupported):
            for operand, roles in zip(node.operands, known.operands, strict=True):
                yield from ((operand, own) for own, role in enumerate(roles) if role == Follows(axis))

    def is_rotary(self) -> bool:
        """Whether it computes with sines and cosines, or with what is made of them."""
        if self.names & {"sine", "cosine"}:
            return True
        stack, seen = list(self.leaves), set(self.leaves)
        for _ in range(64):
            if not stack:
                return False
            node = self.graph.nodes[stack.pop()]
            if isinstance(node.op, ops.Trigonometric):
                return True
            if isinstance(node.op, _MOVING):
                stack += [p for p in node.operands if p not in seen]
                seen.update(node.operands)
        return False

    def work(self) -> list[str]:
        """The operators that compute something."""
        return sorted(node.op.name for node in self.nodes if not isinstance(node.op, (*_LAID_OUT, ops.Constant)))

    def adds_below_root(self) -> bool | None:
        """Whether a small number is added before its root is taken; None where it takes none, or adds none."""
        roots = [k for k, node in enumerate(self.nodes) if node.op.name in _ROOTS]
        sums = [k for k, node in enumerate(self.nodes) if isinstance(node.op, ops.Add) and self._adds_little(node)]
        return sums[0] < roots[0] if roots and sums else None

    def _adds_little(self, node: Node) -> bool:
        numbers = [self._spread(operand) for operand in node.operands]
        return any(number is not None and 0 < number < _LITTLE for number in numbers)

    def moves(self) -> list[object]:
        """How it slices, reverses and joins."""
        moved = [n.op for n in self.nodes if isinstance(n.op, ops.Layout)]
        return [op for op in moved if not isinstance(op, ops.BroadcastInDim)]


_LEAVES = {"input", "constant"}
_LAID_OUT = (ops.Layout, ops.Convert)
_MOVING = (*_LAID_OUT, ops.Multiply)


def _sides(mine: _Part, theirs: _Part) -> Iterator[tuple[_Part, _Part, str, str, str]]:
    """Each part beside the other one, whose program the one is and whose the other, and what the second one has."""
    yield mine, theirs, "left", "right", "missing"
    yield theirs, mine, "right", "left", "extra"


_T = TypeVar("_T")


def _apart(one: Sequence[_T], other: Sequence[_T]) -> tuple[list[_T], list[_T]]:
    """What only one of two lists has, and what only the other one has."""
    return [v for v in one if v not in other], [v for v in other if v not in one]


def _numbers_apart(mine: _Part, theirs: _Part, *, plain: bool = False) -> tuple[list[float], list[float]]:
    return _apart(mine.floats(plain=plain), theirs.floats(plain=plain))


def _window(mine: _Part, theirs: _Part) -> Iterator[Diagnosis]:
    whole = not mine.nodes[-1].type.dtype.is_float and not theirs.nodes[-1].type.dtype.is_float
    if not whole and "compare" not in mine.names | theirs.names:
        return
    if mine.names & {"sine", "cosine", "dot_general", "top_k"}:
        return
    only, others = _apart(mine.integers(), theirs.integers())
    directions = _directions(mine), _directions(theirs)
    if len(only) == len(others) == 1 and abs(only[0] - others[0]) == 1:
        yield Diagnosis("window_off_by_one", f"a bound of the mask is {others[0]} where the left has {only[0]}")
    if only and others:
        yield Diagnosis("window", f"the mask has the bounds {_list(others)} where the left has {_list(only)}")
    if only:
        yield Diagnosis("window", f"the mask lacks the bound {_list(only)} of the left: the window is not applied")
    if others:
        yield Diagnosis("window", f"the mask has the bound {_list(others)}, which the left has not: a window too many")
    if not all(directions) and any(directions):
        return  # one side only applies a mask that both have: something else is between the two
    if directions[0] != directions[1]:
        yield Diagnosis(
            "window_off_by_one", f"the mask compares {directions[1]} where the left compares {directions[0]}"
        )
    yield Diagnosis("mask", "the mask is another one")


def _directions(part: _Part) -> str:
    return ", ".join(n.op.direction for n in part.nodes if isinstance(n.op, ops.Compare))


def _activation(mine: _Part, theirs: _Part) -> Iterator[Diagnosis]:
    own, other = (_functions(part) for part in (mine, theirs))
    if theirs.is_rotary() or mine.is_rotary():
        return
    if own == other or not own or not other:
        return
    yield Diagnosis("activation", f"the activation is made with {_list(other)} where the left has {_list(own)}")


def _functions(part: _Part) -> list[str]:
    """The functions of a part, and of the source line that its result belongs to."""
    names = part.names | {node.op.name for node in part.line()}
    return [text for name, text in _ACTIVATIONS.items() if name in names]


def _soft_cap(mine: _Part, theirs: _Part) -> Iterator[Diagnosis]:
    for part, other, *_, side in _sides(mine, theirs):
        if "tanh" in part.names and "tanh" not in other.names:
            cap = [v for v in _numbers_apart(part, other)[0] if v > 1]
            number = f" of {cap[0]:g}" if cap else ""
            yield Diagnosis("soft_cap", f"a soft cap{number} by tanh is {side if part is mine else 'one too many'}")
    if "tanh" in mine.names & theirs.names and mine.work() == theirs.work():
        own, caps = _numbers_apart(mine, theirs)
        divisors = [part.beside(ops.Divide, first=1) for part in (mine, theirs)]
        if len(own) == len(caps) == 1 and own[0] in divisors[0] and caps[0] in divisors[1]:
            yield Diagnosis("soft_cap", f"a soft cap by tanh is {caps[0]:g} where the left has {own[0]:g}")


def _rotary(mine: _Part, theirs: _Part) -> Iterator[Diagnosis]:
    own, other = mine.is_rotary(), theirs.is_rotary()
    if not own and not other:
        return
    if own != other:
        which = "the right program applies none" if own else "the left program applies none"
        yield Diagnosis("rotary", f"a rotary embedding is applied on one side only: {which}")
    if mine.names & {"sine", "cosine", "power", "divide"} and mine.floats() != theirs.floats():
        yield Diagnosis(
            "rotary_frequencies", f"the angles use {_list(theirs.floats())}, the left {_list(mine.floats())}"
        )
    own_numbers, others = _numbers_apart(mine, theirs)
    if own_numbers and others:
        text = f"sines and cosines are scaled by {_list(others)} where the left has {_list(own_numbers)}"
        yield Diagnosis("rotary_scale", text)
    turning = [bool(part.names & {"sine", "cosine"}) for part in (mine, theirs)]
    if turning[0] != turning[1] and not (own_numbers or others or {"slice", "transpose"} & (mine.names | theirs.names)):
        text = "the angles are others: positions are counted otherwise, or frequencies are"
        yield Diagnosis("rotary_positions", text)
    yield _STYLE


def _eps(mine: _Part, theirs: _Part) -> Iterator[Diagnosis]:
    if not {"add"} <= mine.names & theirs.names:
        return
    own, other = _numbers_apart(mine, theirs)
    if len(own) == len(other) == 1 and max(own[0], other[0]) < _LITTLE and min(own[0], other[0]) > 0:
        yield Diagnosis("eps", f"the number that is added is {other[0]:g} where the left adds {own[0]:g}")
    below = mine.adds_below_root(), theirs.adds_below_root()
    if own == other and None not in below and below[0] != below[1]:
        ours, others = ("below", "to") if below[0] else ("to", "below")
        yield Diagnosis("eps", f"a number is added {others} the root where the left adds it {ours} the root")


def _axes(mine: _Part, theirs: _Part) -> Iterator[Diagnosis]:
    sizes = [[_reduce(part, n) for n in part.nodes if isinstance(n.op, ops.Reduce)] for part in (mine, theirs)]
    if sizes[0] and sizes[1] and sorted(map(str, sizes[0])) != sorted(map(str, sizes[1])):
        text = f"elements are reduced over {_list(sizes[1])} where the left reduces over {_list(sizes[0])}"
        if set(map(str, sizes[0])) == set(map(str, sizes[1])) and mine.names & _ROOTS and theirs.names & _ROOTS:
            more = "left" if len(sizes[0]) > len(sizes[1]) else "right"
            yield Diagnosis(
                "norm", f"the {more} program takes one more mean: it is subtracted in one of the norms alone"
            )
        if "exponential" in mine.names | theirs.names:
            if mine.rows() == theirs.rows():
                kind = "window_off_by_one" if abs(sizes[0][0] - sizes[1][0]) == 1 else "window"
                yield Diagnosis(kind, f"{text}: more of equal rows is left out, as by windows of two lengths")
            yield Diagnosis("softmax_axes", f"{text}: a softmax over other elements, as before a choice or after it")
        yield Diagnosis("norm_axes", f"{text}: a norm over other axes, across heads or per head")


def _reduce(part: _Part, node: Node) -> int:
    assert isinstance(node.op, ops.Reduce)
    operand = part.graph.nodes[node.operands[0]].type.shape
    return math.prod(_number(operand[a]) for a in node.op.dimensions)


def _number(size: Dim) -> int:
    return size if isinstance(size, int) else 1


def _routing(mine: _Part, theirs: _Part) -> Iterator[Diagnosis]:
    if "top_k" in mine.names | theirs.names or "sort" in mine.names | theirs.names:
        yield Diagnosis("routing", "experts are chosen or weighted otherwise")


def _norm(mine: _Part, theirs: _Part) -> Iterator[Diagnosis]:
    for one, other, only, without, _ in _sides(mine, theirs):
        if one.names & _ROOTS and "reduce" in one.names and not other.names & _ROOTS:
            yield Diagnosis("norm", f"the {only} program normalises here, and the {without} one does not")
    for one, other, only, without, _ in _sides(mine, theirs):
        subtracts = {"reduce", "subtract"} <= one.names and "exponential" not in one.names
        if subtracts and not other.names & {"reduce", "subtract"}:
            yield Diagnosis("norm", f"the {only} program subtracts a mean here, and the {without} one does not")


def _numbers(mine: _Part, theirs: _Part) -> Iterator[Diagnosis]:
    own, other = _numbers_apart(mine, theirs)
    if bool(own) != bool(other) and mine.work() == theirs.work():
        own, other = _numbers_apart(mine, theirs, plain=True)
    if own and other:
        yield Diagnosis("wrong_constant", f"the number {_list(other)} is used where the left has {_list(own)}")


def _scale(mine: _Part, theirs: _Part) -> Iterator[Diagnosis]:
    factors = [sorted(part.beside(ops.Multiply)) for part in (mine, theirs)]
    twice = [value for value in Counter(factors[1]) - Counter(factors[0]) if value in factors[0]]
    if twice:
        yield Diagnosis("extra_scale", f"the right program scales by {_list(twice)} more often than the left")
    for part, without, *names, side in _sides(mine, theirs):
        for kinds, kind, text in _READ:
            own, _ = _numbers_apart(part, without, plain=kind == "number")  # also where that is one
            read = [v for v in own if v and v in part.beside(*kinds)]
            if read:
                yield Diagnosis(f"{side}_{kind}", text.format(names[0], _list(read), names[1]))


_READ: tuple[tuple[tuple[type[Operator], ...], str, str], ...] = (
    ((ops.Extremum, ops.Clamp), "bound", "the {0} program bounds values by {1}, and the {2} one does not"),
    ((ops.Scaling,), "scale", "the {0} program scales by {1}, and the {2} one does not"),
    ((ops.Additive,), "number", "the {0} program adds {1}, and the {2} one does not"),
)


def _biases(mine: _Part, theirs: _Part) -> Iterator[Diagnosis]:
    for part, without, only, other, side in _sides(mine, theirs):
        own = sorted(set(part.added()) - without.inputs())
        if own:
            yield Diagnosis(f"{side}_bias", f"the {only} program adds {_list(own)} here, and the {other} one does not")


def _sources(mine: _Part, theirs: _Part) -> Iterator[Diagnosis]:
    own, other = _apart(sorted(mine.inputs()), sorted(theirs.inputs()))
    if own and other:
        yield Diagnosis("other_input", f"{_list(other)} is read where the left reads {_list(own)}")


def _operators(mine: _Part, theirs: _Part) -> Iterator[Diagnosis]:
    own, other = _apart(sorted(mine.names - _LEAVES), sorted(theirs.names - _LEAVES))
    if mine.moves() != theirs.moves() and not own and not other:
        yield Diagnosis("other_order", "elements are moved otherwise: other slices, heads or groups")
    if own or other:
        shown = [f"{side} has {_list(names)}" for side, names in (("the left", own), ("the right", other)) if names]
        yield Diagnosis("other_operator", f"only {', only '.join(shown)}")


_RULES = (
    _activation,
    _soft_cap,
    _window,
    _rotary,
    _eps,
    _axes,
    _routing,
    _norm,
    _numbers,
    _scale,
    _biases,
    _sources,
    _operators,
)
"""The first that says something is told."""


def _list(values: Sequence[object]) -> str:
    texts = [f"{v:g}" if isinstance(v, float) else str(v) for v in values]
    return " and ".join(texts[:4]) or "none"
