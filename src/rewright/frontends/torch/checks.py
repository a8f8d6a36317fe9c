"""Tests of a program that decide only whether it raises, by the instructions of its frame.

``assert n > 0`` and ``if n <= 0: raise ValueError(...)`` are such: where the program has a result, nothing was raised.
That is not so where somebody catches what is raised, which is looked for in all frames of the program.
"""

from __future__ import annotations

import dis
from types import CodeType, FrameType
from typing import Any

_SKIPPED = frozenset({"CACHE", "EXTENDED_ARG", "TO_BOOL", "NOT_TAKEN"})


def outcome_without_error(frame: FrameType) -> bool | None:
    """What the test that a frame stands at gives where it raises nothing; None where the test decides more."""
    code = [op for op in dis.get_instructions(frame.f_code) if op.opname not in _SKIPPED]
    place = next((n for n, op in enumerate(code) if op.offset >= frame.f_lasti), len(code))
    if place + 1 >= len(code) or "POP_JUMP" not in code[place].opname:
        return None
    jump = code[place]
    jumps_on = {"IF_TRUE": True, "IF_FALSE": False}
    taken = next((value for name, value in jumps_on.items() if jump.opname.endswith(name)), None)
    target = next((n for n, op in enumerate(code) if op.offset == jump.argval), None)
    if taken is None or target is None:
        return None
    raises = _raises(code, target), _raises(code, place + 1)
    if raises[0] == raises[1] or _is_caught(frame):
        return None
    return not taken if raises[0] else taken


def _raises(code: list[dis.Instruction], place: int) -> bool:
    """Whether instructions from some place on lead to an error, whatever the values are."""
    for op in code[place:]:
        if op.opname == "RAISE_VARARGS":
            return True
        if "JUMP" in op.opname or op.opname.startswith(("RETURN", "YIELD", "FOR_ITER", "SEND", "RERAISE")):
            return False
    return False


def _is_caught(frame: FrameType) -> bool:
    """Whether some frame of the program stands in a block that catches errors."""
    found: FrameType | None = frame
    while found is not None and found.f_globals.get("__name__") != "rewright.frontends.torch.trace":
        if any(_catches(found.f_code, target) for target in _handlers(found)):
            return True
        found = found.f_back
    return False


def _handlers(frame: FrameType) -> list[int]:
    """Where errors go from the instruction at which a frame stands."""
    code: Any = dis.Bytecode(frame.f_code)
    return [e.target for e in code.exception_entries if e.start <= frame.f_lasti < e.end]


def _catches(code: CodeType, target: int) -> bool:
    """Whether a handler does more than to leave a ``with`` block, or to run what stands behind ``finally``."""
    following = [op.opname for op in dis.get_instructions(code) if op.offset >= target and op.opname not in _SKIPPED]
    if following[:1] != ["PUSH_EXC_INFO"] or following[:2] == ["PUSH_EXC_INFO", "WITH_EXCEPT_START"]:
        return False
    end = next((n for n, name in enumerate(following) if name == "RERAISE"), len(following))
    return end == len(following) or any("JUMP" in n or n in _CAUGHT for n in following[:end])


_CAUGHT = frozenset({"CHECK_EXC_MATCH", "CHECK_EG_MATCH", "POP_EXCEPT", "RETURN_VALUE", "RETURN_CONST"})
_BETWEEN = frozenset({"torch", "torch._tensor", "torch.fx.experimental.sym_node"})
"""Modules of PyTorch that ask for a truth value in the place of whoever uses it."""


def asking_frame(frame: FrameType | None) -> FrameType | None:
    """The frame that a truth value decides something in."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name not in _BETWEEN and not name.startswith("rewright."):
            return frame
        frame = frame.f_back
    return None
