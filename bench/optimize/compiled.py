"""What Triton's compiler makes of kernels for a GPU that need not be there: ``python -m bench.optimize.compiled``."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

import rewright as rw
from bench.optimize.programs import eviction
from bench.optimize.templates import compile_template, flex_template
from bench.tables import print_table
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.proving.rewriting import rewritten
from rewright.optimize.running.triton_launch import compile_kernel
from rewright.optimize.running.triton_tuning import Tiles, specialised_tilings, tilings

MATRIX = ("wgmma.mma_async", "mma.sync", "tcgen05.mma")
HEADER = (
    "module",
    "kernel",
    "rows",
    "lanes",
    "warps",
    "stages",
    "reads by",
    "registers",
    "spilled",
    "shared",
    "products",
    "exponentials",
    "instructions",
)


def main() -> None:
    """Print one row for each kernel and each of the tiles that are tried on a device."""
    options = _options()
    length, heads = options.length, options.heads
    print(f"sm_{options.capability}, S = {length}, {heads} heads of {options.width}, float16")
    print("bytes that a thread spills, bytes that a block shares, and products on the matrix units\n")

    spilled: list[bool] = []

    def rows() -> Iterator[Sequence[object]]:
        for name in options.modules:
            given = eviction.inputs(name, length, heads, options.width, torch.float16, "meta", 1.0)
            plan = rewritten(Planner(prepare_graph(rw.capture(eviction.MODULES[name], given))).plan()).plan
            for kernel in plan.kernels:
                for tiles in (*tilings(kernel, options.capability), *specialised_tilings(kernel, options.capability)):
                    row = name, kernel.name, *_row(plan, kernel, options.capability, tiles)
                    spilled.append(row[HEADER.index("spilled")] not in (0, ""))
                    yield row
            if name in eviction.FLEX:
                yield name, "FlexAttention's", *_flex_row(name, given, options.capability)

    print_table(HEADER, rows())
    print(f"\nspilled in {sum(spilled)} of {len(spilled)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", nargs="+", default=list(eviction.MODULES), choices=list(eviction.MODULES))
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--capability", type=int, default=90, help="of the GPU, times ten")
    return parser.parse_args()


def _row(plan: Any, kernel: Any, capability: int, tiles: Tiles) -> Sequence[object]:
    known = ("descriptors", tiles.descriptors), ("all ahead", tiles.ahead), ("a warp of its own", tiles.specialised)
    ways = [word for word, is_so in known if is_so]
    sizes = tiles.rows, tiles.lanes, tiles.warps, tiles.stages, ", ".join(ways) or "pointers"
    try:
        made = compile_kernel(plan, kernel, capability, tiles)
    except Exception as error:  # the compiler's errors have no common class
        return *sizes, type(error).__name__, *[""] * 5
    return *sizes, *_counts(made)


def _flex_row(name: str, given: Sequence[torch.Tensor], capability: int) -> Sequence[object]:
    batch, length, heads, width = given[0].shape
    settings = eviction.flex_settings(name, length, torch.device("cpu"))
    template = flex_template(settings, (batch, heads, length, width), capability)
    tiles = template.tiles
    counts = _counts(compile_template(template, capability))
    return tiles.rows, tiles.lanes, tiles.warps, tiles.stages, "pointers", *counts


def _counts(made: Any) -> Sequence[object]:
    """What is counted of a compiled kernel."""
    usage, code = (_printed(made.asm["cubin"], way) for way in ("-res-usage", "-sass"))
    registers, stack = re.findall(r"REG:(\d+) STACK:(\d+)", usage)[-1]
    products = sum(made.asm["ptx"].count(word) for word in MATRIX)
    instructions = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+([^;]*)", code, re.MULTILINE)
    exponentials = sum("MUFU.EX2" in one for one in instructions)
    useful = sum("NOP" not in one for one in instructions)
    return int(registers), int(stack), made.metadata.shared, products, exponentials, useful


def _printed(cubin: bytes, way: str) -> str:
    """What CUDA's tool prints of a kernel."""
    folder = Path(importlib.import_module("triton").__file__ or "").parent / "backends" / "nvidia" / "bin"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command, paths = [folder / "cuobjdump", way, file.name], f"{folder}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, "PATH": paths}
        ).stdout


if __name__ == "__main__":
    main()
