"""Denoting graphs under the facts of a context."""

from __future__ import annotations

import gc

import pytest

from rewright import ops
from rewright.ir.dims import Dim
from rewright.ir.errors import TypeMismatch
from rewright.ir.types import DType, TensorType
from rewright.terms.normal.algebra import new_context
from rewright.terms.normal.denoting.denote import Denoter
from rewright.terms.normal.facts.guards import Choice, Value, at_least
from rewright.terms.normal.facts.signs import is_positive
from rewright.terms.normal.polynomials.atoms import Element, Polynomial, polynomial, symbol
from tests.programs import Builder


def size(dim: Dim) -> Polynomial:
    assert isinstance(dim, int)
    return polynomial(dim)


def test_a_denoter_that_is_gone_leaves_nothing_to_the_next_one() -> None:
    """Values are remembered in the context, which outlives denoters; a new one may stand where another one stood."""
    context = new_context(10.0)
    values: list[str] = []
    gc.freeze()  # what other tests left is not looked at twenty times
    for name in ("a", "b") * 10:
        build = Builder(name)
        build.output("y", build.add(ops.Negate(), build.tensor(name, (2,))))
        denoter = Denoter(context, build.build(), size)
        values.append(str(denoter.value(1, (polynomial(0),))))
        del denoter
        gc.collect()
    gc.unfreeze()
    assert values == ["-a[0]", "-b[0]"] * 10


def test_long_tables_are_functions_that_their_elements_tell_apart() -> None:
    context = new_context(10.0)

    def read(values: list[float]) -> str:
        build = Builder("tables")
        tensor = TensorType((len(values),), DType.F32)
        build.output("y", build.add(ops.Constant(tensor, tuple(values))))
        return str(Denoter(context, build.build(), size).value(0, (symbol("i"),)))

    long = [k / 7 for k in range(40)]
    assert read(long) == read(list(long))
    assert read(long) != read([*long[:-1], 0.5])
    assert read(long) != read([*long, 0.5])


def test_tables_of_places_are_cases_where_other_numbers_are_elements_between_the_least_and_the_largest() -> None:
    def read(values: tuple[int, ...]) -> Value:
        build = Builder("places")
        build.output("y", build.add(ops.Constant(TensorType((40,), DType.I64), values)))
        return Denoter(context, build.build(), size).value(0, (symbol("i"),))

    context = new_context(10.0)
    assert isinstance(read(tuple((k * 7) % 40 for k in range(40))), Choice)
    power = read(tuple(1 << k for k in range(40)))
    assert isinstance(power, Polynomial) and is_positive(context, power)
    assert context.holds(at_least(polynomial(1 << 39), power)) and not context.holds(at_least(power, 2))


def test_no_input_is_a_table_or_another_tensor_of_the_prover() -> None:
    kind = TensorType((40,), DType.F64)
    build = Builder("tables")
    build.output("y", build.add(ops.Constant(kind, tuple(k / 7 for k in range(40)))))
    element = Denoter(new_context(10.0), build.build(), size).value(0, (symbol("i"),))
    assert isinstance(element, Polynomial)
    (table,) = (atom.tensor for atom in element.atoms() if isinstance(atom, Element))
    with pytest.raises(TypeMismatch, match="null character"):
        Builder("forged").add(ops.Input(table, kind))
