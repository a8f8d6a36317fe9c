"""What terms do not mean: statements that would hold if an element were read where it is not known to be one."""

from __future__ import annotations

from fractions import Fraction

import pytest

from rewright import ops
from rewright.claims.language import Access, Addend, Definition, Region, View
from rewright.ir.dims import Dim, ceil_quotient, symbol
from rewright.ir.types import DType, TensorType
from rewright.proof.lemma import prove, size_of
from rewright.proof.programs import Applied, Chunk, Collective, Exchanged, NoMeaning, SameBlock
from rewright.proof.statement import Statement
from rewright.terms.normal.polynomials.atoms import TooHard
from tests.proof.defining import define

N = symbol("n")
SIZE = 3
AT: Access = ((0, ((0, 1),)),)
"""At its own index."""
FREE = 0
ALL: Region = (((((0, SIZE),)), Fraction(1)),)
POSITIVE: Region = ((((1, None),), Fraction(1)),)
CHOSEN = define("apply", ("where",), (1, FREE), (AT, AT), 1)
"""The free term where term 1 holds, and zero elsewhere: no integer where the free term is none."""


def copied(
    term: int, definitions: dict[int, Definition], *integers: int, size: Dim = SIZE, **more: Region
) -> Statement:
    """That a tensor which is a term is itself; ``parts`` is a range that the term is given."""
    parts = ((FREE, more["parts"]),) if more else ()
    view = View(((size,),), (Addend(Fraction(1), term, AT, parts),))
    subject = Applied(ops.Transpose((0,)), (TensorType((size,), DType.F32),))
    return Statement(subject, (view,), view, tuple(definitions.items()), frozenset(integers), ())


def test_a_free_term_is_itself() -> None:
    assert prove(copied(FREE, {}), 10) is None


def test_a_term_that_takes_no_range_is_given_none() -> None:
    assert prove(copied(FREE, {}, parts=ALL), 10) == "no rules for a range for a term that takes none"


def test_nothing_is_looked_up_at_what_may_be_no_integer() -> None:
    """Terms are functions of integers; a value is one on every path or on none."""
    at_value: Access = ((0, ((-1, 1),)),)
    free = {2: define("take", (), (FREE, FREE), (at_value, AT), 1)}
    where = {1: CHOSEN, 2: define("take", (), (FREE, 3), (at_value, AT), 1), 3: CHOSEN}
    other = {**where, 3: define("apply", ("where_not",), (1, FREE), (AT, AT), 1)}
    tested = {**where, 1: define("apply", ("greater",), (4, 5), (AT, AT), 1)}
    for definitions in (free, {**tested, 3: CHOSEN}, {**tested, 3: other[3]}):
        why = prove(copied(2, definitions, 1, 4, 5), 10)
        assert why is not None and why.startswith("no rules for an integer that is")
    assert prove(copied(2, free, FREE), 10) is None


def test_a_set_of_integers_has_no_other_values() -> None:
    guard = {1: define("guard", (), (FREE, FREE), (AT, AT), 1), 2: define("ranged", (POSITIVE,), (1,), (), 1)}
    assert prove(copied(2, guard), 10) == "no rules for a guard on a value that may be no integer"
    assert prove(copied(2, guard, FREE), 10) is None


def test_a_range_does_not_run_backwards_at_any_size() -> None:
    """From two up to n there is nothing where n is one, and not minus one of something."""
    fold = define("fold", ("sum", (1,)), (FREE,), (), 1)
    for start, fine in ((2, False), (1, True)):
        ranged = define("ranged", (((((start, N),), Fraction(1)),),), (1,), (), 1)
        why = prove(copied(2, {1: fold, 2: ranged}, size=N), 10)
        assert why == (None if fine else "no rules for a fold over a range that may run backwards")


def test_an_operator_that_reads_elsewhere_along_an_axis_does_not_treat_it_one_by_one() -> None:
    """Else the reverse of a tensor would be the tensor."""
    for op, fine in ((ops.Reverse((0,)), False), (ops.Tanh(), True)):
        opaque = {1: define("opaque", (op, (), ((0,),), 0, ()), (FREE,), (AT,), 1)}
        why = prove(copied(1, opaque), 10)
        assert why == (None if fine else "no rules for an operator that does not treat an axis one by one")


def test_a_rounded_quotient_of_sizes_is_no_number_of_a_proof() -> None:
    with pytest.raises(TooHard, match="a rounded quotient of sizes"):
        size_of(ceil_quotient(N, 2))


