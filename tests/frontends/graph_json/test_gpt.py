"""Captured GPTs of several degrees and depths against the sequential one, all outputs and no torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rewright.cli.main import run
from rewright.frontends.files import load
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.refine import refine
from rewright.refine.verdict import Verdict
from tests.frontends.graph_json.captures import Gpt, write


def programs(folder: Path, sizes: Gpt) -> tuple[Graph, RankProgram]:
    sequential = load(write(folder / "sequential", Gpt(1, sizes.layers).documents()))
    distributed = load(write(folder / "ranks", sizes.documents()))
    assert isinstance(sequential, Graph)
    assert isinstance(distributed, RankProgram)
    return sequential, distributed


def checked(folder: Path, sizes: Gpt) -> Verdict:
    sequential, distributed = programs(folder, sizes)
    return refine(sequential, distributed, relations=sizes.relations())


@pytest.mark.sample(3)
@pytest.mark.parametrize(("degree", "layers"), [(2, 1), (3, 1), (4, 2), (6, 1), (8, 2), (2, 4)])
def test_every_degree_and_depth_is_proved_with_all_outputs(tmp_path: Path, degree: int, layers: int) -> None:
    verdict = checked(tmp_path, Gpt(degree, layers))
    assert verdict.status == "proved", verdict.reason
    sequential, _ = programs(tmp_path, Gpt(degree, layers))
    assert set(verdict.relation) == set(sequential.outputs)
    assert all(relation.holds for relation in verdict.relation.values())


def test_what_a_proof_takes_for_granted_is_named(tmp_path: Path) -> None:
    assumptions = "\n".join(checked(tmp_path, Gpt(2)).assumptions)
    assert "constants whose values were not captured are zero: the one at" in assumptions
    assert "dropout masks are drawn alike" in assumptions
    assert "no index in tokens is negative" in assumptions


@pytest.mark.sample(2)
@pytest.mark.parametrize(("broken", "said"), [("epsilon", "0.001"), ("all_reduce", "nothing adds them up")])
def test_what_is_broken_is_found(tmp_path: Path, broken: str, said: str) -> None:
    verdict = checked(tmp_path, Gpt(2, broken=broken))
    assert verdict.status == "refuted"
    assert said in verdict.findings[0].message


def test_the_shards_of_heads_inside_of_a_flat_axis_are_told(tmp_path: Path) -> None:
    placements = {relation.placement for relation in checked(tmp_path, Gpt(2)).relation.values()}
    assert "_StridedShard(dim=0, sf=2)" in placements


def test_relations_are_inferred_where_shapes_suffice(tmp_path: Path) -> None:
    sequential, distributed = programs(tmp_path, Gpt(2))
    verdict = refine(sequential, distributed)
    assert verdict.status == "proved", verdict.reason
    assert any("relations of" in line for line in verdict.assumptions)


def test_the_command_line_takes_folders_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    programs(tmp_path, Gpt(2))
    table = "\n".join(f'"{name}" = "{placement}"' for name, placement in Gpt(2).relations().items())
    (tmp_path / "rel.toml").write_text(f"[relations]\n{table}\n")
    sequential, ranks = str(tmp_path / "sequential"), tmp_path / "ranks"
    relations = ["--relations", str(tmp_path / "rel.toml")]
    assert run(["refine", sequential, str(ranks), *relations]) == 0
    files = [str(ranks / f"r{rank}.json.gz") for rank in (1, 0)]
    assert run(["refine", f"{sequential}/r0.json.gz", *files, "--mesh", "tp=2", *relations]) == 0
    assert "PROVED" in capsys.readouterr().out
    assert run(["refine", sequential, files[0]]) == 3
    assert "rank 1 of 2 or more" in capsys.readouterr().err


def test_reading_unchecked_and_proving_imports_no_torch(tmp_path: Path) -> None:
    programs(tmp_path, Gpt(2))
    program = (
        "import sys, rewright\n"
        f"s, d = (rewright.load({str(tmp_path)!r} + '/' + n, validate=False) for n in ('sequential', 'ranks'))\n"
        "print(rewright.refine(s, d).status, 'torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["proved", "False"]
