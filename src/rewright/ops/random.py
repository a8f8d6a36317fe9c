"""Random numbers as functions."""

from __future__ import annotations

from dataclasses import dataclass

from rewright.ir.errors import TypeMismatch
from rewright.ir.types import DType
from rewright.ops.elementwise import Elementwise
from rewright.ops.functions import random


@dataclass(frozen=True, slots=True)
class Philox(Elementwise):
    """A word of Philox 4x32-10, from 0 to 2^32 - 1; operands are a counter of four, a key of two, and which word."""

    scalar = random.PHILOX

    def check_domain(self, dtype: DType) -> None:
        if dtype is not DType.I64:
            raise TypeMismatch(f"{self.name} is defined on i64 and got {dtype.value}")
