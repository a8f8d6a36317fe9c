"""Values of a program as terms: calls and fusions written out, tuples taken apart, copies left out.

A term is an operator on terms. Equal terms have one number (hash-consing), so that two values of one number are the
same operators on the same values: equal for every tensor, in floats too. What does something besides giving a value,
or gives another value whenever it runs, is a term of its own each time. Layouts say where elements lie and not what
they are, and are left out; a bitcast, which reads memory by another layout, is written as the transpositions and the
reshape that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from rewright.env.loop_values import LoopValues
from rewright.env.loops import note_holds
from rewright.env.words import ELEMENTWISE, ordered_words, words
from rewright.frontends.hlo.layouts import major_first
from rewright.frontends.hlo.module import METADATA, PARAMETER, SHAPE, TUPLE_INDEX, Computation, Instruction, toposort
from rewright.frontends.hlo.shapes import DTYPES, Shape, array, element_of, parts_of, read_shape
from rewright.frontends.hlo.wire import BYTES, VARINT, Field, integer, pack_integers, read_fields, write_fields
from rewright.ir.errors import RewrightError

_BACKEND_CONFIG, _DIMENSIONS, _LAYOUT = 43, 14, 5
_ATTRIBUTES = (68, 82)
"""Attributes of a frontend and what was found out about a value: XLA writes them where they are empty, too."""
_MOST_TERMS = 200_000
_NUMBERS = DTYPES.keys() - {"pred"}
"""Element types that are read as another of the same width."""
_THROUGH = words("copy opt-barrier optimization-barrier add-dependency")
_CONFIGURED = words("custom-call while conditional")
"""Operators whose backend configuration may say what they compute, and not only how."""
_APART = ordered_words("all- collective- reduce-scatter ragged- async- copy- send recv infeed outfeed rng")
"""Prefixes of operators whose every call is a value of its own, whatever it reads."""
_OPAQUE = words("partition-id replica-id reduce-precision")
"""Operators that the reals know nothing of: which device it is, and a value with fewer digits."""


@dataclass(frozen=True)
class Term:
    """An operator on terms; ``shape`` is a serialised ShapeProto without layouts, ``called`` names computations."""

    opcode: str
    shape: bytes
    fields: tuple[Field, ...]
    called: tuple[str, ...]
    operands: tuple[int, ...]


Values = dict[str, int]
_Place = tuple[str, ...]


class Inlined:
    """The terms of computations; raises RewrightError where there are too many when calls are written out."""

    def __init__(self, computations: Mapping[str, Computation]) -> None:
        self.terms: list[Term] = []
        self._computations = computations
        self._numbers: dict[tuple[object, ...], int] = {}
        self._bodies: dict[str, int] = {}
        self._apart: dict[str, bool] = {}
        self._loops = LoopValues(self)
        self._parts: dict[tuple[object, ...], int] = {}
        self._steps = 0

    def values(
        self,
        place: _Place,
        instructions: Mapping[str, Instruction],
        roots: Sequence[str],
        arguments: Sequence[int] = (),
    ) -> Values:
        """The numbers of the roots, and of all that they need; parameters are terms where no arguments are given.

        ``place`` says whose instructions they are, and through which calls.
        """
        found: Values = {}
        for name in toposort(instructions, roots):
            self._steps += 1
            if self._steps > 5 * _MOST_TERMS:
                raise RewrightError("it is too large when its calls are written out; choose another alternative")
            found[name] = self._value(place, instructions, instructions[name], found, arguments)
        return found

    def leaves(self, number: int) -> Iterator[int]:
        """The arrays of a value that may be a tuple."""
        shape = read_shape(self.terms[number].shape)
        if shape.element != "tuple":
            yield number
        else:
            for part in range(len(shape.parts)):
                yield from self.leaves(self.part(number, part))

    def part(self, number: int, index: int) -> int:
        """A part of a tuple."""
        term = self.terms[number]
        if term.opcode == "tuple":
            return term.operands[index]
        own = self.number("get-tuple-element", parts_of(term.shape)[index], ((TUPLE_INDEX, VARINT, index),), (number,))
        key = self._loops.key(number, index) if term.opcode == "while" else None
        return own if key is None else self._parts.setdefault(key, own)

    def needs(self, number: int) -> set[int]:
        """The terms that a value is made of, itself among them."""
        found: set[int] = set()
        stack = [number]
        while stack:
            at = stack.pop()
            if at not in found:
                found.add(at)
                stack.extend(self.terms[at].operands)
        return found

    # --- making terms

    def number(self, opcode: str, shape: bytes, fields: tuple[Field, ...], operands: tuple[int, ...]) -> int:
        """The number of a term that calls nothing."""
        return self._number(Term(opcode, shape, fields, (), operands))

    def result(self, name: str, argument: int) -> int:
        """The value of a computation of one argument; what it has that is apart is not told from itself."""
        return self._call((), name, (argument,))

    def says_more(self, term: Term) -> bool:
        """Whether there is more to an operator than its computations: a configuration, or what is a value each time."""
        told = any(entry[0] == _BACKEND_CONFIG and entry[2] not in (b"", b"{}") for entry in term.fields)
        return told or any(self._has_apart(name) for name in term.called)

    def _number(self, term: Term, *more: object) -> int:
        bodies = tuple(self.body(name) for name in term.called)
        key = (term.opcode, term.shape, term.fields, bodies, term.operands, *more)
        if key not in self._numbers:
            if len(self.terms) >= _MOST_TERMS:
                raise RewrightError("it is too large when its calls are written out; choose another alternative")
            self._numbers[key] = len(self.terms)
            self.terms.append(term)
        return self._numbers[key]

    def body(self, name: str) -> int:
        """The value of a computation as a term over its own parameters."""
        if name not in self._bodies:
            body = self._computations[name]
            self._bodies[name] = self.values((name,), body.instructions, [body.root])[body.root]
        return self._bodies[name]

    def _value(
        self,
        place: _Place,
        around: Mapping[str, Instruction],
        i: Instruction,
        found: Values,
        arguments: Sequence[int],
    ) -> int:
        operands = tuple(found[operand] for operand in i.operands)
        if i.opcode == "parameter" and arguments:
            return arguments[i.parameter]
        if i.opcode in _THROUGH:
            return operands[0]
        if i.opcode in ("call", "fusion"):
            return self._call((*place, i.name), i.called[0], operands)
        if i.opcode == "get-tuple-element":
            return self.part(operands[0], integer(i.fields, TUPLE_INDEX))
        if i.opcode == "tuple":
            return self._tuple(i, operands)
        if i.opcode == "bitcast":
            moved = self._bitcast(i, around[i.operands[0]].shape, operands[0])
            if moved is not None:
                return moved
        if i.opcode == "map":
            mapped = self._map(i, operands)
            if mapped is not None:
                return mapped
        if i.opcode == "reshape" and self.terms[operands[0]].shape == _plain(i.shape_proto):
            return operands[0]
        said = _meaning(i)
        if i.opcode == "while" and note_holds(self, i, operands[0]):
            said = tuple(entry for entry in said if entry[0] != _BACKEND_CONFIG)
        term = Term(i.opcode, _plain(i.shape_proto), said, i.called, operands)
        if self.is_apart(i):
            return self._number(term, place, i.name)
        # What a bitcast to another dtype reads is decided by the layouts.
        layouts = (around[i.operands[0]].shape_proto, i.shape_proto) if i.opcode == "bitcast" else ()
        return self._number(term, *layouts)

    def _call(self, place: _Place, name: str, operands: tuple[int, ...]) -> int:
        """The value of a computation on arguments."""
        key = ("call", name, operands, place if self._has_apart(name) else ())
        if key not in self._numbers:
            body = self._computations[name]
            values = self.values((*place, name), body.instructions, [body.root], operands)
            self._numbers[key] = values[body.root]
        return self._numbers[key]

    def _tuple(self, i: Instruction, operands: tuple[int, ...]) -> int:
        """A tuple; one of all parts of another in their order is the other."""
        first = self.terms[operands[0]] if operands else None
        if first is not None and first.opcode == "get-tuple-element":
            whole = first.operands[0]
            count = len(read_shape(self.terms[whole].shape).parts)
            if operands == tuple(self.part(whole, n) for n in range(count)):
                return whole
        return self._number(Term("tuple", _plain(i.shape_proto), (), (), operands))

    def _bitcast(self, i: Instruction, source: Shape, x: int) -> int | None:
        """Elements read by another layout; None for a dtype of another width."""
        target = i.shape
        if source.element != target.element:
            widths = {element_of(shape).bytes for shape in (source, target)}
            if len(widths) > 1 or not {source.element, target.element} <= _NUMBERS:
                return None
            source = replace(source, element=target.element)
            x = self.number("bitcast-convert", _plain(array(source.element, source.sizes)), _meaning(i), (x,))
        if target.element == "tuple":
            return None
        first, last = major_first(source.sizes, source.layout), major_first(target.sizes, target.layout)
        x = self._transpose(x, target.element, source.sizes, first)
        lying = tuple(target.sizes[axis] for axis in last)
        shape = _plain(array(target.element, lying))
        if self.terms[x].shape != shape:
            x = self._number(Term("reshape", shape, (), (), (x,)))
        return self._transpose(x, target.element, lying, tuple(last.index(axis) for axis in range(len(last))))

    def _map(self, i: Instruction, operands: tuple[int, ...]) -> int | None:
        """A computation of scalars at every place, written with operators on arrays; None where it has no such."""
        body, sizes = self._computations[i.called[0]], i.shape.sizes
        found: Values = {}
        for name in toposort(body.instructions, [body.root]):
            own = body.instructions[name]
            shape = _plain(array(own.shape.element, sizes))
            if own.opcode == "parameter":
                found[name] = operands[own.parameter]
            elif own.opcode == "constant":
                scalar = self.number(own.opcode, _plain(own.shape_proto), _meaning(own), ())
                found[name] = self.number("broadcast", shape, (), (scalar,))
            elif own.opcode in ELEMENTWISE and not own.called:
                found[name] = self.number(own.opcode, shape, _meaning(own), tuple(found[o] for o in own.operands))
            else:
                return None
        return found[body.root]

    def _transpose(self, x: int, element: str, sizes: tuple[int, ...], order: tuple[int, ...]) -> int:
        if order == tuple(range(len(order))):
            return x
        shape = _plain(array(element, tuple(sizes[axis] for axis in order)))
        return self._number(Term("transpose", shape, tuple(pack_integers(_DIMENSIONS, order)), (), (x,)))

    # --- what is a value of its own each time

    def is_apart(self, i: Instruction) -> bool:
        """Whether two of an instruction are two values, whatever they read: random numbers, what has effects."""
        if i.has_effect or i.opcode.startswith(_APART):
            return True
        return any(self._has_apart(name) for name in i.called)

    def is_opaque(self, number: int) -> bool:
        """Whether a proof may take a term for any tensor only: it depends on the device, on chance, on other devices.

        Equal terms are the same tensor still.
        """
        opcode = self.terms[number].opcode
        return opcode in _OPAQUE or opcode.startswith(_APART)

    def _has_apart(self, name: str) -> bool:
        if name not in self._apart:
            self._apart[name] = any(self.is_apart(i) for i in self._computations[name].instructions.values())
        return self._apart[name]


def _meaning(i: Instruction) -> tuple[Field, ...]:
    """What an instruction says of what it computes."""
    left_out = {SHAPE, METADATA} if i.opcode in _CONFIGURED else {SHAPE, METADATA, _BACKEND_CONFIG}
    if i.opcode == "parameter":
        return ((PARAMETER, VARINT, i.parameter),)
    return tuple(e for e in i.fields if e[0] not in left_out and not (e[0] in _ATTRIBUTES and e[2] == b""))


@lru_cache(maxsize=4096)
def _plain(shape: bytes) -> bytes:
    """A serialised ShapeProto without layouts and without flags for sizes that are fixed."""
    out: list[Field] = []
    for number, wire, value in read_fields(shape):
        if number == 4 and isinstance(value, bytes):
            out.append((4, BYTES, _plain(value)))
        elif number == 3 or (number == 6 and not any(value if isinstance(value, bytes) else (value,))):
            continue
        elif number != _LAYOUT:
            out.append((number, wire, value))
    sizes = read_shape(shape).sizes
    return write_fields([*out, *pack_integers(3, sizes)])
