"""Kinds of claims: what an audit needs of one, so that all are read, checked and told by the same code.

A kind of its own is a module with a :class:`Kind` by the name of ``KIND``, and a line in ``rewright.certificates``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram

if TYPE_CHECKING:
    from rewright.proof.ledger import Store

Claim = TypeVar("Claim")
Tables = tuple[Mapping[str, Any], Mapping[str, Any]]


@dataclass(frozen=True)
class Programs:
    """The two programs that a certificate is to be about."""

    left: Graph
    """The sequential one."""
    right: RankProgram
    """Those of all ranks, or one alone."""
    tables: Callable[[], Tables] = lambda: ({}, {})
    """Inputs of either side whose values are known."""


@dataclass(frozen=True)
class Said:
    """A part of what was proved: a key for programs, a title for people, and lines below it."""

    key: str
    title: str
    lines: Sequence[str]
    values: Sequence[Any] | None = None
    """What programs get in the place of the lines."""


@dataclass(frozen=True)
class Proved:
    """What a certificate was found to prove."""

    claim: str
    said: tuple[Said, ...]
    counts: str
    """What was checked, in words."""
    stats: Mapping[str, Any]
    """The same for programs."""
    calls: tuple[str, ...] = ()
    """What calls of a function the programs are for, a condition each; empty where they are for all."""
    captures: tuple[Graph, ...] = ()
    """Programs whose captures may have been checked."""
    captured: str = ""
    """What was checked of captures when the certificate was written."""
    open: tuple[str, ...] = ()
    """What is claimed and not proved."""


@dataclass(frozen=True)
class Kind(Generic[Claim]):
    """One kind of claim: how its certificates are read and checked."""

    read: Callable[[str, Any], Claim]
    """A certificate of the text of a file and its JSON value; raises RewrightError."""
    check: Callable[[Claim, Programs | None, Store | None], Proved]
    """Verify a certificate and say what it proves; raises Refused for one that proves nothing."""
    has_ranks: Callable[[Claim], bool] = lambda _: False
    """Whether it is about the programs of ranks, and not about one program on the right."""


def require(programs: Programs | None) -> Programs:
    """The programs that were given; raises RewrightError where there are none."""
    if programs is None:
        raise RewrightError("the certificate is about two programs; give them, with --left and --right")
    return programs


def alone(graph: Graph) -> RankProgram:
    """A program as that of the only rank."""
    return RankProgram((graph,), Mesh.of({"rank": 1}), {}, {})
