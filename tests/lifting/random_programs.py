"""Random programs for one device or several, made of the moves of ``random_moves``."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.lifting.random_moves import (
    COLLECTIVES,
    SIZES,
    Move,
    Program,
    Refused,
    beside_infinity,
    binary,
    broadcast,
    collective,
    concatenate,
    gather,
    gather_rows,
    iota,
    kept_in_range,
    like,
    log_of_exponential,
    logical,
    masked_gather,
    masked_places,
    matrix_product,
    multiple,
    one_hot,
    overwrite,
    pad,
    quotient,
    rare,
    reduce,
    reshape,
    reverse,
    scaled,
    scatter,
    scatter_pairs,
    select,
    softmax,
    steep,
    test_of_integers,
    test_of_reals,
    transpose,
    unary,
    whole_numbers,
    window,
)

LAYOUT: tuple[Move, ...] = (reshape, transpose, window, concatenate, broadcast, reverse, pad)
REAL: tuple[Move, ...] = (unary, steep, binary, binary, quotient, scaled, like, log_of_exponential)
SUMS: tuple[Move, ...] = (reduce, reduce, softmax, matrix_product, matrix_product)
WHOLE: tuple[Move, ...] = (
    iota,
    whole_numbers,
    whole_numbers,
    test_of_integers,
    test_of_integers,
    logical,
    select,
    select,
    multiple,
    kept_in_range,
)
LOOKUPS: tuple[Move, ...] = (
    gather,
    gather_rows,
    masked_gather,
    masked_gather,
    one_hot,
    scatter,
    scatter_pairs,
)
OTHERS: tuple[Move, ...] = (rare, test_of_reals, masked_places, masked_places, beside_infinity)


def grow(p: Program, moves: Sequence[Move], count: int) -> None:
    """Make random moves; those that do not fit are passed over."""
    for _ in range(count):
        try:
            p.random.choice(moves)(p)
        except Refused:
            continue


def declare(p: Program, shards: bool = False) -> None:
    """Inputs of a few shapes, indices among them; on several ranks some of them are split."""
    for k, rank in enumerate((2, 2, 1, 3, 2)):
        shape = tuple(
            p.random.choice(SIZES[1:]) * (1 if not shards else p.random.choice([1, p.world])) for _ in range(rank)
        )
        p.input(f"x{k}", p.numbers.uniform(-1.5, 1.5, shape), _split(p, shape, shards))
    for k in range(2):
        shape = (p.random.choice([2, 3, 4, 6]),)
        p.input(f"ids{k}", p.numbers.integers(0, p.random.choice([3, 6]), shape), _split(p, shape, False))


def _split(p: Program, shape: tuple[int, ...], shards: bool) -> str:
    even = [a for a, n in enumerate(shape) if n % p.world == 0]
    return f"Shard({p.random.choice(even)})" if shards and even and p.random.random() < 0.7 else "Replicate()"


def sequential_program(seed: int, count: int = 25) -> Program:
    """A random program for one device."""
    p = Program(seed)
    declare(p)
    family = p.random.choice([REAL, WHOLE + LOOKUPS, WHOLE + LOOKUPS, SUMS, LAYOUT, OTHERS])
    moves = [*LAYOUT, *REAL, *SUMS, *WHOLE, *LOOKUPS, overwrite, *OTHERS, *family, *family, *family]
    grow(p, moves, count)
    return p


def ranks_program(seed: int, count: int = 20) -> tuple[Program, Program]:
    """A random program of several ranks, and one for one device over the same inputs, which starts like it."""
    world = Random(seed).choice([2, 2, 3])
    p = Program(seed, world)
    declare(p, shards=True)
    whole = Program(seed)
    for name, value in p.inputs.items():
        whole.input(name, value)
    before = len(p.types)
    family = p.random.choice([REAL, WHOLE + LOOKUPS, SUMS, LAYOUT])
    moves = [*LAYOUT, *REAL, *SUMS, *WHOLE, *LOOKUPS, *OTHERS, *family, *family]
    grow(p, [*moves, *[collective] * (len(moves) // 4)], count)
    mirror(p, whole, before)
    return whole, p


def mirror(ranks: Program, whole: Program, start: int) -> None:
    """What the ranks compute, without collectives and for one device, as far as the shapes allow."""
    place = {position: position for position in range(start)}
    for position in range(start, len(ranks.types)):
        node = ranks.builders[0].node(position)
        operands = [place.get(q) for q in node.operands]
        known = [q for q in operands if q is not None]
        if len(known) < len(operands):
            continue
        op = node.op
        if isinstance(op, COLLECTIVES):
            place[position] = known[0]
            continue
        try:
            place[position] = whole.add(op, *known)
        except Refused:
            continue
