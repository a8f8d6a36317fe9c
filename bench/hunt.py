"""Random pairs of programs that differ by an edit, proved and then attacked: ``make hunt``.

First come rules over infinities and identities of bits, each evaluated on its own: none that is wrong may be proved.
A pair that is proved though an instance tells its sides apart is a hole in the prover. ``python -m bench.hunt PAIRS
[SEED]`` takes so many pairs of a seed, without one those of the fixed and of a fresh seed, half of them each. Pairs
come in blocks of 100, each of a seed of its own, so that a block is made again by ``python -m bench.hunt 100 SEED``.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.rules import test_infinities
from tests.rules.test_hunt import hunt

PAIRS = 10_000
RULES = 5000
BLOCK = 100
FIXED = 11


def _block(seed: int) -> tuple[int, int, list[str]]:
    return seed, *hunt(seed, BLOCK)


def special(seed: int, rules: int) -> list[str]:
    """Print how many rules over infinities and identities of bits are proved; the wrong ones among them."""
    proved, wrong = test_infinities.hunt(seed, rules)
    print(f"seed {seed}: {rules} rules over infinities, {proved} proved, {len(wrong)} of them wrong", flush=True)
    same, true, others = test_infinities.hunt_bits(seed, rules)
    shown = "".join(f"\n  {one}" for one in [*wrong, *others])
    print(
        f"seed {seed}: {rules} identities of bits, {true} of them true, {same} proved, {len(others)} wrongly{shown}",
        flush=True,
    )
    return [*wrong, *others]


def main(pairs: int, seed: int | None) -> int:
    """Print the count of every block and of all; 1 where a wrong pair was proved."""
    if seed is not None:
        seeds = [seed + block for block in range(pairs // BLOCK)]
    else:
        fresh = secrets.randbelow(2**31)
        seeds = [first + block for first in (FIXED, fresh) for block in range(pairs // BLOCK // 2)]
    proved, wrong = 0, special(seed if seed is not None else secrets.randbelow(2**31), RULES * pairs // PAIRS)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for number, (own, count, found) in enumerate(pool.map(_block, seeds), start=1):
            proved, wrong = proved + count, wrong + found
            shown = "".join(f"\n  {one}" for one in found)
            print(f"seed {own}: {number * BLOCK} pairs, {proved} proved, {len(wrong)} of them wrong{shown}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", nargs="?", type=int, default=PAIRS)
    parser.add_argument("seed", nargs="?", type=int)
    chosen = parser.parse_args()
    sys.exit(main(chosen.pairs, chosen.seed))
