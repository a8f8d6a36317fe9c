"""The process that XLA runs in: requests come on one pipe and answers go out on another."""

from __future__ import annotations

import os
import pickle
import struct
import sys
from typing import IO, Any

from rewright.env.xla.adapter import Adapter
from rewright.ir.errors import RewrightError

HEADER = struct.Struct("<Q")


def send(stream: IO[bytes], value: object) -> None:
    """Write one value."""
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(HEADER.pack(len(data)))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one value; raises EOFError where the other side is gone."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        raise EOFError
    (size,) = HEADER.unpack(header)
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


def first_line(error: BaseException) -> str:
    """What XLA says, on one line and without the frames of its C++ stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


def main() -> None:
    """Answer requests until the other side is gone."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what XLA prints must not end up among the answers
    requests = sys.stdin.buffer
    try:
        adapter = Adapter()
    except RewrightError as error:
        send(answers, ("refused", str(error)))
        return
    send(answers, ("ready", None))
    while True:
        try:
            method, arguments, keywords = receive(requests)
        except EOFError:
            return
        try:
            answer = ("done", getattr(adapter, method)(*arguments, **keywords))
        except Exception as error:  # whatever XLA raises is an answer
            answer = ("failed", first_line(error))
        send(answers, answer)


if __name__ == "__main__":
    main()
