"""What operators say of integers: which count the same thing, along which axis they are places, what is made of them.

A gather says that its indices are places along an axis of what it reads, an addition that all its numbers count one
thing. Who asks gives a ``Counts``: ranges to draw inputs from, or numbers that become smaller with an axis.
"""

from __future__ import annotations

from collections.abc import Sequence

Values = int
"""Stands for the elements of one tensor. Those that are no integers count nothing, and are to be left out."""


class Counts:
    """What a program counts, and what its operators say of it; who asks overrides what it makes something of."""

    def same(self, tensors: Sequence[Values], /) -> None:
        """The elements of all these count one thing."""

    def index(self, places: Values, tensor: Values, axis: int, /) -> None:
        """Elements are places along an axis of a tensor, at which it is read or written."""

    def number(self, result: Values, tensor: Values, axis: int, /) -> None:
        """Elements are the places along an axis of a tensor (-1 is the last one), in some order."""

    def constant(self, result: Values, numbers: Sequence[float | int | bool], /) -> None:
        """Elements are written down."""

    def test(self, operands: Sequence[Values], /) -> None:
        """Elements are compared to be equal."""

    def total(self, result: Values, operand: Values, axes: Sequence[int], /) -> None:
        """Elements are sums along axes of the operand."""

    def multiply(self, result: Values, operands: Sequence[Values], /) -> None:
        """Elements are products."""
        self.mix(result, operands)

    def divide(self, result: Values, operands: Sequence[Values], /) -> None:
        """Elements are quotients, or what is left by division."""
        self.mix(result, operands)

    def digits(self, result: Values, operands: Sequence[Values], /) -> None:
        """Elements are made of binary digits of the operands."""
        self.mix(result, operands)

    def mix(self, result: Values, operands: Sequence[Values], /) -> None:
        """Elements are made of the operands in some other way, and count something else."""
