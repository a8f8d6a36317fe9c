"""Gluon on the CPU, as far as printed kernels use it: partitions as threads, copies that take their time.

A copy is done by a thread of its own after a random while, and a place that was released holds NaN until the next copy
ends. So a barrier that is missing shows as a wrong value, and one that nobody signals as a ``TimeoutError``.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import torch

PATIENCE = 200
"""Tenths of a second after which a barrier that is not signalled counts as a deadlock."""


@dataclass(frozen=True)
class Pointer:
    """Elements of a flat tensor by place."""

    memory: torch.Tensor
    place: Any = 0

    def __add__(self, places: Any) -> Pointer:
        return replace(self, place=self.place + places)


@dataclass
class Barrier:
    """An mbarrier for one arrival a phase, which is over once the bytes that were announced have come, too."""

    failed: list[Exception]
    """What another partition has raised."""
    phase: int = 0
    pending: int = 1
    expected: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def arrive(self, pending: int = 0, expected: int = 0) -> None:
        with self.changed:
            self.pending -= pending
            self.expected += expected
            assert self.pending >= 0, "more arrivals in a phase than its barrier counts"
            if self.pending == 0 and self.expected == 0:
                self.phase, self.pending = self.phase + 1, 1
                self.changed.notify_all()

    def wait(self, parity: int) -> None:
        with self.changed:
            for _ in range(PATIENCE):
                if self.changed.wait_for(lambda: self.phase % 2 != parity, 0.1):
                    return
                if self.failed:
                    break
            raise TimeoutError("a barrier is not signalled")


@dataclass
class Place:
    """A tile in shared memory."""

    tile: torch.Tensor

    def permute(self, order: Sequence[int]) -> Place:
        return Place(self.tile.permute(*order))


@dataclass
class Tiles:
    """A tensor descriptor: a matrix in memory, read in blocks, with zeros beyond its edges."""

    pointer: Pointer
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: list[int]
    layout: object
    dtype: torch.dtype
    block_type: Any = None

    def __post_init__(self) -> None:
        self.block_type = SimpleNamespace(nbytes=torch.Size(self.block_shape).numel() * self.dtype.itemsize)

    def read(self, start: Sequence[int]) -> torch.Tensor:
        indices = [s + torch.arange(n) for s, n in zip(start, self.block_shape, strict=True)]
        inside = (indices[0] < self.shape[0])[:, None] & (indices[1] < self.shape[1])[None, :]
        places = self.pointer.place + self.strides[0] * indices[0][:, None] + self.strides[1] * indices[1][None, :]
        return torch.where(inside, self.pointer.memory[torch.where(inside, places, 0)], 0)


@dataclass
class Emulator:
    """One block of a kernel."""

    program: int = 0
    seed: int = 0
    releases: dict[int, Place] = field(default_factory=dict[int, Place])
    """By the barrier that says that a place is free, the place."""
    failed: list[Exception] = field(default_factory=list[Exception])

    def run(self, text: str, name: str, tensors: Sequence[torch.Tensor], **constants: int) -> None:
        """Run the kernel of a module for this program id; tensors are changed in place."""
        space: dict[str, Any] = self.modules()
        body = text[text.index("\nload_tile = ") :]
        exec(compile(f"from __future__ import annotations\n{body}", "<gluon>", "exec"), space)
        space[name](*(Pointer(t.view(-1)) for t in tensors), **constants)

    def modules(self) -> dict[str, Any]:
        """What a printed module imports."""
        number = itertools.count(self.seed)
        mbarrier = SimpleNamespace(
            MBarrierLayout=lambda: "barrier",
            init=lambda barrier, count: None,
            wait=lambda barrier, parity: barrier.wait(parity),
            expect=lambda barrier, count: barrier.arrive(pending=1, expected=count),
            arrive=self.release,
        )
        tma = SimpleNamespace(
            make_tensor_descriptor=lambda pointer, shape, strides, block, layout: Tiles(
                pointer, shape, strides, block, layout, pointer.memory.dtype
            ),
            async_load=lambda tiles, start, barrier, place: self.start(
                _copy, tiles, list(start), barrier, place, next(number)
            ),
        )
        return {
            "gl": self.language(),
            "gluon": SimpleNamespace(jit=lambda f: f),
            "mbarrier": mbarrier,
            "tma": tma,
            "fence_async_shared": lambda: None,
            "warpgroup_mma": _multiply,
            "warpgroup_mma_wait": lambda count, deps: deps[0],
        }

    def release(self, barrier: Barrier) -> None:
        """Signal that a place was read: from now on it holds nothing."""
        self.releases[id(barrier)].tile.fill_(float("nan"))
        barrier.arrive(pending=1)

    def allocate(self, dtype: torch.dtype, shape: Sequence[int], layout: object, value: Any = None) -> Any:
        """Shared memory: a ring of places or of barriers, or one place for a tile."""
        if layout == "barrier":
            return Ring([Barrier(self.failed) for _ in range(shape[0])])
        if value is not None:
            return Place(value.clone())
        return Ring([Place(torch.full(tuple(shape[1:]), float("nan"), dtype=dtype)) for _ in range(shape[0])])

    def specialise(self, functions: Sequence[tuple[Callable[..., None], Sequence[Any]]], *_: object) -> None:
        """Run partitions side by side; raises what one of them raises."""
        for _function, given in functions:
            for places, _full, free in (a for a in given if isinstance(a, tuple) and isinstance(a[0], Ring)):
                self.releases |= {id(f): p for p, f in zip(places.items, free.items, strict=True)}
        threads = [self.start(function, *given) for function, given in functions]
        for thread in threads:
            thread.join()
        if self.failed:
            raise self.failed[0]

    def start(self, function: Callable[..., None], *given: Any) -> threading.Thread:
        """Start a thread whose errors are kept."""

        def guarded() -> None:
            try:
                function(*given)
            except Exception as error:
                self.failed.append(error)

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        return thread

    def language(self) -> Any:
        """The functions of tiles."""
        return SimpleNamespace(
            constexpr=int,
            **{name: getattr(torch, name) for name in ("float16", "bfloat16", "float32", "int32", "int64")},
            int1=torch.bool,
            arange=torch.arange,
            program_id=lambda axis: self.program,
            num_warps=lambda: 4,
            static_range=range,
            NVMMADistributedLayout=lambda *parts: parts,
            NVMMASharedLayout=SimpleNamespace(get_default_for=lambda shape, dtype: (shape, dtype)),
            SliceLayout=lambda axis, layout: (axis, layout),
            DotOperandLayout=lambda *parts: parts,
            convert_layout=lambda tile, layout: tile,
            set_auto_layout=lambda tile, layout: tile,
            allocate_shared_memory=self.allocate,
            warp_specialize=self.specialise,
            full=lambda shape, value, dtype, layout: torch.full(tuple(shape), value, dtype=dtype),
            zeros=lambda shape, dtype, layout: torch.zeros(tuple(shape), dtype=dtype),
            zeros_like=torch.zeros_like,
            cast=lambda tile, dtype: torch.as_tensor(tile).to(dtype),
            load=_load,
            store=_store,
            where=torch.where,
            **{name: getattr(torch, name) for name in ("abs", "exp", "exp2", "log", "log2", "sqrt")},
            maximum=_extremum(max, torch.maximum),
            minimum=_extremum(min, torch.minimum),
            max=lambda tile, axis: tile.amax(axis),
            min=lambda tile, axis: tile.amin(axis),
            sum=lambda tile, axis: tile.sum(axis),
        )


@dataclass(frozen=True)
class Ring:
    """Places, or barriers, by number."""

    items: list[Any]

    def index(self, place: int) -> Any:
        return self.items[place]


def _copy(tiles: Tiles, start: list[int], barrier: Barrier, place: Place, seed: int) -> None:
    time.sleep(random.Random(seed).random() * 0.003)
    assert place.tile.isnan().all(), "a tile is copied to a place that is not free"
    place.tile.copy_(tiles.read(start))
    barrier.arrive(expected=-tiles.block_type.nbytes)


def _multiply(left: Any, right: Place, total: torch.Tensor, is_async: bool) -> torch.Tensor:
    tile = left.tile if isinstance(left, Place) else left
    assert tile.dtype == right.tile.dtype and total.dtype == torch.float32
    return total + tile.float() @ right.tile.float()


def _load(pointer: Pointer, mask: Any = None, other: float = 0) -> torch.Tensor:
    if mask is None:
        return pointer.memory[pointer.place]
    places, inside = torch.broadcast_tensors(pointer.place, torch.as_tensor(mask))
    return torch.where(inside, pointer.memory[torch.where(inside, places, 0)], other)


def _store(pointer: Pointer, value: torch.Tensor, mask: Any = None) -> None:
    places, values, inside = torch.broadcast_tensors(
        pointer.place, value, torch.as_tensor(True if mask is None else mask)
    )
    pointer.memory[places[inside]] = values[inside]


def _extremum(plain: Callable[..., Any], tiles: Callable[..., Any]) -> Callable[..., Any]:
    def found(a: Any, b: Any) -> Any:
        if not isinstance(a, torch.Tensor) and not isinstance(b, torch.Tensor):
            return plain(a, b)
        return tiles(*torch.broadcast_tensors(torch.as_tensor(a), torch.as_tensor(b)))

    return found
