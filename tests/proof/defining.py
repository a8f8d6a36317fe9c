"""Terms of certificates by the names of their kinds, as they stand in a file."""

from __future__ import annotations

from rewright.claims.language import KINDS, READERS, Accesses, Definition


def define(kind: str, data: tuple[object, ...], operands: tuple[int, ...], accesses: Accesses, rank: int) -> Definition:
    """A term of a kind, with what that kind needs."""
    made = KINDS[kind]
    return Definition(made(*data, *((accesses,) if made in READERS else ())), operands, rank)
