"""Programs with symbolic sizes at chosen numbers."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from rewright import ops
from rewright.interp.settling import shortest, whole_nodes
from rewright.ir.graph import Graph
from rewright.ir.placement import Placement, RankProgram
from rewright.ir.sizes import size_symbols, substitute_sizes, with_sizes

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)
"""Sizes that are given to the symbols in alphabetical order: different, so that axes are not confused."""
_LONGEST = 300
"""Limits that are larger are not reached: what is run has to be small."""


def default_sizes(names: Collection[str]) -> dict[str, int]:
    """A small number for every symbol."""
    return {name: PRIMES[i % len(PRIMES)] for i, name in enumerate(sorted(names))}


def at_sizes(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The graph with its size symbols replaced in every attribute."""
    return with_sizes(graph, sizes) if size_symbols(graph) else graph


def program_at_sizes(program: RankProgram, sizes: Mapping[str, int]) -> RankProgram:
    """All ranks, and the placements, with numbers for symbols."""

    def placed(table: Mapping[str, Placement]) -> dict[str, Placement]:
        return {name: placement_at_sizes(p, sizes) for name, p in table.items()}

    graphs = tuple(at_sizes(graph, sizes) for graph in program.graphs)
    return replace(program, graphs=graphs, inputs=placed(program.inputs), outputs=placed(program.outputs))


def placement_at_sizes(placement: Placement, sizes: Mapping[str, int]) -> Placement:
    """A placement with numbers for symbols."""
    return replace(placement, runs=substitute_sizes(placement.runs, sizes))


def further_sizes(graphs: Sequence[Graph]) -> list[dict[str, int]]:
    """Sizes beyond the usual ones at which programs may do something else, as far as the captures allow them.

    One, and a little more than the largest whole number that the programs hold: a window, a clamp, a longest position.
    Where places pass through a short float type, a little more than that holds. One symbol changes at a time.
    """
    names = {name for graph in graphs for name in size_symbols(graph)}
    usual = default_sizes(names)
    limits = [0, *(limit for graph in graphs for limit in _limits(graph))]
    conditions = [line for graph in graphs for line in graph.metadata.get("assumptions", "").split("; ") if line]
    found = [{**usual, name: size} for name in sorted(names) for size in sorted({max(limits) + 2, 1}, reverse=True)]
    return [sizes for sizes in found if sizes != usual and all(_allows(line, sizes) for line in conditions)]


def _limits(graph: Graph) -> Iterator[int]:
    for node in graph.nodes:
        value = ops.splat(node.op)
        if value is not None and node.type.dtype.is_integer and 1 < value <= _LONGEST:
            yield int(value)
    yield from (2**digits for digits in [shortest(graph, whole_nodes(graph))] if 2**digits <= _LONGEST)


def _allows(line: str, sizes: Mapping[str, int]) -> bool:
    """Whether a condition on sizes holds; of other lines those say nothing that name no size."""
    try:
        tree = ast.parse(line, mode="eval").body
    except SyntaxError:
        return not any(re.search(rf"\b{re.escape(name)}\b", line) for name in sizes)
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if not named & sizes.keys():
        return True
    return named <= sizes.keys() and _holds(tree, sizes)


def _holds(tree: ast.expr, sizes: Mapping[str, int]) -> bool:
    """Whether a comparison of sizes holds; False of anything else."""
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
        return False
    left, right = _number(tree.left, sizes), _number(tree.comparators[0], sizes)
    compare = _COMPARISONS.get(type(tree.ops[0]))
    return left is not None and right is not None and compare is not None and bool(compare(left, right))


def _number(tree: ast.expr, sizes: Mapping[str, int]) -> int | None:
    if isinstance(tree, ast.Name):
        return sizes.get(tree.id)
    if isinstance(tree, ast.Constant):
        return tree.value if isinstance(tree.value, int) else None
    if isinstance(tree, ast.BinOp) and type(tree.op) in _ARITHMETIC:
        left, right = _number(tree.left, sizes), _number(tree.right, sizes)
        is_division = isinstance(tree.op, ast.FloorDiv | ast.Mod)
        return (
            None
            if left is None or right is None or (is_division and not right)
            else _ARITHMETIC[type(tree.op)](left, right)
        )
    return None


_COMPARISONS: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
