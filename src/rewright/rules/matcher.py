"""Matching the left side of a rule in a program, and writing the right side in its place.

What is matched is the very graph that was proved: a match gives every pattern variable a node and every size
parameter a number, and everything that the proof assumed is checked at those numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from rewright import ops
from rewright.ir.dims import Dim, SizeExpr
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.ops.elementwise import Elementwise
from rewright.rules.concrete import applies, concrete_operator
from rewright.rules.instances import single_parameter
from rewright.rules.pattern import AnyElementwise
from rewright.rules.rule import Rule
from rewright.terms.conditions import AnyOf, IsFloor, IsMaximum, IsMinimum, Same, SizeCondition
from rewright.terms.parameters import parameters, value_of


@dataclass(frozen=True)
class Match:
    """Where a rule's left side occurs: nodes for its inputs and results, numbers for its parameters."""

    rule: Rule
    inputs: Mapping[str, int]
    outputs: tuple[int, ...]
    sizes: Mapping[str, int]
    operators: Mapping[str, Operator]
    floats: DType | None
    """The dtype that stands for the rule's floats."""


@dataclass
class _State:
    """Bindings found so far, and size equations that are not solved yet."""

    nodes: dict[int, int] = field(default_factory=dict[int, int])
    operators: dict[str, Operator] = field(default_factory=dict[str, Operator])
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    equations: list[tuple[Dim, int]] = field(default_factory=list[tuple[Dim, int]])
    dtypes: dict[DType, DType] = field(default_factory=dict[DType, DType])

    def copy(self) -> _State:
        return _State(dict(self.nodes), dict(self.operators), dict(self.sizes), list(self.equations), dict(self.dtypes))


def matches(rule: Rule, graph: Graph) -> Iterator[Match]:
    """Every place at which a rule applies, each with the conditions on sizes checked.

    Conditions about elements are not decided here: a rule with facts is matched where the caller knows them.
    """
    roots = list(rule.left.outputs.values())
    own = rule.left.nodes[roots[0]].op
    for position, node in enumerate(graph.nodes):
        if _may_match(own, node.op):
            yield from _from_root(rule, graph, roots, position, {})


def _may_match(own: Operator, other: Operator) -> bool:
    """Whether operators fit before anything else is looked at; a constant may be a broadcast of one."""
    if type(own) is type(other) or isinstance(own, ops.Input):
        return True
    if isinstance(own, AnyElementwise):
        return isinstance(other, Elementwise)
    return isinstance(own, ops.BroadcastInDim) and isinstance(other, ops.Constant)


def match_at(rule: Rule, graph: Graph, position: int, given: Mapping[str, int] | None = None) -> Match | None:
    """The match whose first result is a node, if there is one.

    ``given`` are parameters that the left side leaves open, such as the number of parts of a split.
    """
    return next(_from_root(rule, graph, list(rule.left.outputs.values()), position, given or {}), None)


def _from_root(rule: Rule, graph: Graph, roots: list[int], position: int, given: Mapping[str, int]) -> Iterator[Match]:
    first = _State(sizes=dict(given))
    states = [(first, (position,))] if _unify(rule.left, roots[0], graph, position, first) else []
    for root in roots[1:]:
        grown: list[tuple[_State, tuple[int, ...]]] = []
        for known, outputs in states:
            for candidate in range(len(graph.nodes)):
                copied = known.copy()
                if _unify(rule.left, root, graph, candidate, copied):
                    grown.append((copied, (*outputs, candidate)))
        states = grown
    for known, outputs in states:
        found = _finish(rule, known, outputs)
        if found is not None:
            yield found


def _finish(rule: Rule, state: _State, outputs: tuple[int, ...]) -> Match | None:
    if not _solve(rule, state) or not applies(rule, state.sizes):
        return None
    labels = {name: state.nodes[position] for name, position in rule.left.inputs.items()}
    return Match(rule, labels, outputs, state.sizes, state.operators, state.dtypes.get(DType.F32))


def _unify(pattern: Graph, position: int, graph: Graph, target: int, state: _State) -> bool:
    """Whether a node of the pattern can stand for a node of the program; bindings are added to the state."""
    if position in state.nodes:
        return state.nodes[position] == target
    own, other = pattern.nodes[position], graph.nodes[target]
    if not _same_type(own.type, other.type, state):
        return False
    state.nodes[position] = target
    if isinstance(own.op, ops.Input):
        return True
    if _scalar_constant(pattern, own, other, state):
        return True
    if len(own.operands) != len(other.operands) or not _same_operator(own.op, other, state):
        return False
    return all(_unify(pattern, p, graph, t, state) for p, t in zip(own.operands, other.operands, strict=True))


