"""Score injected bugs: ``make mutants``, or ``python -m bench.mutants [NAME ..]``.

``--record FILE`` keeps what was judged, one line of JSON for each mutant, and a later run judges only what the file
does not have; with ``--seconds`` a run stops there, and the table is about all of the file.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.mutants.score import Record, fill, main

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("names", nargs="*", help="patterns of the programs to score; all of them by default")
parser.add_argument("--per-kind", default=5, type=int, help="mutants of each kind for each program")
parser.add_argument("--seed", default=0, type=int, help="which mutants are drawn")
parser.add_argument("--record", type=Path, help="file to keep what was judged in, and to go on from")
parser.add_argument("--seconds", type=float, help="stop after so many, with what was judged by then")
options = parser.parse_args()
kept = Record(options.record)
if not fill(kept, options.names, options.per_kind, options.seed, options.seconds):
    print("the time ran out; run again with the same --record", file=sys.stderr)
sys.exit(main(kept))
