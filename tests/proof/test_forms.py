"""What is no term, no tensor and no fact of a certificate."""

from __future__ import annotations

from fractions import Fraction

import pytest

from rewright import ops
from rewright.claims.language import Access, Addend, Definition, Pieces, Tensor, View
from rewright.ir.dims import symbol
from rewright.proof.forms import Malformed, at_least, check_definition, check_parts, shape_of
from tests.proof.defining import define

ONE = Fraction(1)
AT: Access = ((0, ((0, 1),)),)
N = symbol("n")
X = define("input", ("x",), (), (), 1)
MATRIX = define("input", ("m",), (), (), 2)
FOLD = define("fold", ("sum", (1,)), (1,), (), 1)
GUARD = define("guard", (), (0, 0), (AT, AT), 1)
TERMS = (X, MATRIX, FOLD, GUARD)
BOX = (((0, 3),), ONE)
OPAQUE = (ops.Reverse((0,)), (), (((3,),),), 1, ((0, 0, 3),))

GOOD: dict[str, Definition] = {
    "number": define("number", (1,), (), (), 0),
    "infinity": define("number", ("inf",), (), (), 0),
    "index": define("index", (), (), (), 1),
    "size": define("size", (N,), (), (), 0),
    "table": define("table", ((2,), (1.0, 2.0)), (), (), 1),
    "apply": define("apply", ("tanh",), (0,), (AT,), 1),
    "add": define("add", ((ONE,),), (0,), (AT,), 1),
    "ranged": define("ranged", ((BOX,),), (2,), (), 1),
    "set": define("ranged", (((((None, 3),), ONE),),), (3,), (), 1),
    "take": define("take", (), (0, 0), (((0, ((-1, 1),)),), AT), 1),
    "opaque": define("opaque", OPAQUE, (0,), (AT,), 1),
}

BAD: dict[str, tuple[Definition, str]] = {
    "a negative rank": (define("input", ("x",), (), (), -1), "no terms of rank"),
    "a later term": (define("add", ((ONE,),), (4,), (AT,), 1), "not earlier"),
    "no access": (define("apply", ("tanh",), (0,), (), 1), "where it reads every operand"),
    "an access of another rank": (define("apply", ("tanh",), (1,), (AT,), 1), "another number of indices"),
    "a variable that is not there": (define("apply", ("tanh",), (0,), (((0, ((1, 1),)),),), 1), "variable 1"),
    "a variable of nobody": (define("apply", ("tanh",), (0,), (((0, ((-1, 1),)),),), 1), "variable -1"),
    "an input of something": (define("input", ("x",), (0,), (), 1), "reads nothing"),
    "no number": (define("number", ("much",), (), (), 0), "no number"),
    "not a number": (define("number", ("nan",), (), (), 0), "no number"),
    "an index of nothing": (define("index", (), (), (), 0), "no index"),
    "a size of an axis": (define("size", (N,), (), (), 1), "no size"),
    "a table of another shape": (define("table", ((3,), (1.0,)), (), (), 1), "another shape"),
    "a function of nothing": (define("apply", ("tanh",), (), (), 0), "function of nothing"),
    "a function without a name": (define("apply", (3,), (0,), (AT,), 1), "no text"),
    "an input without a name": (define("input", (None,), (), (), 1), "no text"),
    "a coefficient less": (define("add", ((),), (0,), (AT,), 1), "coefficient"),
    "a variable of a sum": (define("add", ((ONE,),), (0,), (((0, ((1, 1),)),),), 1), "variable 1"),
    "half a guard": (define("guard", (), (0,), (AT,), 1), "a test and a value"),
    "a variable of a guard": (define("guard", (), (0, 0), (AT, ((0, ((1, 1),)),)), 1), "variable 1"),
    "an axis twice": (define("fold", ("sum", (1, 1)), (1,), (), 1), "different axes"),
    "an axis too far": (define("fold", ("sum", (2,)), (1,), (), 1), "does not have"),
    "a fold that keeps its axis": (define("fold", ("sum", (1,)), (1,), (), 2), "another rank"),
    "a range of an input": (define("ranged", ((BOX,),), (0,), (), 1), "takes none"),
    "a range that turns": (define("ranged", ((BOX,),), (2,), (), 2), "of one term"),
    "a range backwards": (define("ranged", ((((3, 0),), ONE),), (2,), (), 1), "another form|backwards"),
    "a fold backwards": (define("ranged", (((((3, 0),), ONE),),), (2,), (), 1), "backwards"),
    "a fold without end": (define("ranged", (((((0, None),), ONE),),), (2,), (), 1), "without bounds"),
    "two ranges for one": (define("ranged", (((((0, 3), (0, 3)), ONE),),), (2,), (), 1), "number of variables"),
    "a look-up in nothing": (define("take", (), (), (), 1), "look-up in nothing"),
    "a look-up by what is not there": (define("take", (), (0, 0), (((0, ((-2, 1),)),), AT), 1), "variable -2"),
    "a look-up at no variable": (define("take", (), (0, 0), (AT, ((0, ((1, 1),)),)), 1), "variable 1"),
    "an operator read nowhere": (define("opaque", (OPAQUE[0], (), (), 1, ()), (0,), (AT,), 1), "operand is read"),
    "of no type": (define("opaque", (OPAQUE[0], ("f32",), *OPAQUE[2:]), (0,), (AT,), 1), "no element type"),
    "a digit nowhere": (define("opaque", (*OPAQUE[:4], ()), (0,), (AT,), 1), "place every digit"),
    "an axis of nothing": (define("opaque", (*OPAQUE[:2], (((0,),),), *OPAQUE[3:]), (0,), (AT,), 1), "no elements"),
    "an operator along an axis too far": (
        define("opaque", (*OPAQUE[:2], ((2,),), 1, ()), (0,), (AT,), 1),
        "axis that its result",
    ),
    "a window too far": (define("opaque", (*OPAQUE[:4], ((7, 0, 3),)), (0,), (AT,), 1), "window of a variable"),
    "a variable too far": (define("opaque", OPAQUE, (0,), (((0, ((1, 1),)),),), 1), "variable 1"),
}