def _scalar_constant(pattern: Graph, own: Node, other: Node, state: _State) -> bool:
    """A constant of many equal elements is the broadcast of a constant without axes."""
    if not isinstance(own.op, ops.BroadcastInDim) or not isinstance(other.op, ops.Constant):
        return False
    inner = pattern.nodes[own.operands[0]]
    if inner.type.rank or not isinstance(inner.op, ops.Constant):
        return False
    return not ops.is_table(other.op) and other.op.values == inner.op.values


def _same_type(own: TensorType, other: TensorType, state: _State) -> bool:
    if own.rank != other.rank or not _same_dtype(own.dtype, other.dtype, state):
        return False
    return all(_same_size(a, b, state) for a, b in zip(own.shape, other.shape, strict=True))


def _same_dtype(own: DType, other: DType, state: _State) -> bool:
    """Floats of a rule are one dtype throughout, and so are its integers."""
    if own is DType.BOOL or other is DType.BOOL:
        return own is other
    if own.is_float != other.is_float:
        return False
    return state.dtypes.setdefault(own, other) is other


def _same_size(own: Dim, other: Dim, state: _State) -> bool:
    if not isinstance(other, int):
        # A program with symbolic sizes is matched after its symbols have numbers.
        return False
    if isinstance(own, SizeExpr):
        state.equations.append((own, other))
        return True
    return own == other


def _same_operator(own: Operator, other: Node, state: _State) -> bool:
    if isinstance(own, AnyElementwise):
        return _bound_operator(own, other.op, state)
    if type(own) is not type(other.op):
        return False
    return all(
        _same_attribute(getattr(own, f.name), getattr(other.op, f.name), state)
        for f in dataclasses.fields(cast(Any, own))
    )


def _bound_operator(own: AnyElementwise, other: Operator, state: _State) -> bool:
    known = state.operators.setdefault(own.label, other)
    return known == other and isinstance(other, Elementwise)


def _same_attribute(own: Any, other: Any, state: _State) -> bool:
    if isinstance(own, (SizeExpr, int)) and not isinstance(own, bool) and isinstance(other, (int, SizeExpr)):
        return _same_size(own, other, state)
    if isinstance(own, tuple) and isinstance(other, tuple):
        mine, theirs = cast("tuple[Any, ...]", own), cast("tuple[Any, ...]", other)
        return len(mine) == len(theirs) and all(_same_attribute(a, b, state) for a, b in zip(mine, theirs, strict=True))
    if isinstance(own, TensorType) and isinstance(other, TensorType):
        return _same_type(own, other, state)
    if isinstance(own, DType) and isinstance(other, DType):
        return _same_dtype(own, other, state)
    return bool(own == other)


# --- sizes


def _solve(rule: Rule, state: _State) -> bool:
    """Solve the equations for parameters one at a time; every equation must hold in the end."""
    waiting = list(state.equations)
    progress = True
    while progress:
        progress = False
        for equation in list(waiting):
            solved = _solved(equation, state.sizes)
            if solved is not None:
                state.sizes.update(solved)
                waiting.remove(equation)
                progress = True
        progress = _by_conditions(rule.conditions, state.sizes) or progress
    if rule.parameters.keys() - state.sizes.keys():
        return False
    return all(value_of(size, state.sizes) == number for size, number in state.equations)


