"""One name for each value of a function: the printer uses names again in regions that lie beside each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rewright.frontends.triton.text.syntax import Block, Function, Operation


def with_unique_names(function: Function) -> Function:
    """The function with a name that was used before changed: ``%x`` is ``%x'2`` the second time."""
    return replace(function, body=_Names().block(function.body, {}))


class _Names:
    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def block(self, block: Block, scope: Mapping[str, str]) -> Block:
        """A block and those that it leads to, which see each other's names."""
        own = dict(scope)
        first = self._one(block, own)
        others = tuple((label, self._one(other, own)) for label, other in block.others)
        return replace(first, others=others)

    def _one(self, block: Block, scope: dict[str, str]) -> Block:
        arguments = tuple((self._new(name, scope), kind) for name, kind in block.arguments)
        operations = tuple(self._operation(op, scope) for op in block.operations)
        return replace(block, arguments=arguments, operations=operations)

    def _operation(self, op: Operation, scope: dict[str, str]) -> Operation:
        operands = tuple(scope.get(name, name) for name in op.operands)
        regions = tuple(self.block(region, scope) for region in op.regions)
        results = tuple(self._new(name, scope) for name in op.results)
        return replace(op, operands=operands, regions=regions, results=results)

    def _new(self, name: str, scope: dict[str, str]) -> str:
        count = self._used[name] = self._used.get(name, 0) + 1
        scope[name] = name if count == 1 else f"{name}'{count}"
        return scope[name]
