"""Random numbers that are functions of a counter and a key, of which proofs know the name alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewright.ir.types import DType
from rewright.ops.facts import Facts, facts_between
from rewright.ops.functions.numerics import Array
from rewright.ops.functions.record import EVERYWHERE, Code, Operands, ScalarFunction, Values, laws

_KEYS = 0x9E3779B9, 0xBB67AE85
_FACTORS = 0xD2511F53, 0xCD9E8D57
_ROUNDS = 10
_BITS = np.uint64(32)
_MASK = np.uint64(0xFFFFFFFF)


def philox(*operands: Array) -> Array:
    """A word of Philox 4x32-10 for a counter of four words and a key of two; the last operand says which word.

    Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).
    """
    given = np.broadcast_arrays(*(np.asarray(x).astype(np.int64).astype(np.uint64) for x in operands))
    c0, c1, c2, c3, k0, k1 = (x & _MASK for x in given[:6])
    for _ in range(_ROUNDS):
        low, high = np.uint64(_FACTORS[0]) * c0, np.uint64(_FACTORS[1]) * c2
        c0, c1, c2, c3 = (high >> _BITS) ^ c1 ^ k0, high & _MASK, (low >> _BITS) ^ c3 ^ k1, low & _MASK
        k0, k1 = (k0 + np.uint64(_KEYS[0])) & _MASK, (k1 + np.uint64(_KEYS[1])) & _MASK
    word = given[6]
    found = np.where(word == 0, c0, np.where(word == 1, c1, np.where(word == 2, c2, c3)))
    return found.astype(np.asarray(operands[0]).dtype)


def _exact(*operands: int) -> int:
    return int(philox(*(np.array(int(x), np.int64) for x in operands)))


def _facts(_: Sequence[Facts], dtype: DType) -> Facts:
    return facts_between(0, (1 << 32) - 1, whole=True)


PHILOX = ScalarFunction(
    name="philox",
    operands=Operands(7, "number"),
    values=Values(philox, exact=_exact, digits=None, definition=None, jumps="zero"),
    facts=_facts,
    domain=EVERYWHERE,
    curve=None,
    laws=laws("finite", "exact", "opaque", "whole"),
    code=Code(None, None, torch=None, hlo=None, cost=100, infix=None),
)
