"""How scalars and tiles are written in Gluon: as in Triton, with layouts where nothing else says them."""

from __future__ import annotations

import re

from rewright.optimize.printing.language import Language
from rewright.optimize.printing.triton import functions as triton


def as_gluon(text: str) -> str:
    """Text of Triton with the names of Gluon, which has the same functions, but not what to do about NaN."""
    return re.sub(r"\btl\.(?!PropagateNan)", "gl.", text).replace("@triton.jit", "@gluon.jit")


_ROWS = "gl.SliceLayout(1, L)"
FUNCTIONS = {name: as_gluon(text) for name, text in triton.FUNCTIONS.items()} | {
    # tiles and vectors that are changed in a loop: all are laid out as what products give
    "full": "gl.full([{0}, {1}], {2}, {type}, L)",
    "zeros": "gl.zeros([{0}, {1}], {type}, L)",
    "full_rows": f"gl.full([{{0}}], {{1}}, {{type}}, {_ROWS})",
    "zero_rows": f"gl.zeros([{{0}}], {{type}}, {_ROWS})",
    # products
    "dot": "multiply({0}, {1}, gl.zeros([BM, BN], gl.float32, L))",
    "add_dot": "multiply({0}, {1}, {2})",
    "as_left": "gl.convert_layout({0}, gl.DotOperandLayout(0, L, 2))",
    "as_shared": "as_shared(gl.set_auto_layout({0}, L))",
    "transposed": "{0}.permute((1, 0))",
    # rings
    "copy_tile": "copy_tile({0}, [{1}, {2}], {3}, {4}, STAGES)",
    "take_tile": "take_tile({0}, {1}, STAGES)",
    "release_tile": "release_tile({0}, {1}, STAGES)",
}
for _missing in ("accurate_zeros", "descriptor", "descriptor_load"):
    del FUNCTIONS[_missing]

LANGUAGE = Language(
    "Gluon",
    FUNCTIONS,
    {dtype: as_gluon(text) for dtype, text in triton.TYPES.items()},
    triton.LANGUAGE.literal,
    lambda load, place, guard: as_gluon(triton.LANGUAGE.load(load, place, guard)),
    advice="; use tiles without specialised warps",
)
