"""The proof of one piece of a plan, by the engine of ``refine`` or that of ``equiv``."""

from __future__ import annotations

import time

from rewright.equiv.engine import equiv
from rewright.equiv.pieces import Piece, why_not
from rewright.ir.graph import Graph
from rewright.optimize.proving.refusal import Late, NotComposed
from rewright.refine.engine import answer

LEMMA = 10.0
"""Seconds that the checker may take for one lemma of a piece."""
LEAST = 0.5
"""Seconds that each way of proving a piece gets that is tried."""


def prove_piece(left: Graph, right: Graph, seconds: float, lemmas: set[str]) -> Piece:
    """That two programs are equal; ``lemmas`` are the digests of those that the checker proved, to which it adds.

    Raises NotComposed where there is no proof, and Late where there may be one.
    """
    plain = Piece(left, right)
    until = time.process_time() + seconds

    def remaining(share: float = 1.0) -> float:
        return max((until - time.process_time()) * share, LEAST * share)

    alike = {"*": "Replicate()"} if left.inputs else None
    # Nothing is run here: kernels are, all together.
    found = answer(left, [right], alike, None, seconds, suggest=False, locate=False, rounds=False, runs="never")
    if found.status == "refuted":
        raise NotComposed(found.reason)
    if found.status == "proved" and why_not(Piece(left, right, found.certificate), lemmas, LEMMA) is None:
        return Piece(left, right, found.certificate)
    # Either may be the one that takes long for what the other one sees at once.
    if why_not(plain, lemmas, remaining(0.4)) is None:
        return plain
    other = equiv(left, right, budget=remaining(0.6), explain=False)
    if other.status == "proved":
        piece = Piece(left, right, other.certificate)
        if why_not(piece, lemmas, LEMMA) is None:
            return piece
    if time.process_time() < until and why_not(plain, lemmas, remaining()) is None:
        return plain
    if other.status == "unknown" and time.process_time() >= until:
        raise Late(f"{seconds:.1f} s found no proof")
    raise NotComposed(other.reason)
