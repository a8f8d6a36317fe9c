"""Statements: what one step of a proof says, on its own."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from rewright.claims.language import Definition, Region, Tensor
from rewright.ir.dims import Dim
from rewright.proof.programs import Subject


@dataclass(frozen=True, slots=True)
class Fact:
    """The values of an integer term lie in a set wherever the term is read in a window: start and length by axis."""

    allowed: Region
    window: tuple[tuple[Dim, Dim], ...] | None
    """None: everywhere."""


@dataclass(frozen=True)
class Statement:
    """The subject applied to ``operands`` gives ``result``; or its two sides are equal where there is no result."""

    subject: Subject
    operands: tuple[Tensor, ...]
    result: Tensor | None
    definitions: tuple[tuple[int, Definition], ...]
    integers: frozenset[int]
    facts: tuple[tuple[int, Fact], ...]

    @property
    def digest(self) -> str:
        """A SHA-256 over all that the statement says."""
        said = (self.subject, self.operands, self.result, self.definitions, sorted(self.integers), self.facts)
        return hashlib.sha256(repr(said).encode()).hexdigest()
