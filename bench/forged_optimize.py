"""Certificates of ``optimize`` forged for wrong programs: ``make forged-optimize``.

Every forgery is a true certificate with some entries changed, or a true one beside a program that computes something
else, sealed anew with the digests of the programs that it is shown for. None may be accepted.
``python -m bench.forged_optimize COUNT [SEED]``.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.optimize.forgeries import accepted, forgeries

COUNT = 500


def main(count: int, seed: int) -> int:
    """Print what was forged, and what was accepted; 1 where anything was."""
    made: Counter[str] = Counter()
    wrong: list[str] = []
    for forgery in forgeries(count, seed):
        made[forgery.kind] += 1
        if accepted(forgery):
            wrong.append(f"{forgery.program}: {forgery.kind}: {forgery.what}")
    for kind, number in sorted(made.items()):
        print(f"{number:6} {kind}")
    print(f"{sum(made.values())} forged certificates, {len(wrong)} accepted")
    for line in wrong:
        print(f"  {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=COUNT)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    chosen = parser.parse_args()
    sys.exit(main(chosen.count, chosen.seed))
