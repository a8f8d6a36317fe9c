"""What every rank holds of the sequential program's inputs: from placements and from equations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from rewright.claims.language import Addend, View
from rewright.ir.errors import ContradictoryRelations, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Placement, RankProgram
from rewright.ir.types import TensorType
from rewright.lifting.programs import Lifter
from rewright.lifting.terms.regions import whole
from rewright.lifting.terms.store import ONE
from rewright.lifting.terms.value import NotAView, Value
from rewright.refine.relations.equations import Equation, solve


@dataclass
class InputValues:
    """The values that both programs start from."""

    sequential: dict[str, Value] = field(default_factory=dict[str, Value])
    ranks: list[dict[str, Value]] = field(default_factory=list[dict[str, Value]])
    assumptions: list[str] = field(default_factory=list[str])


def input_values(
    lifter: Lifter,
    sequential: Graph,
    program: RankProgram,
    placements: Mapping[str, Placement],
    equations: Sequence[Equation],
) -> InputValues:
    """Terms for the sequential inputs and the windows of them that the ranks hold.

    Raises RewrightError for a tensor that does not exist, a rank input without a relation and a shape that does not
    fit, ContradictoryRelations where two relations disagree.
    """
    found = InputValues(ranks=[{} for _ in program.graphs])
    _check_names(sequential, placements, equations)
    windows: _Windows = {}
    for name, position in sequential.inputs.items():
        kind = sequential.nodes[position].type
        placement = placements.get(name)
        if placement is not None and placement.partial:
            _partial(lifter, found, name, sequential, program, placement)
            continue
        value = found.sequential[name] = lifter.input(name, kind)
        if placement is not None:
            key = placement, kind
            held = _of_term(windows[key], value) if key in windows else None
            if held is None:
                every = [_window(lifter, value, placement, rank, name) for rank in range(len(program.graphs))]
                held = _share_equal(every)
                windows[key] = value, held
            for rank, window in enumerate(held):
                _assign(program, found, rank, name, window)
    for (rank, name), value in solve(equations, found.sequential, program).items():
        _assign(program, found, rank, name, value)
    for rank, graph in enumerate(program.graphs):
        for name in graph.inputs:
            if name not in found.ranks[rank]:
                raise RewrightError(
                    f"nothing is known about input {name!r} of rank {rank}{_shapes(name, program)}; "
                    f"give it a placement or an equation under [relations]{_similar(name, sequential.inputs)}"
                )
    return found


_Windows = dict[tuple[Placement, TensorType], tuple[Value, list[Value]]]
"""For placements of tensors of one type, a tensor of them and what the ranks hold of it."""


def _share_equal(values: Sequence[Value]) -> list[Value]:
    """The same values, equal ones as one object."""
    known: dict[Value, Value] = {}
    return [known.setdefault(value, value) for value in values]


def _of_term(known: tuple[Value, Sequence[Value]], value: Value) -> list[Value] | None:
    """The windows of a tensor as those of another one, with its own term; None where one is no plain view."""
    (tensor, windows), own = known, value
    if not isinstance(tensor, View) or not isinstance(own, View) or len(tensor.addends) != 1 or len(own.addends) != 1:
        return None
    made: dict[int, Value] = {}
    for window in windows:
        if id(window) in made:
            continue
        if not isinstance(window, View) or {a.term for a in window.addends} != {tensor.addends[0].term}:
            return None
        made[id(window)] = View(window.dims, tuple([replace(a, term=own.addends[0].term) for a in window.addends]))
    return [made[id(window)] for window in windows]


def _window(lifter: Lifter, value: Value, placement: Placement, rank: int, name: str) -> Value:
    try:
        return lifter.window(value, placement, rank)
    except NotAView as error:
        raise RewrightError(f"the placement {placement} of input {name!r} is not supported: {error}") from None


def _assign(program: RankProgram, found: InputValues, rank: int, name: str, value: Value) -> None:
    graph = program.graphs[rank]
    if name not in graph.inputs:
        return
    kind = graph.nodes[graph.inputs[name]].type
    if value.shape != kind.shape:
        shape = "x".join(str(n) for n in value.shape) or "scalar"
        raise ContradictoryRelations(
            f"the relation of input {name!r} gives rank {rank} the shape {shape}, but its program declares {kind}; "
            "correct the placement"
        )
    before = found.ranks[rank].setdefault(name, value)
    if before != value:
        raise ContradictoryRelations(
            f"input {name!r} of rank {rank} is related twice, to different parts of the sequential tensor; keep one"
        )


def _partial(
    lifter: Lifter, found: InputValues, name: str, sequential: Graph, program: RankProgram, placement: Placement
) -> None:
    """An input whose ranks hold addends: the sequential tensor is their sum, each addend a term of its own."""
    if placement.reduction != "sum":
        raise RewrightError(f"input {name!r} is partial under {placement.reduction}; only Partial(sum) can be an input")
    kind = sequential.nodes[sequential.inputs[name]].type
    terms = lifter.algebra.terms
    addends = terms.input(f"{name}, by addend", kind.rank + 1)
    count = len(program.mesh.group(0, placement.partial))
    hole = terms.fold("sum", addends, (0,))
    total = terms.set_range(hole, whole(((0, count),)))
    dims = tuple((n,) for n in kind.shape)
    axes = tuple((0, ((axis, 1),)) for axis in range(kind.rank))
    found.sequential[name] = View(dims, (Addend(ONE, total, axes),))
    lifter.algebra.known.add(total)
    for rank in range(len(program.graphs)):
        own = program.mesh.group(rank, placement.partial).index(rank)
        value = View(dims, (Addend(ONE, hole, axes, ((hole, whole(((own, own + 1),))),)),))
        _assign(program, found, rank, name, _window(lifter, value, placement, rank, name))


def _check_names(sequential: Graph, placements: Mapping[str, Placement], equations: Sequence[Equation]) -> None:
    for name in [*placements, *(e.name for e in equations)]:
        if name not in sequential.inputs:
            raise RewrightError(
                f"a relation names {name!r}, which is no input of the sequential program"
                f"{_similar(name, sequential.inputs)}"
            )


def _shapes(name: str, program: RankProgram) -> str:
    """For an input that ranks hold with different shapes, which these are."""
    kinds = [graph.nodes[graph.inputs[name]].type for graph in program.graphs if name in graph.inputs]
    other = next((rank for rank, kind in enumerate(kinds) if kind != kinds[0]), None)
    return "" if other is None else f", which rank 0 holds as {kinds[0]} and rank {other} as {kinds[other]}"


def _similar(name: str, names: Mapping[str, int]) -> str:
    close = [] if name in names else get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