def _solved(equation: tuple[Dim, int], sizes: Mapping[str, int]) -> dict[str, int] | None:
    """What an equation says about parameters: nothing more, one value, or None where it is open."""
    expression, number = equation
    unknown = [name for name in parameters((expression,)) if name not in sizes]
    if not unknown:
        return {}
    if len(unknown) > 1:
        return None
    (name,) = unknown
    at = [value_of(expression, {**sizes, name: value}) for value in (1, 2, 3)]
    slope = at[1] - at[0]
    if slope == 0 or at[2] - at[1] != slope or (number - at[0]) % slope:
        return None
    return {name: 1 + (number - at[0]) // slope}


def _by_conditions(conditions: tuple[SizeCondition, ...], sizes: dict[str, int]) -> bool:
    """Parameters that a condition determines from known ones."""
    for condition in conditions:
        if isinstance(condition, (IsMaximum, IsMinimum, IsFloor, Same)):
            side = condition.left if isinstance(condition, Same) else condition.result
            name = single_parameter(side)
            if name is None or name in sizes:
                continue
            try:
                sizes[name] = _determine(condition, sizes)
            except (KeyError, ZeroDivisionError):
                continue
            return True
        if isinstance(condition, AnyOf):
            continue
    return False


def _determine(condition: SizeCondition, sizes: Mapping[str, int]) -> int:
    if isinstance(condition, Same):
        return value_of(condition.right, sizes)
    if isinstance(condition, IsFloor):
        return value_of(condition.numerator, sizes) // value_of(condition.denominator, sizes)
    assert isinstance(condition, (IsMaximum, IsMinimum)), "other conditions determine nothing"
    sides = value_of(condition.left, sizes), value_of(condition.right, sizes)
    return max(sides) if isinstance(condition, IsMaximum) else min(sides)


# --- rewriting


def rewrite_match(graph: Graph, match: Match) -> Graph:
    """The program with the right side in place of the match; nodes that nothing reads are left out.

    Raises TypeMismatch where the right side does not fit, which a proved rule never does.
    """
    builder = GraphBuilder(graph.name)
    found: dict[int, int] = {}
    rename = dict(zip(match.outputs, match.rule.right.outputs.values(), strict=True))
    inner: dict[int, int] = {}

    def right(position: int) -> int:
        if position not in inner:
            node = match.rule.right.nodes[position]
            if isinstance(node.op, ops.Input):
                inner[position] = program(match.inputs[node.op.label])
            else:
                operands = [right(p) for p in node.operands]
                inner[position] = builder.add(_instantiate(node.op, match), *operands)
        return inner[position]

    def program(position: int) -> int:
        if position not in found:
            if position in rename:
                found[position] = right(rename[position])
                if builder.type(found[position]) != graph.nodes[position].type:
                    raise TypeMismatch(f"rule {match.rule.name!r} gives {builder.type(found[position])}")
            else:
                node = graph.nodes[position]
                operands = [program(p) for p in node.operands]
                found[position] = builder.add(node.op, *operands, span=node.span)
        return found[position]

    inputs = {name: program(position) for name, position in graph.inputs.items()}
    outputs = {name: program(position) for name, position in graph.outputs.items()}
    return dataclasses.replace(builder.build(), inputs=inputs, outputs=outputs)


def replacement(graph: Graph, match: Match) -> Graph:
    """The right side of a match at its sizes, over inputs with the names of the rule's variables.

    Raises TypeMismatch where the right side does not fit, which a proved rule never does.
    """
    right, builder = match.rule.right, GraphBuilder(match.rule.name)
    found: dict[int, int] = {}
    for position, node in enumerate(right.nodes):
        if isinstance(node.op, ops.Input):
            kind = graph.nodes[match.inputs[node.op.label]].type
            found[position] = builder.input(node.op.label, ops.Input(node.op.label, kind))
        else:
            found[position] = builder.add(_instantiate(node.op, match), *(found[p] for p in node.operands))
    for (name, position), place in zip(right.outputs.items(), match.outputs, strict=True):
        if builder.type(found[position]) != graph.nodes[place].type:
            raise TypeMismatch(f"rule {match.rule.name!r} gives {builder.type(found[position])}")
        builder.output(name, found[position])
    return builder.build()


def _instantiate(op: Operator, match: Match) -> Operator:
    if isinstance(op, AnyElementwise):
        return match.operators[op.label]
    changed = concrete_operator(op, match.sizes)
    if match.floats is None or match.floats is DType.F32:
        return changed
    return _with_dtype(changed, match.floats)


def _with_dtype(op: Operator, dtype: DType) -> Operator:
    """The operator with the rule's float dtype replaced by the program's."""
    values: dict[str, Any] = {}
    for f in dataclasses.fields(cast(Any, op)):
        value = getattr(op, f.name)
        if isinstance(value, TensorType) and value.dtype is DType.F32:
            values[f.name] = TensorType(value.shape, dtype)
        elif value is DType.F32:
            values[f.name] = dtype
    return cast(Operator, dataclasses.replace(cast(Any, op), **values)) if values else op
