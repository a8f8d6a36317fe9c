"""Axes that were merged from two, of which ranks hold a part of the inner one."""

import numpy as np
import pytest

from rewright.blame.merged import merged_placements
from rewright.interp.placing import compare
from rewright.ir.placement import Mesh

SEQUENCES, HEADS, WIDTH = 4, 6, 3


@pytest.mark.parametrize(
    ("axes", "heads", "sequences"),
    [
        ((("tp", 2),), "tp", None),
        ((("tp", 3),), "tp", None),
        ((("dp", 2), ("tp", 3)), "tp", "dp"),
        ((("tp", 2), ("dp", 4)), "tp", "dp"),
        ((("pp", 2), ("tp", 2)), "tp", None),
    ],
)
def test_heads_and_sequences_in_one_axis(axes: tuple[tuple[str, int], ...], heads: str, sequences: str | None) -> None:
    mesh = Mesh(axes)
    value = np.arange(SEQUENCES * HEADS * WIDTH, dtype=np.float64).reshape(SEQUENCES, HEADS, WIDTH)
    held: list[np.ndarray] = []
    for rank in range(mesh.size):
        place = dict(zip((name for name, _ in axes), mesh.coordinates(rank), strict=True))
        part = np.split(value, dict(axes)[heads], axis=1)[place[heads]]
        if sequences is not None:
            part = np.split(part, dict(axes)[sequences], axis=0)[place[sequences]]
        held.append(part.reshape(-1, WIDTH))
    whole = value.reshape(-1, WIDTH)
    found = list(merged_placements(whole.shape, [part.shape for part in held], mesh))
    fitting = [p for p in found if not (worst := compare(whole, held, p, mesh)) or worst.is_rounding]
    assert [dict(zip(dict(axes), p.printed, strict=True))[heads] for p in fitting] == [f"StridedShard(0, {SEQUENCES})"]


@pytest.mark.parametrize(
    "shapes", [[(4, 3), (2, 3)], [(4, 2), (4, 2)], [(5, 3), (5, 3)], [(0, 3), (0, 3)], [(4,), (4,)]]
)
def test_other_shapes_are_no_such_part(shapes: list[tuple[int, ...]]) -> None:
    assert all(p.local_shape(0) == shapes[0] for p in merged_placements((8, 3), shapes, Mesh((("tp", 2),))))
