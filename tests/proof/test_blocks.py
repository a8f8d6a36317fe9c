"""Relations that are no placements: every box of a rank's tensor is a window of a sequential input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram
from rewright.proof.certificate import Certificate
from rewright.proof.checker import Refused, audit
from rewright.refine import refine
from tests.programs import Builder


def program(length: int) -> Graph:
    build = Builder("tanh")
    build.output("y", build.add(ops.Tanh(), build.tensor("x", (length, 2))))
    return build.build()


SEQUENTIAL, RANKS = program(6), RankProgram((program(3), program(3)), Mesh.of({"tp": 2}), {}, {})


def certified() -> Certificate:
    found = refine(SEQUENTIAL, RANKS, {"x": "concat([x@0, x@1], axis=0)"})
    assert found.status == "proved"
    assert found.certificate is not None
    return found.certificate


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rank": 2}, "does not exist"),
        ({"rank": -1}, "does not exist"),
        ({"held": "z"}, "does not exist"),
        ({"name": "z"}, "speaks of what does not exist"),
        ({"order": (0, 0)}, "speaks of what does not exist"),
        ({"window": ((4, 3), (0, 2))}, "does not fit"),
        ({"box": ((0, 4), (0, 2))}, "does not fit"),
        ({"window": ((1, 3), (0, 2))}, "does not follow"),
        ({"box": ((0, 2), (0, 2)), "window": ((0, 2), (0, 2))}, "leave a part of it open"),
    ],
)
def test_a_block_is_what_the_rank_holds(changes: dict[str, Any], says: str) -> None:
    certificate = certified()
    block, *others = certificate.blocks
    with pytest.raises(Refused, match=says):
        audit(replace(certificate, blocks=(replace(block, **changes), *others)), SEQUENTIAL, RANKS)


def test_blocks_survive_a_file(tmp_path: Path) -> None:
    certificate = certified()
    certificate.save(tmp_path / "proof.json")
    read = Certificate.load(tmp_path / "proof.json")
    assert read.blocks == certificate.blocks
    audit(read, SEQUENTIAL, RANKS)
