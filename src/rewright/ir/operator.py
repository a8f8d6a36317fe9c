"""What every operator is: a frozen dataclass of attributes with the facets derived from one denotation."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rewright.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A facet that an operator cannot give, with the reason; never a silent default."""

    why: str


class OperatorClass(ABCMeta):
    """The class of operators: abstract, and without virtual subclasses.

    So whether a value is an operator of some kind is a plain look at its bases, several times as fast as ABCMeta's.
    """

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


class Operator(metaclass=OperatorClass):
    """One operator with its attributes. Subclasses are frozen dataclasses; equality is equality of attributes."""

    __slots__ = ()
    name: ClassVar[str]
    """The StableHLO name, which is the name in the text form."""
    is_met: ClassVar[bool] = False
    """Whether other ranks take part in it, which wait for it where nothing reads what it gives."""
    noun: ClassVar[str] = "{0.name}"
    """What users call it, as a format of the operator, for reports: ``"matrix product"``; by default its name."""

    @abstractmethod
    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        """The type of the result; raises TypeMismatch where operands and attributes do not fit."""


def call_operator(op: Operator) -> str:
    """What users call an operator: ``"sum"`` for a reduction by sums."""
    return op.noun.format(op)