@pytest.mark.parametrize("name", GOOD)
def test_terms(name: str) -> None:
    check_definition(4, (*TERMS, GOOD[name]))


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_term(name: str) -> None:
    definition, says = BAD[name]
    with pytest.raises(Malformed, match=says) as error:
        check_definition(4, (*TERMS, definition))
    assert str(error.value).startswith("term 4 (")


def view(*addends: Addend) -> View:
    return View(((3,),), addends)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (view(Addend(ONE, 9, AT)), "names term 9"),
        (view(Addend(ONE, -1, AT)), "names term -1"),
        (view(Addend(ONE, 1, AT)), "another number of indices"),
        (view(Addend(ONE, 0, ((0, ((1, 1),)),))), "variable 1"),
        (view(Addend(ONE, 2, AT, ((9, (BOX,)),))), "names term 9"),
        (view(Addend(ONE, 2, AT, ((0, (BOX,)),))), "takes none"),
        (Pieces(0, 1, (3,), (view(Addend(ONE, 9, AT)),)), "names term 9"),
    ],
)
def test_what_no_tensor_is_made_of(value: Tensor, says: str) -> None:
    check_parts(view(Addend(ONE, 0, AT), Addend(ONE, 2, AT, ((2, (BOX,)),))), TERMS)
    with pytest.raises(Malformed, match=says):
        check_parts(value, TERMS)


def of(*shape: object) -> View:
    return View(tuple((n,) for n in shape), ())  # type: ignore[misc]


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (of(2, 3), (2, 3)),
        (View(((2, 3), ()), ()), (6, 1)),
        (of(N - 1), (N - 1,)),
        (Pieces(1, 1, (2, 3), (of(4, 2), of(4, 3))), (4, 5)),
        (Pieces(0, 2, (1, 2), (of(2), of(4))), (6,)),
        (Pieces(0, 1, (N, 0), (of(N), of(0))), (N,)),
    ],
)
def test_shapes(value: Tensor, shape: tuple[object, ...]) -> None:
    assert shape_of(value) == shape


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (View(((-2, -3),), ()), "negative size"),
        (View(((N - 2, 3),), ()), "negative size"),
        (Pieces(0, 1, (), ()), "other ranks"),
        (Pieces(1, 1, (2,), (of(2),)), "other ranks"),
        (Pieces(-1, 1, (2,), (of(2),)), "other ranks"),
        (Pieces(0, 1, (2, 2), (of(2), of(2, 2))), "other ranks"),
        (Pieces(0, 1, (2,), (of(2), of(2))), "length is not given"),
        (Pieces(0, 1, (2, 3), (of(2), of(2))), "another length"),
        (Pieces(0, 2, (-1, 3), (of(-2), of(6))), "negative length"),
        (Pieces(0, 0, (1,), (of(0),)), "no rows"),
        (Pieces(0, N - 1, (1,), (of(N - 1),)), "no rows"),
        (Pieces(0, 1, (2, 2), (of(2, 3), of(2, 4))), "fit together"),
    ],
)
def test_what_has_no_shape(value: Tensor, says: str) -> None:
    with pytest.raises(Malformed, match=says):
        shape_of(value)


def test_sizes_are_at_least_what_their_symbols_make_them() -> None:
    assert at_least(3, 3)
    assert not at_least(2, 3)
    assert at_least(N, 1)
    assert not at_least(N, 2)
    assert at_least(N * N - 1, 0)
    assert at_least(2 * N - 1, 1)
    assert not at_least(N - 2, 0)
