"""The project's rules, and a user's own, as alternatives: every match of every rule in the entry of a module.

A rule is an equation of two programs (:mod:`rewright.rules`), proved for all sizes where it is in the library. A match
is offered as ``value = right side`` and is a claim of its own, proved and tested at its place as any other. A rule that
holds under conditions on elements is offered where the claim at its place is proved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewright import ops
from rewright.env.alternatives import Alternative, AlternativeGraph, Provenance
from rewright.env.claims import prove_alternative
from rewright.env.mirror import Mirror, mirror
from rewright.env.module import HloModule
from rewright.env.pool import Pool
from rewright.env.session import Session
from rewright.frontends.hlo.module import called_first
from rewright.frontends.hlo.writing import Writer
from rewright.ir.dims import Shape, SizeExpr, symbol
from rewright.ir.errors import RewrightError, TypeMismatch, UnsupportedOperator
from rewright.ir.graph import Graph, Node
from rewright.ir.types import TensorType
from rewright.ops.elementwise import Elementwise
from rewright.rules.library import library
from rewright.rules.matcher import Match, matches, replacement
from rewright.rules.rule import Rule

_MOST_MATCHES = 2_000
_SECONDS = 2.0
"""For the proof that a condition holds at its place: few take as long, and what is offered is not to depend on it."""


def rules_named(names: Sequence[str]) -> tuple[Rule, ...]:
    """Rules of the library by name; raises RewrightError for one that does not exist."""
    known = {rule.name: rule for rule in library()}
    for name in names:
        if name not in known:
            close = ", ".join(sorted(n for n in known if name.lower()[:4] in n)[:4])
            hint = f"did you mean {close}" if close else "rewright rules lists them"
            raise RewrightError(f"the library has no rule {name!r:.60}; {hint}")
    return tuple(known[name] for name in names)


def rule_alternatives(
    session: Session, module: HloModule, rules: Sequence[Rule], source: str = "rule"
) -> AlternativeGraph:
    """Every match of some rules in the entry of a module; matches that cannot be written as HLO are left out."""
    seen = mirror(module)
    pool = Pool(module.program)
    writer, wanted = Writer(), list[tuple[Match, list[str]]]()
    parameters: dict[str, str] = {}
    for rule in _all_ranks(rules, seen):
        for match in matches(rule, seen.graph):
            results = _write(writer, seen, match, parameters)
            if results is not None:
                wanted.append((match, results))
            if len(wanted) >= _MOST_MATCHES:
                break
    names = _enter(session, pool, writer, wanted, parameters)
    guarded: list[int] = []
    for match, results in wanted:
        provenance = Provenance(source, match.rule.name)
        for place, result in zip(match.outputs, results, strict=True):
            before = len(pool.alternatives)
            pool.add(seen.names[place], names.get(result, result), provenance)
            if match.rule.facts is not None:
                guarded += range(before, len(pool.alternatives))
    graph = pool.graph()
    unproved = {n for n in guarded if not prove_alternative(graph, n, _SECONDS).proved}
    kept = tuple(a for n, a in enumerate(graph.alternatives) if n not in unproved and not _is_itself(graph, a))
    return replace(graph, alternatives=kept)


def _is_itself(graph: AlternativeGraph, alternative: Alternative) -> bool:
    """Whether the replacement is the same operator on the same operands: ``x * x`` the other way round."""
    value = graph.program.computations[alternative.computation].instructions[alternative.value]
    new = graph.pool.get(alternative.computation, {}).get(alternative.replacement)
    return new is not None and (new.meaning, new.operands) == (value.meaning, value.operands)


def at_rank(rule: Rule, rank: int) -> Rule | None:
    """An elementwise rule for tensors of another rank; None for any other rule.

    Its tensors are of one shape, or scalars that are repeated: an equation of elements, which has no rank.
    """
    graphs = [rule.left, rule.right, *([rule.facts] if rule.facts is not None else [])]
    shapes = {node.type.shape for graph in graphs for node in graph.nodes if node.type.shape}
    if len(shapes) != 1 or rule.conditions or not all(_is_pointwise(node) for graph in graphs for node in graph.nodes):
        return None
    (old,) = shapes
    if len(old) == rank or len(set(old)) != len(old) or not all(isinstance(size, SizeExpr) for size in old):
        return None
    new = tuple(symbol(f"pointwise{axis}") for axis in range(rank))
    left, right = (_reshape(graph, old, new) for graph in graphs[:2])
    facts = _reshape(graphs[2], old, new) if rule.facts is not None else None
    return replace(rule, left=left, right=right, facts=facts)


def _is_pointwise(node: Node) -> bool:
    if isinstance(node.op, ops.BroadcastInDim):
        return not node.op.dimensions
    return isinstance(node.op, (Elementwise, ops.Input)) or ops.splat(node.op) is not None


def _reshape(graph: Graph, old: Shape, new: Shape) -> Graph:
    """The graph with another shape in the place of one."""

    def kind(tensor: TensorType) -> TensorType:
        return tensor.with_shape(new) if tensor.shape == old else tensor

    def operator(op: Any) -> Any:
        if isinstance(op, (ops.Input, ops.Constant)):
            return replace(op, tensor=kind(op.tensor))
        return replace(op, shape=new) if isinstance(op, ops.BroadcastInDim) and op.shape == old else op

    nodes = tuple(replace(node, op=operator(node.op), type=kind(node.type)) for node in graph.nodes)
    return replace(graph, nodes=nodes)


def _all_ranks(rules: Sequence[Rule], seen: Mirror) -> list[Rule]:
    """The rules, and those for elements at the ranks that a module has."""
    ranks = sorted({node.type.rank for node in seen.graph.nodes})
    lifted = [own for rule in rules for rank in ranks if (own := at_rank(rule, rank)) is not None]
    return [*rules, *lifted]


def _write(writer: Writer, seen: Mirror, match: Match, parameters: dict[str, str]) -> list[str] | None:
    """The results of a match as names of the text, or of the module where a result is a value that is there."""
    inputs = {label: seen.names[place] for label, place in match.inputs.items()}
    try:
        right = replacement(seen.graph, match)
        for label, place in right.inputs.items():
            if inputs[label] not in parameters:
                kind = right.nodes[place].type
                parameters[inputs[label]] = writer.add(kind, "parameter", [str(len(parameters))])
        return writer.graph(right, {label: parameters[inputs[label]] for label in right.inputs})
    except (UnsupportedOperator, TypeMismatch):
        return None


def _enter(
    session: Session,
    pool: Pool,
    writer: Writer,
    wanted: Sequence[tuple[Match, list[str]]],
    parameters: Mapping[str, str],
) -> dict[str, str]:
    """By name in the text, the name in the module or its pool."""
    known = {title: name for name, title in parameters.items()}
    results = list(dict.fromkeys(r for _, own in wanted for r in own if r not in known))
    if not results:
        return known
    kinds = {line.split(" = ")[0].strip(): line.split(" = ")[1].split(" ")[0] for line in writer.lines}
    parsed = session.parse(writer.text("rules", results, [kinds[r] for r in results])).program
    needed = called_first(parsed.computations, parsed.entry)
    slim = replace(parsed, computations={name: parsed.computations[name] for name in needed})
    return known | pool.include(slim, known, results)
