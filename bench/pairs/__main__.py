"""One table of all pairs: ``make pairs``, or ``python -m bench.pairs [--peer PEER] [--mutants, --second] [FAMILY ..]``.

With ``--second`` another model of each family, of other sizes, is compared after the first one: how many rules either
asked for, how many of them are proved for all sizes, and how many of the second were not known from the first.
With ``--mutants`` the other package gets a configuration of which one field was changed, one row for each; the weights
stay. A row that is not refuted is a bug of the prover, unless the field changes nothing.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import rewright as rw
from bench.pairs.families import SETTINGS
from bench.pairs.reference import Pair
from bench.tables import print_table
from rewright.equiv import Prover
from rewright.equiv.lemmas.synthesised import FOR_ALL_SIZES
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph

PEERS = ("vllm", "vllm_ranks", "torchtitan", "timm")
COLUMNS = ["family", "peer", "changed", "nodes", "difference", "status", "evidence", "lemmas", "capture s", "prove s"]
COLUMNS += ["reason"]


def row(peer: Any, name: str, changed: Mapping[str, Any] | None) -> list[object]:
    """One row of the table."""
    head: list[object] = [name, peer.__name__.rpartition(".")[2], _text(changed)]
    try:
        pair: Pair = peer.pair(name, changed)
        start = time.perf_counter()
        verdict = rw.equiv(pair.left, pair.right, pair.values)
        seconds = time.perf_counter() - start
    except Exception as error:  # packages fail in their own ways, and the other rows are of interest
        kind = "" if isinstance(error, RewrightError) else f"{type(error).__name__}: "
        return [*head, "", "", "error", "", "", "", "", (kind + str(error).partition("\n")[0]).replace("|", "/")]
    graphs = [pair.left, *([pair.right] if isinstance(pair.right, Graph) else pair.right.graphs)]
    nodes = "/".join(str(len(graph.nodes)) for graph in graphs)
    told = verdict.reason if verdict.status == "unknown" else ""
    if verdict.status == "refuted" and verdict.findings:
        told = f"{verdict.findings[0].kind}: {verdict.findings[0].message}"
    apart = "" if pair.difference is None else f"{pair.difference:.0e}"
    found = [nodes, apart, verdict.status, str(verdict.evidence), len(verdict.lemmas)]
    return [*head, *found, pair.seconds, seconds, told.replace("|", "/")]


def _text(changed: Mapping[str, Any] | None) -> str:
    return "" if changed is None else json.dumps(dict(changed)).strip("{}").replace('"', "")


def rows(peers: Sequence[str], names: Sequence[str], *, mutants: bool) -> Iterator[list[object]]:
    """All rows, as they are measured."""
    for peer in peers:
        module = importlib.import_module(f"bench.pairs.{peer}")
        for name, changes in module.PAIRS.items():
            if not names or name in names:
                for changed in changes if mutants else (None,):
                    yield row(module, name, changed)


SECOND = ["family", "status", "rules", "for all sizes", "second model", "rules", "new", "prove s", "second s"]


def second(names: Sequence[str]) -> Iterator[list[object]]:
    """Two models of each family, the rules of the first being known when the second is compared."""
    module = importlib.import_module("bench.pairs.vllm")
    for name in module.PAIRS:
        if names and name not in names:
            continue
        prover = Prover()
        cells, seconds = list[object](), list[object]()
        for pair in (module.pair(name, None), module.second(name)):
            start = time.perf_counter()
            verdict = rw.equiv(pair.left, pair.right, pair.values, prover=prover)
            seconds.append(time.perf_counter() - start)
            new = [rule for rule in verdict.rules if not rule.earlier]
            general = sum(rule.evidence == FOR_ALL_SIZES for rule in verdict.rules)
            cells += [verdict.status, len(verdict.rules), len(new) if cells else general]
        yield [name, *cells, *seconds]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--peer", action="append", choices=PEERS)
    parser.add_argument("--mutants", action="store_true")
    parser.add_argument("--second", action="store_true")
    options = parser.parse_args()
    os.environ.update(SETTINGS)
    if options.second:
        print_table(SECOND, second(options.families))
        raise SystemExit
    print_table(COLUMNS, rows(options.peer or PEERS, options.families, mutants=options.mutants))
