"""What a program costs, estimated from its instructions alone: work, traffic, kernels, and a time that they suggest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from rewright.env.words import words
from rewright.frontends.hlo.attributes import Window
from rewright.frontends.hlo.module import Computation, Instruction, Module, called_first
from rewright.ops.functions import FUNCTIONS

FREE = words("parameter constant tuple get-tuple-element bitcast after-all iota partition-id replica-id")
"""Operators that need no kernel of their own, and no traffic."""
TRANSCENDENTAL = words("tan cbrt").union(
    f.code.hlo for f in FUNCTIONS.values() if f.code.hlo is not None and f.values.exact is None and f.name != "divide"
)
_FLOPS_PER_SECOND = 2e10
_BYTES_PER_SECOND = 1e10
_SECONDS_PER_KERNEL = 1e-6


@dataclass(frozen=True)
class Cost:
    """Work in floating-point operations, bytes read and written, kernels started."""

    flops: float = 0.0
    transcendentals: float = 0.0
    bytes: float = 0.0
    kernels: int = 0

    @property
    def seconds(self) -> float:
        """Work and traffic one after the other, on a small CPU: good for comparing, not for predicting."""
        work = (self.flops + 8 * self.transcendentals) / _FLOPS_PER_SECOND
        return work + self.bytes / _BYTES_PER_SECOND + self.kernels * _SECONDS_PER_KERNEL

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.bytes + other.bytes,
            self.kernels + other.kernels,
        )


def cost_of(program: Module) -> Cost:
    """The cost of a program; a loop counts as one step, a branch as all branches."""
    done: dict[str, Cost] = {}
    for name in called_first(program.computations, program.entry):
        done[name] = computation_cost(program.computations[name], done)
    return done[program.entry]


def computation_cost(computation: Computation, called: Mapping[str, Cost]) -> Cost:
    """The cost of a computation, given that of those that it calls."""
    total = Cost()
    for instruction in computation.instructions.values():
        total = total + instruction_cost(instruction, computation.instructions, called)
    return total


def instruction_cost(instruction: Instruction, around: Mapping[str, Instruction], called: Mapping[str, Cost]) -> Cost:
    """The cost of one instruction."""
    if instruction.opcode in FREE:
        return Cost()
    inner = [called.get(name, Cost()) for name in instruction.called]
    if instruction.opcode in ("call", "while", "conditional"):
        return sum(inner, Cost())
    result = instruction.shape
    operands = [around[name].shape for name in instruction.operands]
    traffic = float(result.bytes + sum(shape.bytes for shape in operands))
    if instruction.opcode == "fusion":
        return Cost(sum(c.flops for c in inner), sum(c.transcendentals for c in inner), traffic, 1)
    if instruction.opcode in ("slice", "dynamic-slice", "gather"):
        traffic = 2.0 * result.bytes
    elements = float(result.elements)
    if instruction.opcode in TRANSCENDENTAL:
        return Cost(0.0, elements, traffic, 1)
    return Cost(_flops(instruction, elements, [shape.sizes for shape in operands]), 0.0, traffic, 1)


def _flops(instruction: Instruction, elements: float, operands: list[tuple[int, ...]]) -> float:
    if instruction.opcode == "dot":
        contracted = instruction.integers("lhs_contracting_dims")
        return 2 * elements * prod(operands[0][axis] for axis in contracted if axis < len(operands[0]))
    if instruction.opcode == "convolution" and len(operands) > 1:
        kernel = prod(operands[1])
        window: Sequence[Window] = instruction.attribute("window") or ()
        taps = prod(axis.size for axis in window)
        return 2 * elements * max(taps, kernel**0.5)
    if instruction.opcode in ("reduce", "reduce-window", "sort", "scatter"):
        return float(sum(prod(sizes) for sizes in operands))
    if instruction.opcode in ("broadcast", "reshape", "transpose", "slice", "concatenate", "copy", "pad", "reverse"):
        return 0.0
    return elements
