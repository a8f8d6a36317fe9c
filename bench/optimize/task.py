"""What the process of one program does: ``python -m bench.optimize.task NOTES ASKED``, started by ``alone``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from bench.optimize import gradients, ours, times
from bench.optimize.notes import Notes
from bench.optimize.program import Program
from bench.optimize.programs import PROGRAMS
from bench.optimize.times import Wanted


def scan(notes: Notes, program: Program, wanted: Wanted) -> None:
    """Note what capture, plan and proof give; kernels are plain torch, and nobody runs them."""
    notes.doing("making the program")
    built = program.build(1.0, wanted.dtype, wanted.size)
    notes.doing("capture, plan and proof")
    started = time.process_time()
    with torch.no_grad():
        notes.know(**ours.facts(ours.kernels_alone(built, target="torch", verify=False), started))
    notes.doing("the end")


TASKS = {"scan": scan, "times": times.measure, "gradients": gradients.measure}


def main(path: str, asked: str) -> None:
    """Do what is asked for, and write it down."""
    options: Mapping[str, Any] = json.loads(asked)
    notes = Notes(Path(path))
    if options.get("threads"):
        torch.set_num_threads(options["threads"])
    dtype, device = getattr(torch, options["dtype"]), options["device"]
    torch.set_default_device(device)  # programs make tables where their arguments are
    wanted = Wanted(dtype, options["size"], options["peers"], options["rounds"], options["seconds"], device)
    TASKS[options["task"]](notes, PROGRAMS[options["program"]], wanted)


if __name__ == "__main__":
    main(*sys.argv[1:])
