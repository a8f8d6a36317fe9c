"""One program by all peers: times in turns, then errors against float64 at two scales of the inputs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from bench.optimize import ours, outputs
from bench.optimize.clock import device_to_itself, in_turns
from bench.optimize.notes import Notes
from bench.optimize.peers import ALONE, FLOOR, call, functions
from bench.optimize.program import Function, Program, Size

SCALES = (1.0, 30.0)


@dataclass(frozen=True)
class Wanted:
    """How a program is measured: its dtype and sizes, by whom, how often, and in how many seconds."""

    dtype: torch.dtype
    size: Size
    peers: Sequence[str]
    rounds: int
    seconds: float
    device: str = "cpu"


def measure(notes: Notes, program: Program, wanted: Wanted) -> None:
    """Note times and errors of one program."""
    ends = time.monotonic() + wanted.seconds
    notes.doing("making the program")
    with torch.no_grad():
        built = program.build(1.0, wanted.dtype, wanted.size, wanted.device)
        found = functions(notes, built, wanted.peers)
        calls = {peer: call(function, built.args) for peer, function in found.items()}
        notes.doing("waiting for the device")
        with device_to_itself(wanted.device):
            seconds = 0.5 * max(ends - time.monotonic(), 0.0)
            notes.know(times=in_turns(calls, wanted.rounds, seconds, before=lambda p: notes.doing(f"a call of {p}")))
        for scale in SCALES:
            _errors(notes, program, wanted, scale, found)
    notes.doing("the end")


def _errors(notes: Notes, program: Program, wanted: Wanted, scale: float, found: Mapping[str, Function]) -> None:
    """Note errors of eager and of ours, which were made for inputs of scale one."""
    notes.doing(f"float64 at scale {scale:g}")
    built = program.build(scale, wanted.dtype, wanted.size, wanted.device)
    double = outputs.in_double(built)
    exact = outputs.tensors(double.function(*double.args))
    for peer in ("eager", ALONE, FLOOR):
        if peer in found:
            notes.doing(f"a call of {peer} at scale {scale:g}")
            result, why = ours.called(found[peer], built.args)
            if why:
                notes.know(failed={peer: f"the program itself runs at scale {scale:g}: {why}"})
                continue
            error = outputs.error(outputs.tensors(result), exact)
            notes.know(**{f"error {scale:g}": {peer: error}})
