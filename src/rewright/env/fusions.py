"""General fusion: every legal pair of a producer and its consumer as one fusion, and of two results as one of several.

A pair ``(producer, consumer)`` becomes one loop fusion that computes the consumer; the producer is computed in it again
where others read it too, so that no pair closes a cycle. A fusion of several results computes both: two alternatives
that share it, one for each value, to be taken together. Fusions that are there already are taken apart and grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from rewright.env.alternatives import AlternativeGraph, Provenance
from rewright.env.hlo.editing import make_tuple, parameter, part
from rewright.env.module import HloModule
from rewright.env.pool import Pool
from rewright.env.words import ELEMENTWISE, words
from rewright.frontends.hlo.attributes import write_attributes
from rewright.frontends.hlo.module import SHAPE, Computation, Instruction, Module, signature
from rewright.frontends.hlo.wire import BYTES

_MOVEMENT = words("broadcast reshape transpose slice pad concatenate iota reverse dynamic-slice gather constant")
_FUSIBLE = ELEMENTWISE | _MOVEMENT | {"reduce"}
_NO_CONSUMER = words("constant iota")
_MOST_FUSED = 60
"""Instructions of a fusion that still grows."""
_Resolve = Callable[[str], str]


def fusion_alternatives(module: HloModule) -> AlternativeGraph:
    """Every legal pair of the entry as a fusion, those with two results included."""
    program = module.program
    pool = Pool(program)
    for producer, consumer in pairs(program):
        _fuse(pool, producer, consumer)
    for first, second in twins(program):
        _fuse_both(pool, first, second)
    return pool.graph()


def pairs(program: Module) -> Iterator[tuple[str, str]]:
    """Names of producer and consumer of every legal pair."""
    main = program.main
    for name, consumer in main.instructions.items():
        if not _grows(program, consumer) or consumer.opcode in _NO_CONSUMER:
            continue
        # A reduction starts with numbers from outside.
        starts = consumer.operands[len(consumer.operands) // 2 :] if consumer.opcode == "reduce" else ()
        for operand in dict.fromkeys(consumer.operands):
            if _grows(program, main.instructions[operand]) and operand not in starts:
                yield operand, name


def twins(program: Module) -> Iterator[tuple[str, str]]:
    """Names of two values of one shape that one loop may give: a producer and its consumer, or readers of one value."""
    main = program.main
    places = {name: place for place, name in enumerate(main.instructions)}
    seen: set[tuple[str, str]] = set()
    for name, instruction in main.instructions.items():
        readers = [user for user in main.users[name] if _is_loop(program, main.instructions[user])]
        both = [(name, user) for user in readers] if _is_loop(program, instruction) else []
        both += [(a, b) for a in readers for b in readers if places[a] < places[b]]
        for first, second in both:
            shapes = [main.instructions[n].shape for n in (first, second)]
            live = bool(main.users[first]) or main.root == first
            if shapes[0].sizes == shapes[1].sizes and (first, second) not in seen and live:
                seen.add((first, second))
                yield first, second


def _is_fusion(instruction: Instruction) -> bool:
    return instruction.opcode == "fusion" and instruction.word("kind") == "kLoop"


def _grows(program: Module, instruction: Instruction) -> bool:
    """Whether an instruction may become a part of a fusion."""
    if not _is_array(instruction) or instruction.has_effect:
        return False
    if _is_fusion(instruction):
        return len(program.computations[instruction.called[0]].instructions) <= _MOST_FUSED
    return instruction.opcode in _FUSIBLE


def _is_loop(program: Module, instruction: Instruction) -> bool:
    """Whether it is computed element by element, so that another result fits into its loop."""
    own = _is_array(instruction) and instruction.opcode in ELEMENTWISE | {"broadcast"}
    return own or (_is_array(instruction) and _is_fusion(instruction) and _grows(program, instruction))


def _is_array(instruction: Instruction) -> bool:
    return instruction.shape.element not in ("tuple", "token", "opaque")


@dataclass
class _Body:
    """A fused computation that is being written."""

    program: Module
    instructions: dict[str, Instruction] = field(default_factory=dict[str, Instruction])
    operands: list[str] = field(default_factory=list[str])

    def add(self, instruction: Instruction) -> str:
        name = instruction.name
        while name in self.instructions:
            name += ".again"
        self.instructions[name] = replace(instruction, name=name, controls=())
        return name

    def parameter(self, name: str) -> str:
        """The parameter for a value of the entry."""
        title = f"{name}.in"
        if name not in self.operands:
            shape = self.program.main.instructions[name].shape_proto
            self.instructions[title] = parameter(title, len(self.operands), shape)
            self.operands.append(name)
        return title

    def write(self, name: str, resolve: _Resolve) -> str:
        """A value of the entry, with what a fusion computes taken out of it; returns its name here."""
        instruction = self.program.main.instructions[name]
        if not _is_fusion(instruction):
            return self.add(replace(instruction, operands=tuple(map(resolve, instruction.operands))))
        inner = self.program.computations[instruction.called[0]]
        found: dict[str, str] = {}
        for own in inner.instructions.values():
            if own.opcode == "parameter":
                found[own.name] = resolve(instruction.operands[own.parameter])
            else:
                found[own.name] = self.add(own.rename(found, {}))
        return found[inner.root]

    def computation(self, name: str, root: str) -> Computation:
        main = self.program.main.instructions
        parameters = {f"{operand}.in": main[operand].shape_proto for operand in self.operands}
        own = signature(parameters, self.instructions[root].shape_proto)
        return Computation(name, self.instructions, root, (own,))


def _with(body: _Body, producer: str) -> _Resolve:
    """Operands as parameters, but for the producer, which is written into the body once."""
    inside: list[str] = []

    def resolve(name: str) -> str:
        if name != producer:
            return body.parameter(name)
        if not inside:
            inside.append(body.write(producer, body.parameter))
        return inside[0]

    return resolve


def _fuse(pool: Pool, producer: str, consumer: str) -> None:
    body = _Body(pool.program)
    root = body.write(consumer, _with(body, producer))
    name = _enter(pool, body, root, f"{consumer}.with.{producer}")
    pool.add(consumer, name, Provenance("fusion", "producer into consumer"))


def _fuse_both(pool: Pool, first: str, second: str) -> None:
    body = _Body(pool.program)
    resolve = _with(body, first)
    one = resolve(first)
    two = body.write(second, resolve)
    results = [body.instructions[n] for n in (one, two)]
    root = body.add(make_tuple("results", results))
    both = _enter(pool, body, root, f"{second}.and.{first}")
    for index, value in enumerate((first, second)):
        own = pool.enter(part(f"{both}.{index}", both, index, results[index].shape_proto))
        pool.add(value, own, Provenance("fusion", "both results"))


def _enter(pool: Pool, body: _Body, root: str, title: str) -> str:
    """Put a fusion of what is in a body into the pool."""
    computation = body.computation(f"fused.{title}", root)
    called = pool.call(computation)
    fields = ((SHAPE, BYTES, body.instructions[root].shape_proto), *write_attributes({"kind": "kLoop"}))
    return pool.enter(Instruction(f"fusion.{title}", "fusion", tuple(body.operands), fields, (called,)))
