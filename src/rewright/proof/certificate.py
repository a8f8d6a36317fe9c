"""A certificate: what a verdict claims, and equations in an order in which a checker can verify them one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, Union

from rewright.claims.language import Access, Definition, Region, Tensor
from rewright.ir.dims import Dim
from rewright.ir.placement import Placement
from rewright.proof.rewriting.splices import Rewriting

SEQUENTIAL = -1
"""The program that is not one of the ranks."""


@dataclass(frozen=True, slots=True)
class NodeEquation:
    """A node of one program is a value; ``unfold`` are the terms whose definitions show it."""

    program: int
    position: int
    value: int
    unfold: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Meeting:
    """Nodes of a group that meet in a collective, in group order: ``(rank, position, value)``.

    ``whole`` is the value that every member keeps a chunk of: the sum of a reduce-scatter, or what all members of
    an all-to-all in equal parts hold afterwards, along the axis that it splits. None for any other collective, and
    where each member's result is to be verified by itself.
    """

    members: tuple[tuple[int, int, int], ...]
    unfold: tuple[int, ...] = ()
    whole: int | None = None


@dataclass(frozen=True, slots=True)
class Repetition:
    """Equations ``first`` to ``last`` (exclusive) hold again for later nodes and for other terms.

    ``shifts`` says by program how many nodes later, the sequential program first; ``images`` which term stands for
    which. A term that is not named stands for itself.
    """

    first: int
    last: int
    shifts: tuple[int, ...]
    images: tuple[tuple[int, int], ...]


Equation = Union[NodeEquation, Meeting, Repetition]


@dataclass(frozen=True, slots=True)
class RangeFact:
    """The values of an input in a window lie in a set, or else a look-up of the sequential program is out of range.

    ``window`` is start and length by axis of the input. For the element at indices ``j`` in it the node at
    ``position`` looks up with that element where its own index is ``place``, over the variables ``j``.
    """

    term: int
    allowed: Region
    position: int
    window: tuple[tuple[Dim, Dim], ...]
    place: Access


@dataclass(frozen=True, slots=True)
class Block:
    """``transpose(tensor of a rank [box], order) = sequential input [window]``; ranges are start and length by axis."""

    name: str
    window: tuple[tuple[int, int], ...]
    order: tuple[int, ...]
    rank: int
    held: str
    """The rank's tensor."""
    box: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Output:
    """How the ranks hold an output, and the terms whose definitions show it."""

    placement: Placement
    unfold: tuple[int, ...]


@dataclass(frozen=True)
class Certificate:
    """A proof that the ranks of a mesh compute what a sequential program computes.

    ``relations`` and ``blocks`` say how the ranks hold the inputs, ``outputs`` how they then hold the outputs. Under
    ``assumptions`` that is a theorem, which ``equations`` prove over ``terms`` and ``values`` (see
    ``rewright.claims.language``).
    """

    sequential: str
    """The digest of the sequential program, as it was rewritten."""
    ranks: tuple[str, ...]
    """The digests of the programs of all ranks, as they were rewritten."""
    mesh: tuple[tuple[str, int], ...]
    relations: dict[str, Placement]
    outputs: dict[str, Output]
    assumptions: tuple[str, ...]
    facts: tuple[RangeFact, ...]
    terms: tuple[Definition, ...]
    values: tuple[Tensor, ...]
    given: tuple[tuple[int, str, int], ...]
    """Program, input, and the value that the relations give it."""
    equations: tuple[Equation, ...] = field(repr=False)
    blocks: tuple[Block, ...] = ()
    """Relations of inputs that are no placements."""
    intact: bool = field(default=True, repr=False, compare=False)
    """Whether it is as it was written: False for one from a file that was changed afterwards."""
    rewritings: tuple[Rewriting, ...] = field(default=(), repr=False)
    """How each program was rewritten before the proof began, the sequential one first; empty where none was."""
    calls: tuple[str, ...] = ()
    """What calls of a function its programs are for, a condition each; empty where they are for all."""
    captured: str = field(default="", repr=False)
    """What was checked of the captures when the proof was written down, as JSON; the proof does not rest on it."""

    def save(self, path: str | Path) -> None:
        """Write the certificate, as a whole or not at all; a path that ends in ``.gz`` is compressed.

        Raises RewrightError for an extension other than ``.json`` and ``.json.gz`` and where it cannot be written.
        """
        self.form().save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a certificate of this kind from a file.

        Raises RewrightError, naming the place, for a file that cannot be read and contents that are no certificate.
        """
        return cls.form().load(path)

    @classmethod
    def form(cls) -> Any:
        """How certificates of this kind are written."""
        from rewright.proof.files import REFINEMENT

        return REFINEMENT
