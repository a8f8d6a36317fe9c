"""``a and b`` of blocks in Triton's interpreter, as its compiler reads it.

To the compiler it is the conjunction of all elements, with both sides computed; Python, as which the interpreter runs
it, gives the second block. Sides that are numbers of Python decide before anything behind them is looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

_JOINED, _NEGATED = "_joined_conditions", "_negated_condition"


def joined(is_and: bool, *sides: Callable[[], Any]) -> Any:
    """The conjunction of conditions, or their disjunction; each side is computed when it is called."""
    found: Any = None
    last: Any = None
    for side in sides:
        value = side()
        if not hasattr(value, "handle"):
            if bool(value) is not is_and:
                return value
            last = value
        elif found is None:
            found = value
        else:
            found = found.logical_and(value) if is_and else found.logical_or(value)
    return last if found is None else found


def negated(value: Any) -> Any:
    """``not value``, of blocks in all places."""
    return value.__not__() if hasattr(value, "handle") else not value


@contextmanager
def compiled_conditions() -> Generator[None]:
    """Functions that are interpreted inside join conditions as compiled ones do."""
    interpreter: Any = import_module("triton.runtime.interpreter")
    before = interpreter.FunctionRewriter.ast_transformer

    class Transformer(interpreter.ASTTransformer):
        def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
            self.generic_visit(node)
            none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
            sides = [ast.Lambda(args=none, body=value) for value in node.values]
            which = ast.Constant(value=isinstance(node.op, ast.And))
            return ast.copy_location(_call(_JOINED, which, *sides), node)

        def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
            self.generic_visit(node)
            return ast.copy_location(_call(_NEGATED, node.operand), node) if isinstance(node.op, ast.Not) else node

    interpreter.FunctionRewriter.ast_transformer = Transformer()
    setattr(interpreter, _JOINED, joined)  # whose names the functions see that are rewritten
    setattr(interpreter, _NEGATED, negated)
    try:
        yield
    finally:
        interpreter.FunctionRewriter.ast_transformer = before


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=list(args), keywords=[])
