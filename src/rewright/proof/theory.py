"""The terms of a certificate: their definitions, what follows from those, and statements about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from operator import itemgetter

from rewright import ops
from rewright.claims.language import (
    Add,
    Apply,
    Definition,
    Guard,
    Input,
    Number,
    Opaque,
    Position,
    Ranged,
    Size,
    Table,
    Tensor,
    terms_of,
)
from rewright.ir.dims import Dim, product
from rewright.ir.graph import Graph
from rewright.proof.forms import check_definition, holes
from rewright.proof.local import Conflict, Local
from rewright.proof.programs import Subject
from rewright.proof.statement import Fact, Statement

_INTEGER_FUNCTIONS = frozenset(
    {"identity", "multiply", "maximum", "minimum", "abs", "negate", "sign", "where", "where_not", "divide", "remainder"}
    | {"and", "or", "xor", "not", "integer_power", "power_integer", "divide_integer"}
    | {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"}
)
_ALWAYS = (Number, Position, Size)
_TRUTHS = frozenset({"greater", "greater_or_equal", "equal", "not_equal", "is_finite"})


class Theory:
    """Definitions in order, each over earlier terms, with which terms are integers and which have open ranges.

    Raises Malformed, naming the term, for a definition that is none.
    """

    def __init__(self, definitions: Sequence[Definition], inputs: frozenset[str]) -> None:
        self.definitions = definitions
        self.facts: dict[int, tuple[Fact, ...]] = {}
        """What is known of terms: by their definitions, and by look-ups that a certificate names."""
        self.holes: list[frozenset[int]] = []
        for term in range(len(definitions)):
            check_definition(term, definitions)
        self._integers = integer_terms(definitions, inputs)
        for term, definition in enumerate(definitions):
            self.holes.append(holes(term, definition, [self.holes[o] for o in definition.operands]))
            length = _chosen_among(definition)
            if length is not None:
                self.facts[term] = (Fact(((((0, length),), Fraction(1)),), None),)

    def is_integer(self, term: int) -> bool:
        """Whether every element of a term is an integer by its definition."""
        return term in self._integers

    def statement(
        self, subject: Subject, operands: Sequence[Tensor], result: Tensor | None, unfold: Iterable[int]
    ) -> tuple[Statement, tuple[int, ...], tuple[int, ...]]:
        """The statement about a step over local numbers, the terms it names, and those whose definitions it uses.

        ``unfold`` are the terms that the step looks into; those with open ranges are always looked into.
        """
        opened = frozenset(unfold)
        numbers: dict[int, int] = {}
        for tensor in (*operands, *([] if result is None else [result])):
            for term in terms_of(tensor):
                numbers.setdefault(term, len(numbers))
        queue, used = list(numbers), list[int]()
        for term in queue:
            content = self.definitions[term].content
            # Which input it is does not matter: an input is free.
            is_needed = term in opened or self.holes[term] or isinstance(content, _ALWAYS)
            if isinstance(content, Input) or not is_needed:
                continue
            used.append(term)
            for operand in self.definitions[term].operands:
                if operand not in numbers:
                    numbers[operand] = len(numbers)
                    queue.append(operand)
        # What is known of all elements is known of all moved ones.
        windowed = frozenset(t for t in numbers if any(fact.window is not None for fact in self.facts.get(t, ())))
        definitions = {term: self.definitions[term] for term in used}
        try:
            local = Local(numbers, definitions, windowed, deep=True)
            statement = self._statement(subject, operands, result, local, numbers, used)
        except Conflict:
            local = Local(numbers, definitions, windowed, deep=False)
            statement = self._statement(subject, operands, result, local, numbers, used)
        return statement, tuple(numbers), tuple(used)

    def _statement(
        self,
        subject: Subject,
        operands: Sequence[Tensor],
        result: Tensor | None,
        local: Local,
        numbers: Mapping[int, int],
        used: Sequence[int],
    ) -> Statement:
        claims = tuple(local.tensor(tensor) for tensor in operands)
        claimed = None if result is None else local.tensor(result)
        # Terms are defined over earlier ones, so that in this order readers come first.
        definitions = [(numbers[term], local.definition(term)) for term in sorted(used, reverse=True)]
        return Statement(
            subject,
            claims,
            claimed,
            tuple(sorted(definitions, key=itemgetter(0))),
            frozenset(number for term, number in numbers.items() if term in self._integers),
            tuple((number, fact) for term, number in numbers.items() for fact in self.facts.get(term, ())),
        )

    def outermost(self, tensors: Sequence[Tensor]) -> tuple[int, ...]:
        """The sums that tensors are made of."""
        found = dict.fromkeys(term for tensor in tensors for term in terms_of(tensor))
        return tuple(term for term in found if isinstance(self.definitions[term].content, Add | Ranged))


def _chosen_among(definition: Definition) -> Dim | None:
    """For the places that a sort or a choice of the largest gives, the length of the axis that they are places on."""
    content = definition.content
    op = content.op if isinstance(content, Opaque) else None
    if not isinstance(content, Opaque) or not isinstance(op, ops.Sort | ops.TopK) or op.result != "indices":
        return None
    layout = content.layout
    axis = op.dimension if isinstance(op, ops.Sort) else -1
    if len(layout) != 1 or not -len(layout[0]) <= axis < len(layout[0]):
        return None
    digits = layout[0][axis]
    return product(digits) if isinstance(digits, tuple) else None  # no axis of a certificate is empty


def integer_inputs(graph: Graph) -> frozenset[str]:
    """The names of the inputs of a program that are not floats."""
    nodes = (graph.nodes[position] for position in graph.inputs.values())
    return frozenset(n.op.label for n in nodes if isinstance(n.op, ops.Input) and not n.op.tensor.dtype.is_float)


def integer_terms(definitions: Sequence[Definition], inputs: frozenset[str]) -> frozenset[int]:
    """The terms whose elements are integers by their definitions."""
    found: set[int] = set()
    for term, definition in enumerate(definitions):
        if _is_integer(definition, [operand in found for operand in definition.operands], inputs):
            found.add(term)
    return frozenset(found)


def _is_integer(definition: Definition, known: Sequence[bool], inputs: frozenset[str]) -> bool:
    content = definition.content
    if isinstance(content, Input):
        return content.name in inputs
    if isinstance(content, Table):
        return all(isinstance(v, int) for v in content.values)
    if isinstance(content, Add):
        return all(known) and all(c == int(c) for c in content.coefficients)
    if isinstance(content, Apply):
        name = content.function
        converted = name.startswith(("convert to i", "convert to ui"))
        return name in _TRUTHS or converted or (name in _INTEGER_FUNCTIONS and all(known))
    if isinstance(content, Guard):
        return known[1]
    if isinstance(content, Opaque):
        op = content.op
        # The result of an operator is of integers where an operand of the same element type is.
        own = [k != "float" for k in content.kinds] or known
        return (bool(own) and all(own)) or (isinstance(op, ops.Sort | ops.TopK) and op.result == "indices")
    if isinstance(content, Number):
        return content.value == 1
    return isinstance(content, Position | Size) or known[0]
