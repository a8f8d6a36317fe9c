"""Terms that begin where a step reads them: the same steps are proved, by fewer lemmas."""

from __future__ import annotations

from functools import partial

import pytest

from rewright.claims.language import Access, Addend, View
from rewright.proof import theory
from rewright.proof.checker import Audit, audit
from rewright.proof.local import Conflict, Local
from rewright.refine import refine
from tests.programs import Pair, mlp, vocabulary_embedding
from tests.proof.defining import define
from tests.proof.programs import addends, deep

READ: Access = ((7, ((0, 1),)), (2, ((1, 1),)))


def audited(pair: Pair) -> Audit:
    certificate = refine(*pair).certificate
    assert certificate is not None
    return audit(certificate, *pair)


@pytest.mark.parametrize("make", [partial(mlp, 2), partial(vocabulary_embedding, 2), deep, addends])
def test_what_is_proved_does_not_depend_on_where_terms_begin(make: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(make)
    pair = make()
    moved = audited(pair)

    class Unmoved(Local):
        def __init__(self, *arguments: object, deep: bool) -> None:
            if deep:
                raise Conflict
            super().__init__(*arguments, deep=deep)  # type: ignore[arg-type]

    monkeypatch.setattr(theory, "Local", Unmoved)
    still = audited(pair)
    assert (moved.equations, moved.lemmas) == (still.equations, still.lemmas)
    assert moved.proved <= still.proved


def test_the_axes_of_a_fold_keep_their_ranges_in_any_order() -> None:
    """``sum over k0 in [3, 5), k1 in [7, 9) of body[k1, k0]`` begins at body[7, 3]."""
    body = define("add", ((1,),), (0,), (((0, ((0, 1),)), (0, ((1, 1),))),), 2)
    fold = define("fold", ("sum", (1, 0)), (1,), (), 0)
    local = Local({2: 0, 1: 1, 0: 2}, {2: fold, 1: body}, frozenset(), deep=True)
    region = (((3, 5), (7, 9)), 1)
    claim = local.tensor(View((), (Addend(1, 2, (), ((2, (region,)),)),)))
    assert isinstance(claim, View)
    assert claim.addends[0].parts == ((0, ((((0, 2), (0, 2)), 1),)),)
    local.definition(2)
    assert local.definition(1).accesses == (((0, ((0, 1),)), (0, ((1, 1),))),)
    assert local.tensor(View(((1,), (1,)), (Addend(1, 0, READ),))) == View(
        ((1,), (1,)), (Addend(1, 2, ((0, ((0, 1),)), (-1, ((1, 1),)))),)
    )


def test_a_term_that_would_begin_at_two_places_is_a_conflict() -> None:
    fold = define("fold", ("sum", (0,)), (0,), (), 1)
    other = define("fold", ("sum", (1,)), (0,), (), 1)
    local = Local({2: 0, 1: 1, 0: 2}, {2: other, 1: fold}, frozenset(), deep=True)
    local.tensor(View(((1,),), (Addend(1, 2, ((4, ((0, 1),)),)), Addend(1, 1, ((0, ((0, 1),)),)))))
    local.definition(2)
    with pytest.raises(Conflict):
        local.definition(1)
