"""One pass over a captured graph: every node is lowered as it is met."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from rewright import ops
from rewright.frontends.aten import tables
from rewright.frontends.aten.context import Context, Value
from rewright.frontends.aten.lowering import Lowering, locate
from rewright.frontends.aten.tables import is_known
from rewright.frontends.aten.views import Tensor
from rewright.frontends.graph_json.calls import GETITEM, GraphCall, part_types
from rewright.frontends.graph_json.document import Document, Record, Ref, Word
from rewright.frontends.unknowns import Unknowns
from rewright.ir.dims import Dim, SizeExpr, divide
from rewright.ir.errors import RewrightError, TypeMismatch, UnsupportedOperator
from rewright.ir.types import TensorType
from rewright.ops.reference import building as rb

_GATHER = "_c10d_functional.all_gather_into_tensor.default"
_NONZERO = "aten.nonzero.default"
_FUNCTIONALIZED = ("auto_functionalized", "auto_functionalized_v2")


class Walk:
    """The values of the nodes of one document."""

    def __init__(
        self,
        context: Context,
        document: Document,
        unknowns: Unknowns,
        collectives: frozenset[int],
        alike: Mapping[int, float],
    ) -> None:
        self.c = context
        self.document = document
        self.unknowns = unknowns
        self.collectives = collectives
        self.lowering = Lowering(context)
        self.parts = part_types(document)
        self.values: dict[int, Any] = {}
        self.result: Any = None
        """The outputs, in the structure of the document."""
        self.gathered: dict[int, float] = {}
        """Nodes that gather one number from this rank, with that number."""
        self._alike = alike
        self._sizes: dict[str, int] = {}

    def run(self) -> None:
        """Lower all nodes."""
        for record in self.document.records:
            self.c.b.span = record.span
            if record.op == "placeholder":
                self.values[record.id] = self._placeholder(record)
            elif record.op == "get_attr":
                self.values[record.id] = None  # its type is that of the node that reads it
            elif record.op == "call_function":
                self.values[record.id] = self._locate(record)
        self.result = self._argument(self.document.outputs)

    def _placeholder(self, record: Record) -> Any:
        if record.type is None:
            return SizeExpr((((record.name,), 1),)) if record.name.isidentifier() else None
        return Tensor.fresh(self.c.b.input(record.name, ops.Input(record.name, record.type)))

    def _argument(self, argument: Any) -> Any:
        if isinstance(argument, Ref):
            return self.values[argument.id]
        if isinstance(argument, list):
            return [self._argument(item) for item in cast("list[Any]", argument)]
        if isinstance(argument, tuple):
            return tuple(self._argument(item) for item in cast("tuple[Any, ...]", argument))
        return self._number(argument) if isinstance(argument, SizeExpr) else argument

    def _locate(self, record: Record) -> Any:
        """Lower a node; errors name it and its source line."""
        call = self._call(record)
        try:
            result = self._lower(call)
            self.lowering.check(self._call(record), result)
        except UnsupportedOperator as error:
            raise UnsupportedOperator(locate(call, record.span, error)) from None
        except TypeMismatch as error:
            raise TypeMismatch(locate(call, record.span, error)) from None
        except RewrightError:
            raise
        except (TypeError, ValueError, IndexError, KeyError, AttributeError, AssertionError, ArithmeticError) as error:
            why = f"its operands do not fit ({type(error).__name__}: {error!s:.80}); capture the graph again"
            raise RewrightError(locate(call, record.span, RewrightError(why))) from None
        return result

    def _call(self, record: Record) -> GraphCall:
        """A call with the sizes that are known by now."""
        parts = self.parts.get(record.id, {})
        return GraphCall(
            self._sized(record), self.document, {index: self._known(kind) for index, kind in parts.items()}
        )

    def _lower(self, call: GraphCall) -> Any:
        record, name = call.record, call.operator
        if name == GETITEM:
            container: Any = self._argument(record.args[0])
            return None if container is None else container[record.args[1]]
        if name in tables.IGNORED:
            return None
        if name in _FUNCTIONALIZED:
            return self._functionalize(call)
        if name == "aten.sym_size.int":
            return self._size(record)
        if name in _ARITHMETIC:
            return _ARITHMETIC[name](*(self._argument(argument) for argument in record.args))
        if name.startswith("<built-in function "):
            return None  # a comparison of sizes, which only assertions read
        arguments = [self._operand(argument, record) for argument in record.args]
        keywords = {key: self._operand(value, record) for key, value in record.kwargs.items()}
        if name == _GATHER:
            return self._gather(call, arguments)
        if name == _NONZERO and record.type is not None:
            found = self._positions(record, arguments[0])
            if found is not None:
                return found
        if is_known(name):
            return self.lowering.lower(call, arguments, keywords)
        return self._opaque(call, arguments, keywords)

    def _operand(self, argument: Any, reader: Record) -> Any:
        """An argument; a constant without values is an unknown of the type that its reader gives."""
        if isinstance(argument, Ref):
            source = self.document.record(argument.id)
            if source.op == "get_attr" and self.values[source.id] is None:
                kind = source.type or reader.type
                if kind is None:
                    raise UnsupportedOperator(f"the constant {source.name} has no type; capture its shape and dtype")
                self.c.b.span = source.span
                self.values[source.id] = Tensor.fresh(self.unknowns.make("constant", source.name, kind))
                self.c.b.span = reader.span
        if isinstance(argument, (list, tuple)):
            return [self._operand(item, reader) for item in cast("Sequence[Any]", argument)]
        return self._argument(argument)

    def _gather(self, call: GraphCall, arguments: list[Any]) -> Any:
        """A gather; of what is one number on every rank, that number."""
        value = self.c.b.uniform(cast("Tensor", arguments[0]).read(self.c.b))
        if value is not None:
            self.gathered[call.record.id] = value
        kind = call.result(0)
        if call.record.id in self._alike and kind is not None:
            return Tensor.fresh(rb.splat(self.c.b, self._alike[call.record.id], kind.shape, kind.dtype))
        return self.lowering.lower(call, arguments, {})

    def _positions(self, record: Record, source: Tensor) -> Tensor | None:
        """Where a vector is not zero, if it is nowhere; the size that depends on data is then its own."""
        position = source.read(self.c.b)
        shape = self.c.b.type(position).shape
        wanted = record.type.shape[0] if record.type is not None else 0
        if len(shape) != 1 or not isinstance(shape[0], int) or not self.c.b.uniform(position):
            return None
        if isinstance(wanted, SizeExpr):
            ((names, factor), *rest) = wanted.terms
            if rest or factor != 1 or len(names) != 1:
                return None
            self._sizes[names[0]] = shape[0]
        return Tensor.fresh(rb.iota(self.c.b, (shape[0], 1), 0))

    def _sized(self, record: Record) -> Record:
        if not self._sizes or record.type is None:
            return record
        stride = None if record.stride is None else tuple(self._number(entry) for entry in record.stride)
        return replace(record, type=self._known(record.type), stride=stride)

    def _known(self, kind: TensorType) -> TensorType:
        return kind.with_shape(tuple(self._number(size) for size in kind.shape)) if self._sizes else kind

    def _number(self, size: Dim) -> Dim:
        return size.substitute(self._sizes) if isinstance(size, SizeExpr) else size

    def _size(self, record: Record) -> Dim:
        source, axis = cast("Tensor", self._argument(record.args[0])), cast("int", record.args[1])
        return self.c.b.type(source.read(self.c.b)).shape[axis]

    def _functionalize(self, call: GraphCall) -> tuple[Any, ...]:
        """A kernel that writes into operands, as one that returns what it writes: nothing, then each of them."""
        kernel = call.record.args[0]
        function = tables.MUTATING.get(kernel) if isinstance(kernel, str) else None
        if function is None:
            raise UnsupportedOperator(f"the kernel {kernel!r:.60} has no reference definition; capture its source")
        given = dict(call.record.kwargs)
        bases = self._argument(given.pop("_all_bases", None))
        keywords = {key: self._argument(value) for key, value in given.items()}
        for key in [key for key in keywords if key.startswith("_") and key.endswith("_base_index")]:
            place = keywords.pop(key)
            keywords[key[1 : -len("_base_index")]] = None if place is None else cast("list[Any]", bases)[place]
        before = self.c.enter(call)
        operands = {key: self.lowering.operands(value) for key, value in keywords.items()}
        found = function(self.c, **operands)
        self.c.leave(before)
        return (None, *(Tensor.fresh(position) for position in found))

    def _opaque(self, call: GraphCall, arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
        """An operator that is not known: some function of its operands, the same wherever it is called."""
        record = call.record
        kinds = (record.type,) if record.type is not None else tuple(call.result(i) for i in range(call.count))
        mutates = any(part.endswith("_") for part in call.operator.split(".")[:2])
        if mutates or record.id in self.collectives or any(kind is None for kind in kinds):
            raise UnsupportedOperator("no lowering exists and its meaning is not known; report it")
        operands: list[int] = []
        attributes = (("args", self._attribute(arguments, operands)), *self._keywords(keywords, operands))
        self.c.assume(f"{call.operator} at {record.span} is a function of its operands and of nothing else")
        types = tuple(cast("TensorType", kind) for kind in kinds)
        results = [
            self.c.b.add(ops.CustomCall(call.operator, attributes, types, index), *operands)
            for index in range(len(types))
        ]
        if record.type is not None:
            return Tensor.fresh(results[0])
        return tuple(Tensor.fresh(position) for position in results)

    def _keywords(self, keywords: Mapping[str, Any], operands: list[int]) -> list[tuple[str, object]]:
        return [(key, self._attribute(value, operands)) for key, value in sorted(keywords.items())]

    def _attribute(self, value: Any, operands: list[int]) -> object:
        """An argument of an unknown operator as an attribute; a tensor becomes an operand and its number stays."""
        found = self.lowering.operands(value) if isinstance(value, Tensor) else value
        if isinstance(found, Value):
            operands.append(found.position)
            return f"operand {len(operands)}"
        if isinstance(found, (list, tuple)):
            return tuple(self._attribute(item, operands) for item in cast("Sequence[Any]", found))
        if isinstance(found, (SizeExpr, Word)):
            return str(found)
        if isinstance(found, (int, float, str)) or found is None:
            return found
        raise UnsupportedOperator("no lowering exists and its arguments are not understood; report it")


def _floor_divide(left: Dim, right: Dim) -> Dim:
    exact = divide(left, right)
    if exact is not None:
        return exact
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    raise UnsupportedOperator(f"the size {left} // {right} is no polynomial; capture it as a number")


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "<built-in function mul>": lambda left, right: left * right,
    "<built-in function add>": lambda left, right: left + right,
    "<built-in function sub>": lambda left, right: left - right,
    "<built-in function floordiv>": _floor_divide,
}
