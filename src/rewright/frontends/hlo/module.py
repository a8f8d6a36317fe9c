"""An HLO module as records that both of its forms are read into.

Attributes go by their names in HLO text: ``dimensions``, ``lhs_contracting_dims``, ``to_apply`` and so on. Lists of
integers are tuples; computations are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from rewright.frontends.hlo.sharding import Sharding
from rewright.ir.errors import RewrightError, UnsupportedOperator
from rewright.ir.types import DType, SourceSpan, TensorType

DTYPES = {
    "pred": DType.BOOL,
    "s8": DType.I8,
    "s16": DType.I16,
    "s32": DType.I32,
    "s64": DType.I64,
    "u8": DType.U8,
    "u16": DType.U16,
    "u32": DType.U32,
    "u64": DType.U64,
    "f16": DType.F16,
    "bf16": DType.BF16,
    "f32": DType.F32,
    "f64": DType.F64,
}
LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class Shape:
    """Element type (HLO's name), sizes and layout (minor to major, none is row-major), or the shapes of a tuple."""

    element: str
    sizes: tuple[int, ...] = ()
    parts: tuple[Shape, ...] = ()
    layout: tuple[int, ...] = ()

    def type(self) -> TensorType:
        """The type of the tensor; raises UnsupportedOperator where the IR has no such elements."""
        if self.element not in DTYPES:
            raise UnsupportedOperator(f"tensors of {self.element} are not supported; convert them to a real dtype")
        return TensorType(self.sizes, DTYPES[self.element])


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; ``operands`` are names in its computation."""

    name: str
    opcode: str
    shape: Shape
    operands: tuple[str, ...]
    attributes: Mapping[str, Any]
    span: SourceSpan = field(default_factory=SourceSpan)
    label: str = ""
    """What the program that it was compiled from calls it (``op_name``)."""

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """A list of integers among the attributes; raises RewrightError for anything else."""
        value: object = self.attributes.get(name, default)
        found = tuple(cast("Sequence[object]", value)) if isinstance(value, (list, tuple)) else (None,)
        whole = tuple(item for item in found if isinstance(item, int) and abs(item) < LARGEST)
        if len(whole) != len(found):
            raise RewrightError(f"attribute {name} of {self.name} is {value!r:.40} and no list of integers")
        return whole

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer among the attributes; raises RewrightError for anything else."""
        value: object = self.attributes.get(name, default)
        if not isinstance(value, int) or abs(value) >= LARGEST:
            raise RewrightError(
                f"attribute {name} of {self.name} is {value!r:.40} and no integer; print the module again"
            )
        return value

    @property
    def is_plain_bitcast(self) -> bool:
        """Whether it is a bitcast between elements of one type."""
        source: Any = self.attributes.get("source")
        return self.opcode == "bitcast" and source is not None and source.element == self.shape.element

    def word(self, name: str, default: str = "") -> str:
        """A text among the attributes."""
        value: object = self.attributes.get(name, default)
        return value if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class Computation:
    """Instructions in an order in which operands stand before those that read them."""

    name: str
    instructions: tuple[Instruction, ...]
    root: str

    def parameters(self) -> list[Instruction]:
        """The parameters by number; raises RewrightError where one is missing."""
        found = {i.integer("parameter"): i for i in self.instructions if i.opcode == "parameter"}
        if sorted(found) != list(range(len(found))):
            raise RewrightError(f"the parameters of {self.name} are not numbered from 0; print the module again")
        return [found[number] for number in range(len(found))]

    def result(self) -> Instruction:
        """The instruction whose value the computation gives."""
        return next(instruction for instruction in self.instructions if instruction.name == self.root)


@dataclass(frozen=True)
class Module:
    """Computations by name; ``replicas`` and ``partitions`` are None where the module does not say."""

    name: str
    computations: Mapping[str, Computation]
    entry: str
    replicas: int | None = None
    partitions: int | None = None
    shardings: tuple[Sharding, ...] | None = None
    """Of the parameters, where the module says that it was partitioned by them."""
    result_sharding: Sharding | None = None

    def computation(self, name: str) -> Computation:
        """A computation by name; raises RewrightError for one that does not exist."""
        if name not in self.computations:
            raise RewrightError(f"the module has no computation {name!r:.60}; print the whole module")
        return self.computations[name]


def ordered(name: str, instructions: Sequence[Instruction], root: str) -> Computation:
    """A computation with its instructions in order; raises RewrightError for a cycle and an operand that is missing."""
    known = {instruction.name: instruction for instruction in instructions}
    if len(known) != len(instructions):
        raise RewrightError(f"two instructions of {name} have one name; print the module again")
    if root not in known:
        raise RewrightError(f"the computation {name} has no root; print the whole module")
    done: dict[str, Instruction] = {}
    state: dict[str, int] = {}
    for start in known:
        stack = [start]
        while stack:
            at = stack[-1]
            if at in done:
                stack.pop()
                continue
            instruction = known.get(at)
            if instruction is None:
                raise RewrightError(f"{name} reads {at!r:.60}, which does not exist; print the whole module")
            waiting = [operand for operand in instruction.operands if operand not in done]
            if not waiting:
                done[at] = _with_source(instruction, done)
                stack.pop()
            elif state.get(at):
                raise RewrightError(f"the instructions of {name} read each other in a circle; print the module again")
            else:
                state[at] = 1
                stack.extend(waiting)
    return Computation(name, tuple(done.values()), root)


def _with_source(instruction: Instruction, done: Mapping[str, Instruction]) -> Instruction:
    """A bitcast with the shape of its operand: what it means depends on both layouts."""
    if instruction.opcode != "bitcast" or not instruction.operands:
        return instruction
    source = done[instruction.operands[0]].shape
    return replace(instruction, attributes={**instruction.attributes, "source": source})
