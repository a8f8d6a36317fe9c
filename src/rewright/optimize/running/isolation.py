"""Kernels in a process of their own, where a crash is an error with a reason: so every kernel is run first."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import torch

from rewright.ir.errors import RewrightError

SECONDS = 120.0
"""A kernel on small tensors that takes longer does not end."""
_CHILD = """
import ctypes, json, sys
library, source, sink = ctypes.CDLL(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer
for line in source:
    call = json.loads(line)
    buffers = [ctypes.create_string_buffer(source.read(size), size) for size in call["sizes"]]
    function = getattr(library, call["name"])
    function.restype = None
    function((ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers)), ctypes.c_long(call["threads"]))
    for number in call["written"]:
        sink.write(buffers[number].raw)
    sink.flush()
"""
"""Only Python's own library: such a process starts in a few hundredths of a second."""


class Crashed(RewrightError):
    """A generated kernel ended its process, or did not end."""


class Isolated:
    """A process that runs the kernels of a shared library; it ends with this object."""

    def __init__(self, library: Path) -> None:
        command = [sys.executable, "-I", "-S", "-c", _CHILD, str(library)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        weakref.finalize(self, _end, self._process)

    def launch(
        self, name: str, written: Sequence[int], threads: Callable[[], int]
    ) -> Callable[[Sequence[torch.Tensor]], None]:
        """A kernel as a launch; ``written`` are the tensors, by number, that it writes."""

        def run(tensors: Sequence[torch.Tensor]) -> None:
            given = [t.contiguous().reshape(-1).view(torch.uint8) for t in tensors]
            call = {"name": name, "sizes": [t.numel() for t in given], "written": list(written), "threads": threads()}
            timer = threading.Timer(SECONDS, self._process.kill)
            timer.start()
            try:
                results = self._answer(json.dumps(call).encode() + b"\n", given, [given[n].numel() for n in written])
            except (OSError, EOFError):
                raise Crashed(f"the kernel {name} {self._ending()}, in a process of its own; report it") from None
            finally:
                timer.cancel()
            for number, data in zip(written, results, strict=True):
                tensors[number].reshape(-1).view(torch.uint8).copy_(torch.frombuffer(data, dtype=torch.uint8))

        return run

    def _answer(self, head: bytes, given: Sequence[torch.Tensor], sizes: Sequence[int]) -> list[bytearray]:
        source, sink = self._process.stdin, self._process.stdout
        assert source is not None and sink is not None
        source.write(head)
        for tensor in given:
            source.write(tensor.numpy().tobytes())
        source.flush()
        found: list[bytearray] = []
        for size in sizes:
            data = bytearray(sink.read(size))
            if len(data) < size:
                raise EOFError
            found.append(data)
        return found

    def _ending(self) -> str:
        code = self._process.wait()
        if code >= 0:
            return f"ended with status {code}"
        return "did not end in time" if -code == signal.SIGKILL else f"crashed ({signal.Signals(-code).name})"


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # where it has ended
                pipe.close()
    process.wait()
