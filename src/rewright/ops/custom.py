"""Calls of functions that are opaque."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rewright.ir.errors import RewrightError, TypeMismatch
from rewright.ir.operator import Unsupported
from rewright.ir.types import TensorType
from rewright.ops.base import Array, Real, TensorOperator
from rewright.terms.index import Index
from rewright.terms.scalar import Scalar

Attribute = object
"""A number, string, boolean, None or a tuple of these."""


@dataclass(frozen=True, slots=True)
class CustomCall(TensorOperator):
    """One result of an opaque function; equal calls on equal operands give equal results."""

    target: str
    attributes: tuple[tuple[str, Attribute], ...]
    results: tuple[TensorType, ...]
    result: int
    name: ClassVar[str] = "custom_call"
    noun: ClassVar[str] = "call of {0.target}"
    UNINITIALIZED: ClassVar[str] = "uninitialized"
    """The target of memory that nothing was written to."""
    IN_FLIGHT: ClassVar[str] = "in_flight"
    """The target of memory that a collective writes, its operand, where it is read before anybody waited for that."""

    @property
    def is_unspecified(self) -> bool:
        """Whether the result may be anything: memory that is read before it is written."""
        return self.target in (self.UNINITIALIZED, self.IN_FLIGHT)

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        if not 0 <= self.result < len(self.results):
            raise TypeMismatch(f"custom_call {self.target} has {len(self.results)} results and no number {self.result}")
        return self.results[self.result]

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        raise RewrightError(f"custom_call {self.target} is opaque and cannot be executed; lower it or replace it")

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        return Unsupported(f"custom_call {self.target} is opaque")
