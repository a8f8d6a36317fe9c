"""Tiles of Triton kernels: those to try, and the fastest, which is kept on disk so that it is searched for once."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from rewright.ir.errors import RewrightError
from rewright.optimize.kernel import Kernel
from rewright.optimize.scalars.expressions import unreduced_parts

DESCRIPTORS = 90
"""The least compute capability, times ten, of a device that reads tiles through descriptors by itself."""

SPECIALISED = (9, 10)
"""The generations of devices on which copies may have a warp of their own."""


@dataclass(frozen=True)
class Tiles:
    """Sizes of tiles of a kernel, powers of two, and how it goes through them."""

    rows: int
    lanes: int
    warps: int = 4
    stages: int = 2
    descriptors: bool = False
    """Whether tiles are read through tensor descriptors where they can be."""
    ahead: bool = False
    """Whether all that a tile reads is read so many stages ahead, and not its operands of products alone."""

    specialised: bool = False
    """Whether copies of tiles have a warp of their own, on devices of ``SPECIALISED``."""

    def constants(self, upcast: bool) -> dict[str, int | bool | None]:
        """What Triton is told about them."""
        ahead, sizes = self.stages if self.ahead else None, {"BM": self.rows, "BN": self.lanes}
        ways = {"DESCRIPTORS": self.descriptors, "AHEAD": ahead, "SPECIALISED": self.specialised}
        return {**sizes, "UPCAST": upcast, **ways}

    def gluon_constants(self) -> dict[str, int | bool | None]:
        """What Gluon is told about them."""
        return {"BM": self.rows, "BN": self.lanes, "STAGES": self.stages}

    def is_gluon(self, capability: int) -> bool:
        """Whether they are for a kernel in Gluon: Triton specialises warps by itself from Blackwell on."""
        return self.specialised and capability // 10 == 9


def tilings(kernel: Kernel, capability: int = DESCRIPTORS) -> list[Tiles]:
    """Tiles to try on a device, the one that is used without trying first."""
    lanes = max(s.lane.count for s in kernel.sweeps) if kernel.sweeps else 1
    if not kernel.has_products:
        wide = min(4096, max(16, 1 << (lanes - 1).bit_length()))
        return [Tiles(max(1, 1024 // wide), wide, 4), Tiles(1, wide, 8), Tiles(max(1, 2048 // wide), wide, 4)]
    if kernel.rows is None or kernel.rows.count <= 16:
        return [Tiles(16, 64, 4, 3), Tiles(16, 128, 4, 2), Tiles(16, 128, 8, 3), Tiles(16, 32, 2, 3)]
    sizes = [Tiles(64, 64, 4, 2), Tiles(128, 64, 8, 3), Tiles(128, 128, 8, 2), Tiles(64, 32, 4, 3)]
    ahead = [replace(sizes[0], ahead=True)]
    if capability < DESCRIPTORS:
        sizes += [Tiles(128, 64, 4, 3), Tiles(64, 128, 4, 2)]
    else:
        more = Tiles(64, 64, 4, 3), Tiles(64, 128, 4, 2), Tiles(64, 128, 4, 3), Tiles(128, 128, 8, 3)
        sizes += [replace(t, descriptors=True) for t in (*more, *sizes[1:3])]
        ahead += [replace(sizes[1], descriptors=True, ahead=True)]
    return [*sizes, *(ahead if _reads_more(kernel) else [])]


def specialised_tilings(kernel: Kernel, capability: int) -> list[Tiles]:
    """Tiles whose copies have a warp of their own; none of them is tried by itself, as none has run on a device yet."""
    if capability // 10 not in SPECIALISED or not kernel.has_products or kernel.rows is None or kernel.rows.count <= 16:
        return []
    sizes = Tiles(128, 64, 8, 3), Tiles(128, 128, 8, 2), Tiles(64, 64, 4, 3), Tiles(64, 128, 4, 2)
    return [replace(t, descriptors=True, specialised=True) for t in sizes]


def _reads_more(kernel: Kernel) -> bool:
    """Whether a tile reads something besides the operands of its products: statistics, biases, masks."""
    for sweep in kernel.sweeps:
        loads = {e.number for r in sweep.running for e in unreduced_parts(r.body) if e.op == "load"}
        items = {e.number for r in sweep.running if r.factors for e in unreduced_parts(r.factors[1]) if e.op == "load"}
        if loads - items:
            return True
    return False


def small_tiles(kernel: Kernel) -> Tiles:
    """Small tiles, so that small inputs have several."""
    return Tiles(16, 16) if kernel.has_products else Tiles(4, 16)


def known_tiles(kernel: Kernel, text: str, device: torch.device, folder: Path) -> tuple[Path, list[Tiles]]:
    """The file in a folder that has the fastest tiles of a kernel with this text on a device, and those to try."""
    choices = tilings(kernel, 10 * torch.cuda.get_device_capability(device)[0])
    name = torch.cuda.get_device_name(device)
    known = [text, name, importlib.import_module("triton").__version__, *map(str, choices)]
    key = hashlib.sha256("\0".join(known).encode()).hexdigest()[:32]
    return folder / f"{key}.tiles.json", choices


def recalled(path: Path, choices: Sequence[Tiles]) -> Tiles | None:
    """The choice that a file holds; None where it holds none of them."""
    try:
        stored = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return next((tiles for tiles in choices if asdict(tiles) == stored), None)


def recall_or_measure(path: Path, choices: Sequence[Tiles], measure: Callable[[], Tiles]) -> Tiles:
    """The choice that a file holds; where it holds none of the choices, the one that is measured, and kept in it."""
    found = recalled(path, choices)
    if found is None:
        found = measure()
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(asdict(found)))
        os.replace(partial, path)
    return found


def fastest(name: str, choices: Sequence[Tiles], run: Callable[[Tiles], None]) -> Tiles:
    """The fastest tiles; those that do not compile or do not fit are passed over."""
    do_bench = importlib.import_module("triton.testing").do_bench
    found: list[tuple[float, int]] = []
    for number, tiles in enumerate(choices):
        try:
            run(tiles)
            found.append((float(do_bench(lambda t=tiles: run(t), warmup=5, rep=20)), number))
        except Exception:  # the compiler's errors have no common class
            continue
    if not found:
        raise RewrightError(f"no tiling of {name} compiles; use target='cpu'")
    return choices[min(found)[1]]
