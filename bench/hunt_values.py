"""Random pairs of programs that differ at special values: infinities, ties, empty axes, wraps, casts, undefined points.

    python -m bench.hunt_values 20000 7

Each pair is equal for most real numbers, and many are not for all: a masked score less itself, a quotient by itself, a
look-up by an index that passed through bfloat16. The certificate of whatever the engine proves is audited, and where it
states no condition beyond exact reals both programs run on special inputs. None may differ there.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rewright import ops
from rewright.interp.program import run, run_nodes
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import DType, TensorType
from rewright.proof.checker import audit
from rewright.proof.conditions import REALS, Violated
from rewright.proof.wrapping import wrapping
from rewright.refine.certificate.claims import NotCertified
from rewright.refine.certificate.writer import certificate
from rewright.refine.check import attempt
from rewright.refine.relations.known import input_relations

Edit = Callable[["Maker", int], int]
SPECIAL = (0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 0.25, 1.5)


@dataclass
class Maker:
    """Builds one program of a pair; both draw the same numbers."""

    b: GraphBuilder
    source: random.Random
    shape: tuple[int, ...]

    @property
    def kind(self) -> TensorType:
        return TensorType(self.shape, DType.F32)

    def number(self, value: float) -> int:
        return self.b.add(ops.Constant(self.kind, (value,)))

    def masked(self, x: int) -> int:
        """Minus infinity above the diagonal, or everywhere in the first row."""
        wide = TensorType(self.shape, DType.I64)
        row, column = self.b.add(ops.Iota(wide, 0)), self.b.add(ops.Iota(wide, 1))
        keeps = self.b.add(ops.Compare(self.source.choice(("GE", "GT"))), row, column)
        return self.b.add(ops.Select(), keeps, x, self.number(-math.inf))

    def reduced(self, kind: str, x: int) -> int:
        """A reduction along rows, spread again."""
        return self.b.add(ops.BroadcastInDim(self.shape, (0,)), self.b.add(ops.Reduce(kind, (1,)), x))  # type: ignore[arg-type]


def _unary(op: type[ops.TensorOperator]) -> Edit:
    return lambda m, x: m.b.add(op(), x)


def _then(*edits: Edit) -> Edit:
    def both(m: Maker, x: int) -> int:
        for edit in edits:
            x = edit(m, x)
        return x

    return both


def _self(op: type[ops.TensorOperator], change: Edit = lambda m, x: x) -> Edit:
    def edit(m: Maker, x: int) -> int:
        y = change(m, x)
        return m.b.add(op(), y, y)

    return edit


def _with(op: type[ops.TensorOperator], value: float) -> Edit:
    return lambda m, x: m.b.add(op(), x, m.number(value))


def _plus_nothing(change: Edit) -> Edit:
    """What is added is zero for real numbers."""

    def edit(m: Maker, x: int) -> int:
        y = change(m, x)
        return m.b.add(ops.Add(), x, m.b.add(ops.Subtract(), y, y))

    return edit


def _times_one(change: Edit) -> Edit:
    def edit(m: Maker, x: int) -> int:
        y = change(m, x)
        return m.b.add(ops.Multiply(), x, m.b.add(ops.Divide(), y, y))

    return edit


def _softmax(m: Maker, x: int) -> int:
    powers = m.b.add(ops.Exponential(), m.b.add(ops.Subtract(), x, m.reduced("maximum", x)))
    return m.b.add(ops.Divide(), powers, m.reduced("sum", powers))


def _softmax_unshifted(m: Maker, x: int) -> int:
    powers = m.b.add(ops.Exponential(), x)
    return m.b.add(ops.Divide(), powers, m.reduced("sum", powers))


def _compared(direction: str) -> Edit:
    def edit(m: Maker, x: int) -> int:
        test = m.b.add(ops.Compare(direction), x, x)  # type: ignore[arg-type]
        return m.b.add(ops.Select(), test, x, m.number(0.0))

    return edit


def _through(*dtypes: DType) -> Edit:
    def edit(m: Maker, x: int) -> int:
        for dtype in (*dtypes, DType.F32):
            x = m.b.add(ops.Convert(dtype), x)
        return x

    return edit


def _chosen(result: str) -> Edit:
    def edit(m: Maker, x: int) -> int:
        best = m.b.add(ops.TopK(1, result), x)  # type: ignore[arg-type]
        return m.b.add(ops.BroadcastInDim(m.shape, (0, 1)), m.b.add(ops.Convert(DType.F32), best))

    return edit


MASKED: Edit = lambda m, x: m.masked(x)  # noqa: E731
SAME: Edit = lambda m, x: x  # noqa: E731
CHANGES: dict[str, Edit] = {
    "itself": SAME,
    "exponential": _unary(ops.Exponential),
    "logarithm": _unary(ops.Log),
    "root": _unary(ops.Sqrt),
    "inverse root": _unary(ops.Rsqrt),
    "masked": MASKED,
    "exponential of masked": _then(MASKED, _unary(ops.Exponential)),
    "exponential of minus masked": _then(MASKED, _unary(ops.Negate), _unary(ops.Exponential)),
    "row maximum": lambda m, x: m.reduced("maximum", x),
    "row maximum of masked": _then(MASKED, lambda m, x: m.reduced("maximum", x)),
    "row sum of masked": _then(MASKED, lambda m, x: m.reduced("sum", x)),
    "inverse": lambda m, x: m.b.add(ops.Divide(), m.number(1.0), x),
    "floor of masked": _then(MASKED, _unary(ops.Floor)),
    "sine of masked": _then(MASKED, _unary(ops.Sine)),
    "tanh of masked": _then(MASKED, _unary(ops.Tanh)),
    "softmax of masked": _then(MASKED, _softmax),
}
PAIRS: dict[str, tuple[Edit, Edit]] = {
    "exponential of a logarithm": (_then(_unary(ops.Log), _unary(ops.Exponential)), SAME),
    "logarithm of an exponential": (_then(_unary(ops.Exponential), _unary(ops.Log)), SAME),
    "square of a root": (_then(_unary(ops.Sqrt), _self(ops.Multiply)), SAME),
    "twice inverted": (_then(CHANGES["inverse"], CHANGES["inverse"]), SAME),
    "times zero": (_with(ops.Multiply, 0.0), lambda m, x: m.number(0.0)),
    "less itself": (_self(ops.Subtract), lambda m, x: m.number(0.0)),
    "over itself": (_self(ops.Divide), lambda m, x: m.number(1.0)),
    "softmax without its maximum": (_softmax, _softmax_unshifted),
    "equal to itself": (_compared("EQ"), SAME),
    "at least itself": (_compared("GE"), SAME),
    "maximum with minus infinity": (_with(ops.Maximum, -math.inf), SAME),
    "plus minus infinity": (_with(ops.Add, -math.inf), lambda m, x: m.number(-math.inf)),
    "power of zero": (_with(ops.Power, 0.0), lambda m, x: m.number(1.0)),
    "first power": (_with(ops.Power, 1.0), SAME),
    "through an integer": (_then(_unary(ops.Floor), _through(DType.I32)), _unary(ops.Floor)),
    "through a byte": (_then(_unary(ops.Floor), _through(DType.I8)), _unary(ops.Floor)),
    "rounded twice": (_then(_with(ops.Add, 0.5), _unary(ops.Floor)), _unary(ops.RoundNearestEven)),
    "values of the largest": (_chosen("values"), lambda m, x: m.reduced("maximum", x)),
    "places of the largest of twice": (_chosen("indices"), _then(_with(ops.Multiply, 2.0), _chosen("indices"))),
    "places of the largest of masked": (_then(MASKED, _chosen("indices")), _chosen("indices")),
}
for _name, _change in CHANGES.items():
    PAIRS[f"plus and minus {_name}"] = (_plus_nothing(_change), SAME)
    PAIRS[f"times and over {_name}"] = (_times_one(_change), SAME)


def pair(seed: int) -> tuple[str, Graph, Graph]:
    """A pair of programs and its name."""
    source = random.Random(seed)
    shape = source.choice(((3, 3), (2, 4), (4, 2), (1, 3), (3, 1), (2, 0)))
    before = [source.choice(list(CHANGES)) for _ in range(source.randrange(3))]
    after = [source.choice(list(CHANGES)) for _ in range(source.randrange(2))]
    name = source.choice([name for name in PAIRS if 0 not in shape or "largest" not in name])
    numbers = source.random()
    graphs: list[Graph] = []
    for edit in PAIRS[name]:
        maker = Maker(GraphBuilder(), random.Random(numbers), shape)
        x = maker.b.input("x", ops.Input("x", maker.kind))
        for change in before:
            x = CHANGES[change](maker, x)
        maker.source = random.Random(numbers)
        x = edit(maker, x)
        maker.source = random.Random(numbers)
        for change in after:
            x = CHANGES[change](maker, x)
        maker.b.output("y", x)
        graphs.append(maker.b.build())
    return f"{' > '.join([*before, name, *after])} on {shape}", graphs[0], graphs[1]


def conditions_of(left: Graph, right: Graph) -> tuple[str, ...] | None:
    """What an audited proof of a pair assumes; None where there is none."""
    mesh = Mesh.of({"rank": 1})
    inputs = {name: place(left.nodes[p].type.shape, mesh, ("Replicate()",)) for name, p in left.inputs.items()}
    program = RankProgram((right,), mesh, inputs, {})
    if wrapping([left, right]):
        return None
    known = input_relations(left, program, None)
    proof = attempt(left, program, known, {})
    if proof.failed or proof.mismatch or proof.out_of_time:
        return None
    try:
        found = certificate(left, program, known, {}, proof.forms)
        audit(found, left, program)
    except (NotCertified, Violated, RewrightError):
        return None
    return tuple(text for text in found.assumptions if text != REALS)


def difference(left: Graph, right: Graph, seed: int) -> str:
    """Special inputs on which a pair differs, in words; empty where none was found."""
    generator = np.random.default_rng(seed)
    shape = tuple(int(str(n)) for n in left.nodes[left.inputs["x"]].type.shape)
    for _ in range(6):
        x = generator.choice(SPECIAL, size=shape)
        with np.errstate(all="ignore"):
            one, other = (run(graph, {"x": x})["y"] for graph in (left, right))
            if any(leaves_doubles(graph, x) for graph in (left, right)):
                continue
        if not np.allclose(one, other, rtol=1e-9, atol=1e-9, equal_nan=True):
            return f"x = {x.tolist()} gives {one.tolist()} and {other.tolist()}"
    return ""


def leaves_doubles(graph: Graph, x: np.ndarray) -> bool:
    """Whether an exponential of a number is no double: exact reals go on there."""
    values = run_nodes(graph, {"x": x})
    taken = [values[n.operands[0]] for n in graph.nodes if isinstance(n.op, ops.Exponential)]
    return any(bool((np.abs(v[np.isfinite(v)]) > 300).any()) for v in taken)


def hunt(first: int, count: int) -> tuple[Counter[str], list[str]]:
    """How pairs end, and what is proved wrongly."""
    found: Counter[str] = Counter()
    wrong: list[str] = []
    for seed in range(first, first + count):
        name, left, right = pair(seed)
        conditions = conditions_of(left, right)
        differs = difference(left, right, seed)
        kind = "differ" if differs else "agree"
        if conditions is None:
            found[f"{kind}, not proved"] += 1
        elif conditions:
            found[f"{kind}, proved under conditions"] += 1
        else:
            found[f"{kind}, proved"] += 1
            if differs:
                wrong.append(f"seed {seed}: {name}: {differs}")
    return found, wrong


def main() -> None:
    """Print how pairs end."""
    count, seed = (int(argument) for argument in (*sys.argv[1:], "2000", "0")[:2])
    found, wrong = hunt(seed * 1_000_000, count)
    for name, number in sorted(found.items()):
        print(f"{name}: {number:,}")
    print(*wrong[:20], sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
