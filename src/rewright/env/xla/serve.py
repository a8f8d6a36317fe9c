"""The process that XLA runs in: requests come on one pipe and answers go out on another."""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
from typing import IO, Any, cast

from rewright.env.xla.adapter import Adapter
from rewright.ir.errors import RewrightError

HEADER = struct.Struct("<QQ")
"""Bytes of a value, and how many arrays follow it."""
SIZE = struct.Struct("<Q")


def send(stream: IO[bytes], value: object) -> None:
    """Write one value; arrays in it are written from where they are, without a copy."""
    arrays: list[pickle.PickleBuffer] = []
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=arrays.append)
    stream.write(HEADER.pack(len(data), len(arrays)))
    stream.write(data)
    for array in arrays:
        raw = array.raw()
        stream.write(SIZE.pack(raw.nbytes))
        stream.write(raw)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one value; raises EOFError where the other side is gone."""
    size, count = HEADER.unpack(_exactly(stream, HEADER.size))
    data = _exactly(stream, size)
    arrays = [_exactly(stream, SIZE.unpack(_exactly(stream, SIZE.size))[0]) for _ in range(count)]
    return pickle.loads(data, buffers=arrays)


def _exactly(stream: IO[bytes], size: int) -> bytearray:
    found = bytearray(size)
    view, at = memoryview(found), 0
    while at < size:
        count = int(cast("Any", stream).readinto(view[at:]) or 0)  # every pipe has it, IO does not say so
        if not count:
            raise EOFError
        at += count
    return found


def first_line(error: BaseException) -> str:
    """What XLA says, on one line and without the frames of its C++ stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[0] if lines else type(error).__name__
    # What stands after a colon is on the next line.
    return (f"{said} {lines[1]}" if said.endswith(":") and len(lines) > 1 else said)[:300]


def main() -> None:
    """Answer requests until the other side is gone, each under its number."""
    # An interrupt at a terminal reaches all processes; the other side decides what it means, and ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what XLA prints must not end up among the answers
    requests = sys.stdin.buffer
    try:
        adapter = Adapter()
    except RewrightError as error:
        send(answers, (0, "refused", str(error)))
        return
    send(answers, (0, "ready", None))
    while True:
        try:
            number, method, arguments, keywords = receive(requests)
        except EOFError:
            return
        try:
            answer = (number, "done", getattr(adapter, method)(*arguments, **keywords))
        except Exception as error:  # whatever XLA raises is an answer
            answer = (number, "failed", first_line(error))
        send(answers, answer)


if __name__ == "__main__":
    main()
