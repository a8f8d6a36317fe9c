"""Seconds from files to verdict for programs that others captured: ``make bench-captured``.

Every program is proved by a process of its own, started as a user would start it; the time is that of the whole
process. ``python -m bench.captured FOLDER`` takes the folder of captures (``gpt/paral2_layer1`` and so on); without it
captures of the same kinds are written to a temporary folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.tables import print_table
from tests.frontends.graph_json.captures import Gpt, write
from tests.frontends.hlo import modules

HEADER = ["program", "ranks", "nodes", "rank nodes", "outputs", "status", "seconds", "torch"]
_PROGRAM = """
import json, sys, tomllib
import rewright
sequential, distributed, relations = sys.argv[1:]
table = tomllib.loads(open(relations).read()).get("relations", {})
verdict = rewright.refine(rewright.load(sequential), rewright.load(distributed), relations=table)
stats = verdict.stats
print(json.dumps([stats.ranks, stats.sequential_nodes, stats.rank_nodes, len(verdict.relation), verdict.status,
                  "torch" in sys.modules]))
"""


@dataclass(frozen=True)
class Case:
    """One program: its files and the relations of its inputs."""

    name: str
    sequential: Path
    distributed: Path
    relations: dict[str, str | list[str]]


def measure(case: Case, folder: Path) -> list[object]:
    """One row of the table."""
    relations = folder / "relations.toml"
    lines = (f"{json.dumps(name)} = {json.dumps(what)}" for name, what in case.relations.items())
    relations.write_text("[relations]\n" + "\n".join(lines) + "\n")
    command = [sys.executable, "-c", _PROGRAM, str(case.sequential), str(case.distributed), str(relations)]
    start = time.perf_counter()
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if run.returncode:
        return [case.name, "failed", run.stderr.strip().splitlines()[-1], *[""] * 5]
    ranks, nodes, rank_nodes, outputs, status, torch = json.loads(run.stdout)
    return [case.name, ranks, f"{nodes:,}", f"{rank_nodes:,}", outputs, status, seconds, "imported" if torch else "no"]


def published(folder: Path) -> Iterator[Case]:
    """The programs of a folder of captures, related as its README says."""
    for family, plain, placed in (("gpt", "paral", gpt), ("qwen2", "paral", qwen2), ("aws_llama", "tp", llama)):
        for path in sorted((folder / family).glob(f"{plain}*_layer*")):
            degree, layers = (int(part) for part in path.name.removeprefix(plain).split("_layer"))
            sequential = path.with_name(f"{plain}1_layer{layers}")
            if degree > 1 and sequential.is_dir():
                yield Case(f"{family}/{path.name}", sequential, path, placed(degree, layers))
                if (path / "module.hlo.pb").is_file():
                    files = sequential / "module.hlo.pb", path / "module.hlo.pb"
                    yield Case(f"{family}/{path.name} (HLO)", *files, placed(degree, layers))


def gpt(degree: int, layers: int) -> dict[str, str | list[str]]:
    """Placeholders by number: the embedding, the first norm, twelve a layer, the rest."""
    layer = ["0", "0", "1", "", "", "", "0", "0", "1", "", "", ""]
    axes = ["0", "", "", *(layer * layers), "0", *[""] * 6]
    return {f"primals_{k + 1}": f"Shard({axis})" if axis else "Replicate()" for k, axis in enumerate(axes)}


def qwen2(degree: int, layers: int) -> dict[str, str | list[str]]:
    """Queries by head, keys and values by key head; ranks may share one."""
    heads, keys, size, wide = 12, 2, 128, 8960
    own, kept, copies = heads // degree * size, max(keys // degree, 1) * size, max(degree // keys, 1)

    def rows(name: str, rest: str) -> list[str]:
        parts = {
            low: [f"{name}@{rank}[{low}:{high}{rest}]" for rank in range(degree)]
            for low, high in ((0, own), (own, own + kept), (own + kept, own + 2 * kept))
        }
        query, key, value = parts.values()
        return [f"concat([{', '.join([*query, *key[k::copies], *value[k::copies]])}], axis=0)" for k in range(copies)]

    half = wide // degree
    gates = [f"arg9_1@{r}[{k * half}:{(k + 1) * half}, :]" for k in range(2) for r in range(degree)]
    found: dict[str, str | list[str]] = {f"arg{k}_1": "Replicate()" for k in (0, 2, 5, 6, 8, 11)}
    found |= {"arg1_1": "Shard(0)", "arg7_1": "Shard(1)", "arg10_1": "Shard(1)"}
    found |= {"arg3_1": rows("arg3_1", ""), "arg4_1": rows("arg4_1", ", :")}
    return found | {"arg9_1": f"concat([{', '.join(gates)}], axis=0)"}


def llama(degree: int, layers: int) -> dict[str, str | list[str]]:
    """Parameters in order: states, two caches a layer, seven weights a layer, the last norm, the head."""
    query, key = 2048 // degree, 512 // degree
    texts: list[str] = [*["Replicate()"] * 6, *["Shard(2)"] * (2 * layers)]
    for _ in range(layers):
        name = f"p{len(texts) + 1}.{len(texts) + 2}"
        columns = ((0, query), (query, query + key), (query + key, query + 2 * key))
        parts = [f"{name}@{rank}[:, {low}:{high}]" for low, high in columns for rank in range(degree)]
        texts += ["Replicate()", f"concat([{', '.join(parts)}], axis=1)", "Shard(1)", "Replicate()", *["Shard(1)"] * 3]
    texts += ["Replicate()", "Shard(1)"]
    return {f"p{k}.{k + 1}": text for k, text in enumerate(texts)}


def written(folder: Path) -> Iterator[Case]:
    """Captures of the same kinds, at tiny sizes."""
    for degree, layers in ((2, 1), (8, 1), (2, 8), (8, 8)):
        sequential = write(folder / f"gpt1_{layers}", Gpt(1, layers).documents())
        distributed = write(folder / f"gpt{degree}_{layers}", Gpt(degree, layers).documents())
        yield Case(f"gpt, {layers} layers", sequential, distributed, dict(Gpt(degree, layers).relations()))
    for degree, layers in ((2, 1), (2, 8)):
        files = [folder / f"llama{count}_{layers}.hlo" for count in (1, degree)]
        for file, count in zip(files, (1, degree), strict=True):
            file.write_text(modules.llama(count, layers))
        yield Case(f"llama (HLO text), {layers} layers", *files, dict(modules.relations(degree, layers)))


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = published(Path(arguments[0])) if arguments else written(folder)
        print_table(HEADER, (measure(case, folder) for case in cases))


if __name__ == "__main__":
    main(sys.argv[1:])