def test_unequal_parts_are_no_chunks() -> None:
    with pytest.raises(NoMeaning, match="no 2 equal parts"):
        Chunk(TensorType((5,), DType.F32), 0, 2, 0).graph()


def test_a_block_is_a_window_of_its_own_shape() -> None:
    """Else the elements of a box that the window does not have would be compared with none."""
    whole, held = TensorType((4,), DType.F32), TensorType((2,), DType.F32)
    SameBlock(whole, ((1, 2),), held, ((0, 2),), (0,)).graph()
    with pytest.raises(NoMeaning, match="claimed to be a window"):
        SameBlock(whole, ((1, 1),), held, ((0, 2),), (0,)).graph()


def test_an_exchange_meets_exchanges_alone() -> None:
    sends, sums = ops.AllToAll(0, 0, ((0, 1),)), ops.AllReduce("sum", ((0, 1),))
    kinds = (TensorType((2,), DType.F32),) * 2
    Collective((sends, sends), kinds, 0).graph()
    with pytest.raises(NoMeaning, match="an all_to_all that meets all_reduce"):
        Collective((sends, sums), kinds, 0).graph()


def test_sizes_that_only_a_range_speaks_of_are_sizes() -> None:
    """No type says that there are n elements, as all tensors are scalars; n is at least one all the same."""
    summed = define("fold", ("sum", (0,)), (FREE,), (), 0)
    ranged = define("ranged", (((((1, N + 1),), Fraction(1)),),), (1,), (), 0)
    operand, result = (View((), (Addend(Fraction(c), 2, ()),)) for c in (1, -1))
    subject = Applied(ops.Negate(), (TensorType((), DType.F32),))
    definitions = ((1, summed), (2, ranged))
    assert prove(Statement(subject, (operand,), result, definitions, frozenset(), ()), 10) is None
    assert prove(Statement(subject, (operand,), operand, definitions, frozenset(), ()), 10) is not None


def test_what_is_no_collective_meets_nothing() -> None:
    kinds = (TensorType((2,), DType.F32),) * 2
    with pytest.raises(NoMeaning, match="transpose is no collective that the checker knows"):
        Collective((ops.Transpose((0,)),) * 2, kinds, 0).graph()


def test_tensors_that_are_cut_otherwise_are_not_exchanged_in_equal_parts() -> None:
    two, four, odd = (TensorType((n, 4), DType.F32) for n in (2, 4, 3))
    Exchanged((four, four), 1, 0).graph()
    for kinds, axis in (((two, four), 1), ((odd, odd), 0)):
        with pytest.raises(NoMeaning, match="not in 2 equal parts"):
            Exchanged(kinds, axis, 0).graph()


SORT = ops.Sort(0, False, "values")
TURNED: Access = ((SIZE - 1, ((0, -1),)),)


def sorted_as(
    definition: Definition, operand: Access = AT, read: Access = AT, factor: int = 1, dtype: DType = DType.I64
) -> str | None:
    """Why a sorted vector of the free term would not be a term of that definition; None where it is."""
    given = View(((SIZE,),), (Addend(Fraction(1), FREE, operand),))
    claim = View(((SIZE,),), (Addend(Fraction(factor), 1, read),))
    subject = Applied(SORT, (TensorType((SIZE,), dtype),))
    return prove(Statement(subject, (given,), claim, ((1, definition),), frozenset({FREE, 1, 2}), ()), 1)


def whole(op: ops.Sort, term: int, access: Access, size: int = SIZE, kind: str = "i64") -> Definition:
    """An operator on a window of a term."""
    return define("opaque", (op, (kind,), (((size,),),), 1, ((0, 0, size),)), (term,), (access,), 1)


def test_equal_operators_on_equal_operands_are_equal_and_on_others_are_not() -> None:
    assert sorted_as(whole(SORT, FREE, AT)) is None
    assert sorted_as(whole(SORT, FREE, TURNED), operand=TURNED) is None
    wrong = {
        "another operand": sorted_as(whole(SORT, 2, AT)),
        "another axis": sorted_as(whole(SORT, FREE, ((1, ((0, 1),)),))),
        "another order": sorted_as(whole(ops.Sort(0, True, "values"), FREE, AT)),
        "a longer vector": sorted_as(whole(SORT, FREE, AT, SIZE + 1)),
        "another place": sorted_as(whole(SORT, FREE, AT), read=TURNED),
        "twice of it": sorted_as(whole(SORT, FREE, AT), factor=2),
    }
    assert [what for what, why in wrong.items() if why is None] == []
