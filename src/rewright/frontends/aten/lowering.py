"""Lowering of one call: which table it is in, what it reads and writes, and whether its type is the captured one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from rewright.frontends.aten import tables
from rewright.frontends.aten.call import Call
from rewright.frontends.aten.context import Context, Value
from rewright.frontends.aten.views import Tensor, ViewStep
from rewright.ir.errors import RewrightError, TypeMismatch, UnsupportedOperator
from rewright.ir.types import SourceSpan
from rewright.ops.reference import building as rb

PLACEMENT = frozenset(
    {"device", "layout", "pin_memory", "memory_format", "non_blocking", "dtype", "generator", "out_dtype"}
)
"""Keyword arguments that say where and how a result is stored; its dtype is known from the capture."""
NO_LOWERING = "no lowering exists; rewrite that line with supported operators, or report it"
NOT_WRITTEN_FOR = (
    "its lowering does not cover these operands and attributes; write that line in another way, or report it"
)


class Lowering:
    """Lowers calls into the builder of a context. Tensors are :class:`Tensor`; sizes and numbers are themselves."""

    def __init__(self, context: Context) -> None:
        self.c = context

    def lower(self, call: Call, arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
        """The results of a call that :func:`is_known`; a door checks that before.

        Raises UnsupportedOperator and TypeMismatch where the operator has no meaning on these operands.
        """
        given = {key: value for key, value in keywords.items() if key not in PLACEMENT}
        before = self.c.enter(call)
        try:
            return self._lower(call, arguments, given)
        except RewrightError:
            raise
        except (TypeError, ValueError, ArithmeticError, LookupError, AssertionError, AttributeError) as error:
            # A setting that the lowering was not written for: nothing is known of what it means.
            raise UnsupportedOperator(f"{NOT_WRITTEN_FOR} ({type(error).__name__}: {error})") from error
        finally:
            self.c.leave(before)

    def _lower(self, call: Call, arguments: list[Any], given: dict[str, Any]) -> Any:
        name = call.operator
        if name in tables.VIEWS:
            return self._view(call, tables.VIEWS[name], arguments, given)
        if name in tables.WRITES:
            return self._write(tables.WRITES[name], arguments, given)
        if name in tables.PURE:
            return self._pure(call, tables.PURE[name], arguments, given)
        returning = tables.returning_form(name)
        if returning is not None:
            return self._pure(call, tables.PURE[returning], arguments, given)
        functional = tables.functional_name(name)
        if functional in tables.PURE:
            return self._write(tables.PURE[functional], arguments, given)
        raise UnsupportedOperator(NO_LOWERING)

    def operands(self, arguments: Any) -> Any:
        """Tensors as what they hold now."""
        if isinstance(arguments, Tensor):
            position = arguments.read(self.c.b)
            return Value(position, self.c.b.type(position))
        if isinstance(arguments, (list, tuple)):
            return [self.operands(item) for item in cast("Sequence[Any]", arguments)]
        return arguments

    def _pure(self, call: Call, function: Callable[..., Any], arguments: Any, keywords: Any) -> Any:
        operands = self.operands(arguments)
        out = keywords.pop("out", None)
        result = function(self.c, *operands, **{k: self.operands(v) for k, v in keywords.items()})
        if out is not None:
            b, kind = self.c.b, self.operands(out).type
            out.write(b, rb.broadcast(b, rb.convert(b, result, kind.dtype), kind.shape))
            return out
        if isinstance(result, int):
            return Tensor.fresh(result)
        fresh = tuple(None if position is None else Tensor.fresh(position) for position in result)
        if call.writes_a_list():
            for target, value in zip(arguments[0], result, strict=True):
                target.write(self.c.b, value)
            return arguments[0]
        return fresh

    def assign(self, target: Tensor, value: Tensor) -> None:
        """Write a tensor into another one, in the dtype and shape of that, as all its aliases see."""
        b = self.c.b
        kind = b.type(target.read(b))
        target.write(b, rb.broadcast(b, rb.convert(b, value.read(b), kind.dtype), kind.shape))

    def _write(self, function: Callable[..., int], arguments: list[Any], keywords: dict[str, Any]) -> Tensor:
        """An in-place operator: its result in the dtype and shape of the first operand, seen by all aliases."""
        target: Tensor = arguments[0]
        b = self.c.b
        operands = self.operands(arguments)
        value = function(self.c, *operands, **{k: self.operands(v) for k, v in keywords.items()})
        kind = operands[0].type
        target.write(b, rb.broadcast(b, rb.convert(b, value, kind.dtype), kind.shape))
        return target

    def _view(self, call: Call, function: Callable[..., Any], arguments: list[Any], keywords: dict[str, Any]) -> Any:
        source: Tensor | None = arguments[0]
        if source is None:  # a result that nothing reads, such as a seed
            return None
        operands = self.operands(arguments)
        steps = function(self.c, *operands, **keywords)
        if steps is None:
            return Tensor.fresh(rb.convert(self.c.b, operands[0].position, self.c.result().dtype))
        if steps and isinstance(steps[0], tuple):
            return tuple(self._seen(call, source, chain) for chain in steps)
        return self._seen(call, source, steps)

    def _seen(self, call: Call, source: Tensor, steps: tuple[ViewStep, ...]) -> Tensor:
        """An alias where the operator gives one, else a tensor of its own."""
        found = source
        for step in steps:
            found = found.view(step)
        return found if call.shares_memory() else Tensor.fresh(found.read(self.c.b))

    def check(self, call: Call, result: object) -> None:
        """Raise TypeMismatch where a lowered result has not the type that was captured."""
        if isinstance(result, tuple):
            for index, part in enumerate(cast("tuple[object, ...]", result)):
                self._check_part(call, index, part)
        else:
            self._check_part(call, 0, result)

    def _check_part(self, call: Call, index: int, part: object) -> None:
        wanted = call.result(index) if isinstance(part, Tensor) else None
        if isinstance(part, Tensor) and wanted is not None:
            found = self.c.b.type(part.read(self.c.b))
            if found != wanted:
                raise TypeMismatch(f"the capture has {wanted} and the lowering gives {found}; report this line")


def locate(call: Call, span: SourceSpan, error: RewrightError) -> str:
    """The message of an error with the operator and its source line, once."""
    text = str(error)
    inside = f" (in {span.module_path})" if span.module_path else ""
    return text if text.startswith("operator ") else f"operator {call.operator} at {span}{inside}: {text}"
