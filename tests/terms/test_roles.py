"""Roles of axes, read off formulas that no operator has: where splitting would be wrong, no role is given."""

from rewright.ir.dims import symbol
from rewright.terms.index import Variable, element, result_index, variable
from rewright.terms.roles import Contracted, Follows, Whole, roles
from rewright.terms.scalar import Apply, Choose, Fixed, Fold, Number, Read, Scalar, less_than

ROW, COLUMN = result_index(2)
K = variable("k")
N, M = symbol("n"), symbol("m")


def total(body: Scalar, kind: str = "sum") -> Fold:
    return Fold(kind, Variable("k"), M, body, Fixed(0.0))


def test_elementwise() -> None:
    found = roles(Apply("add", (Read(0, (ROW,)), Read(1, (ROW,)))), [(N,), (N,)], (N,))
    assert found.operands == ((Follows(0),), (Follows(0),))
    assert found.free == (0,)


def test_contraction() -> None:
    found = roles(total(Apply("multiply", (Read(0, (ROW, K)), Read(1, (K,))))), [(N, M), (M,)], (N,))
    assert found.operands == ((Follows(0), Contracted("sum", 0)), (Contracted("sum", 0),))
    assert found.folds == (Contracted("sum", 0),)


def test_a_fold_inside_a_function_is_not_contracted() -> None:
    found = roles(Apply("exponential", (total(Read(0, (ROW, K))),)), [(N, M)], (N,))
    assert found.operands == ((Follows(0), Whole()),)


def test_a_fold_of_another_kind_inside_a_fold_is_not_contracted() -> None:
    inner = Fold("maximum", Variable("j"), N, Read(0, (K, variable("j"))), Fixed(0.0))
    assert roles(total(inner), [(M, N)], ()).operands == ((Contracted("sum", 0), Whole()),)


def test_an_offset_is_not_followed() -> None:
    assert roles(Read(0, (ROW + 1,)), [(N,)], (N,)).operands == ((Whole(),),)


def test_part_of_an_axis_is_not_followed() -> None:
    assert roles(Read(0, (ROW,)), [(N + 1,)], (N,)).free == ()


def test_two_reads_of_one_axis_must_agree() -> None:
    shifted = Apply("subtract", (Read(0, (ROW,)), Read(0, (ROW - 1,))))
    assert roles(shifted, [(N,)], (N,)).free == ()


def test_a_diagonal_is_not_followed() -> None:
    assert roles(Read(0, (ROW, ROW)), [(N, N)], (N,)).operands == ((Whole(), Whole()),)


def test_a_condition_on_the_index_forbids_a_split() -> None:
    causal = Choose(less_than(COLUMN, ROW + 1), Read(0, (ROW, COLUMN)), Fixed(float("-inf")))
    assert roles(causal, [(N, N)], (N, N)).free == ()


def test_the_index_as_a_value_forbids_a_split() -> None:
    assert roles(Apply("multiply", (Read(0, (ROW,)), Number(ROW))), [(N,)], (N,)).free == ()


def test_a_gather_follows_its_indices() -> None:
    found = roles(Read(0, (element(Read(1, (ROW,))), COLUMN)), [(M, N), (N,)], (N, N))
    assert found.operands == ((Whole(), Follows(1)), (Follows(0),))
