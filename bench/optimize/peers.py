"""By whom a program is computed: eager PyTorch, Inductor, PyTorch's own kernels of attention, and ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from bench.optimize import ours
from bench.optimize.notes import Notes
from bench.optimize.program import Built, Function
from rewright.optimize.api import Optimized

ALONE, FLOOR = "rewright", "rewright, floor"
OTHERS = ("eager", "inductor", "sdpa", "flex")
PEERS = (*OTHERS, ALONE, FLOOR)


_MAKERS: Mapping[str, Callable[[Built], Function | None]] = {
    "eager": lambda built: built.function,
    "inductor": lambda built: torch.compile(built.function, dynamic=False),
    "sdpa": lambda built: built.sdpa() if built.sdpa is not None else None,
    "flex": lambda built: built.flex() if built.flex is not None else None,
    ALONE: ours.kernels_alone,
    FLOOR: ours.with_floor,
}


def functions(notes: Notes, built: Built, peers: Sequence[str]) -> dict[str, Function]:
    """The program by each peer that has a form of it, called once; who fails is noted with the error."""
    found: dict[str, Function] = {}
    for peer in peers:
        notes.doing(f"the first call of {peer}")
        cpu, wall = time.process_time(), time.monotonic()
        try:
            function = _MAKERS[peer](built)
            if isinstance(function, Optimized):
                _note(notes, peer, function, cpu, only=ALONE not in peers)
            if function is None or (peer == ALONE and function.runner is None):
                continue
            _, why = ours.called(function, built.args)
            if why:
                notes.know(failed={peer: f"the program itself runs: {why}"})
                continue
        except Exception as error:  # whatever a peer raises, the others are measured
            notes.know(failed={peer: f"{type(error).__name__}: {_first_line(error)}"})
            continue
        notes.know(first={peer: time.monotonic() - wall})
        found[peer] = function
    return found


def _note(notes: Notes, peer: str, found: Optimized, cpu: float, *, only: bool) -> None:
    """Note what is known of a program by us: of the plan from the kernels alone, unless the floor is all there is."""
    if peer == ALONE or only:
        notes.know(**ours.facts(found, cpu))
    if peer == FLOOR:
        notes.know(floor=ours.floor_facts(found))


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "")[:200]


def call(function: Function, args: Sequence[Any]) -> Callable[[], Any]:
    """A call of the function with these arguments."""
    return lambda: function(*args)
