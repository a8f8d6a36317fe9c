"""One change in the source of a kernel: an operator, a number, a mask that is dropped, a statement that is gone."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

_SWAPS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
}
_ORDERS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
}
_FUNCTIONS = {"maximum": "minimum", "max": "sum", "sum": "max", "minimum": "maximum", "exp": "exp2", "rsqrt": "sqrt"}


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """What was changed, with its line, and the source with that one change."""
    tree = ast.parse(source)
    for number, node in enumerate(ast.walk(tree)):
        for what, change in _changes(node):
            other = copy.deepcopy(tree)
            target = next(n for k, n in enumerate(ast.walk(other)) if k == number)
            change(target)
            yield f"line {getattr(node, 'lineno', 0)}: {what}", ast.unparse(ast.fix_missing_locations(other))


def _changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    if isinstance(node, ast.BinOp) and type(node.op) in _SWAPS:
        other = _SWAPS[type(node.op)]
        yield f"{type(node.op).__name__} is {other.__name__}", lambda n: setattr(n, "op", other())
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _ORDERS:
        for order in _ORDERS[type(node.ops[0])]:
            yield f"{type(node.ops[0]).__name__} is {order.__name__}", lambda n, o=order: setattr(n, "ops", [o()])
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield f"{node.value} is {node.value + 1}", lambda n: setattr(n, "value", n.value + 1)
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg in ("mask", "other"):
                yield (
                    f"no {keyword.arg}",
                    lambda n, name=keyword.arg: setattr(n, "keywords", [k for k in n.keywords if k.arg != name]),
                )
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in _FUNCTIONS:
            new = _FUNCTIONS[function.attr]
            yield f"{function.attr} is {new}", lambda n, name=new: setattr(n.func, "attr", name)
    if isinstance(node, ast.FunctionDef | ast.For | ast.If):
        for place, statement in enumerate(node.body):
            if isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr) and len(node.body) > 1:
                yield (
                    f"without {ast.unparse(statement)[:40]}",
                    lambda n, at=place: setattr(n, "body", [s for k, s in enumerate(n.body) if k != at]),
                )
