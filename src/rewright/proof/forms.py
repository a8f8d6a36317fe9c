"""Whether the terms and the values of a certificate are well formed: what they must be to mean anything.

A term that is defined over itself, or a claim that is about fewer elements than the tensor has, would make everything
provable, so none of this is left to whoever reads them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import cast

from rewright.claims import language
from rewright.claims.language import (
    READERS,
    Access,
    Add,
    Content,
    Definition,
    Fold,
    Guard,
    Input,
    Number,
    Opaque,
    Position,
    Ranged,
    Reader,
    Region,
    Size,
    Table,
    Take,
    Tensor,
    View,
)
from rewright.ir.dims import Dim, Shape, SizeExpr, product, symbol
from rewright.ir.types import DType


class Malformed(Exception):
    """What is no term or no tensor; the message says why."""


def check_definition(term: int, terms: Sequence[Definition]) -> None:
    """Raise Malformed unless a term is defined over earlier terms as its kind demands."""
    try:
        _check_definition(term, terms)
    except Malformed as error:
        raise Malformed(f"term {term} ({terms[term].kind}) is no term: {error}") from None
    except (TypeError, ValueError, IndexError, AttributeError):
        raise Malformed(f"term {term} ({terms[term].kind}) is no term: its data are of another form") from None


def _check_definition(term: int, terms: Sequence[Definition]) -> None:
    one = terms[term]
    if any(not 0 <= operand < term for operand in one.operands):
        raise Malformed("it is defined over terms that are not earlier ones")
    ranks = [terms[operand].rank for operand in one.operands]
    if isinstance(one.content, READERS):
        _demand(len(one.accesses) == len(ranks), "it does not say where it reads every operand")
        for access, rank in zip(one.accesses, ranks, strict=True):
            _demand(len(access) == rank, "it reads an operand at another number of indices than that has")
    _demand(one.rank >= 0, f"there are no terms of rank {one.rank}")
    _check_content(one.content, one, ranks, terms)


def check_parts(tensor: Tensor, terms: Sequence[Definition]) -> None:
    """Raise Malformed unless a tensor is made of terms as they are."""
    for view in _views(tensor):
        digits = sum(map(len, view.dims))
        for addend in view.addends:
            _demand(0 <= addend.term < len(terms), f"it names term {addend.term}, which the certificate does not have")
            _demand(len(addend.access) == terms[addend.term].rank, "it reads a term at another number of indices")
            _variables([addend.access], range(digits))
            for hole, region in addend.parts:
                _demand(0 <= hole < len(terms), f"it names term {hole}, which the certificate does not have")
                _region(region, terms[hole])


def shape_of(tensor: Tensor) -> Shape:
    """The shape of a tensor; raises Malformed for a tensor that has none.

    Digits and rows are never fewer than none, so that whoever looks at all of them looks at every element.
    """
    if isinstance(tensor, View):
        for digits in tensor.dims:
            _demand(len(digits) == 1 or all(at_least(n, 0) for n in digits), "a negative size")
        return tuple(product(digits) for digits in tensor.dims)
    shapes = [shape_of(part) for part in tensor.parts]
    rank = len(shapes[0]) if shapes else 0
    _demand(0 <= tensor.axis < rank and all(len(shape) == rank for shape in shapes), "parts of other ranks")
    _demand(len(tensor.lengths) == len(shapes), "parts of which the length is not given")
    _demand(tensor.rows == 1 or all(at_least(n, 0) for n in tensor.lengths), "parts of negative length")
    _demand(at_least(tensor.rows, 1), "parts along no rows")
    axis, total = tensor.axis, cast("Dim", 0)
    for shape, length in zip(shapes, tensor.lengths, strict=True):
        rest = (*shape[:axis], *shape[axis + 1 :])
        _demand(shape[axis] == tensor.rows * length, "a part of another length than is said")
        _demand(rest == (*shapes[0][:axis], *shapes[0][axis + 1 :]), "parts that do not fit together")
        total = total + length
    return (*shapes[0][:axis], tensor.rows * total, *shapes[0][axis + 1 :])


def at_least(size: Dim, low: int) -> bool:
    """Whether a size is no less than a number, whatever the symbols are: they are no less than one."""
    if not isinstance(size, SizeExpr):
        return size >= low
    total: Dim = -low
    for names, coefficient in size.terms:
        factors: Dim = coefficient
        for name in names:
            factors = factors * (symbol(name) + 1)
        total = total + factors
    return total >= 0 if isinstance(total, int) else all(coefficient >= 0 for _, coefficient in total.terms)


def _views(tensor: Tensor) -> Iterable[View]:
    if isinstance(tensor, View):
        yield tensor
        return
    for part in tensor.parts:
        yield from _views(part)


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Malformed(otherwise)


def _variables(accesses: Iterable[Access], known: range) -> None:
    for access in accesses:
        for _, strides in access:
            for variable, _ in strides:
                _demand(variable in known, f"it reads at variable {variable}, which it does not have")


def _region(region: Region, hole: Definition) -> None:
    """Boxes of the ranges of a fold, none of them backwards, or sets of the values of a guard."""
    _demand(isinstance(hole.content, Fold | Guard), "a range of a term that takes none")
    binders = len(hole.content.axes) if isinstance(hole.content, Fold) else 1
    for box, _ in region:
        _demand(len(box) == binders, "a range over another number of variables")
        for low, high in box:
            if isinstance(hole.content, Fold):
                _demand(low is not None and high is not None, "a fold without bounds")
            if low is not None and high is not None:
                _demand(not isinstance(high - low, int) or at_least(high - low, 0), "a range that runs backwards")


def _check_content(content: Content, one: Definition, ranks: Sequence[int], terms: Sequence[Definition]) -> None:
    """What each kind of terms demands of its operands and its rank."""
    named = [getattr(content, field) for field in ("name", "function", "kind") if hasattr(content, field)]
    _demand(all(isinstance(name, str) for name in named), "a name that is no text")
    if isinstance(content, READERS):
        _check_reader(content, one.rank, ranks)
    elif isinstance(content, Fold):
        _check_fold(content, one.rank, ranks)
    elif isinstance(content, Ranged):
        _demand(len(ranks) == 1 and one.rank == ranks[0], "a range is that of one term")
        _region(content.region, terms[one.operands[0]])
    else:
        _demand(not ranks, f"a term of kind {one.kind} reads nothing")
        _check_leaf(content, one.rank)


def _check_leaf(content: Content, rank: int) -> None:
    if isinstance(content, Number):
        try:
            _demand(not math.isnan(float(str(content.value))), "it is no number")
        except ValueError:
            raise Malformed("it is no number") from None
    if isinstance(content, Table):
        fits = rank == len(content.shape) and math.prod(content.shape) == len(content.values)
        _demand(fits, "a table of another shape")
    elif not isinstance(content, Input):
        what = "index" if isinstance(content, Position) else "size" if isinstance(content, Size) else "number"
        _demand(rank == isinstance(content, Position), f"it is no {what}")


def _check_fold(fold: Fold, rank: int, ranks: Sequence[int]) -> None:
    axes = fold.axes
    _demand(len(ranks) == 1 and len(set(axes)) == len(axes), "a fold of one term over different axes")
    _demand(all(0 <= axis < ranks[0] for axis in axes), "a fold over axes that its operand does not have")
    _demand(rank == ranks[0] - len(axes), "a fold of another rank than what it leaves")


def _check_reader(content: Reader, rank: int, ranks: Sequence[int]) -> None:
    if isinstance(content, Opaque):
        _check_opaque(content, rank, ranks)
        return
    if isinstance(content, Take):
        _demand(bool(ranks), "a look-up in nothing")
        _variables(content.accesses[1:], range(rank))
        for _, strides in content.accesses[0]:
            for variable, _ in strides:
                _demand(-len(ranks) < variable < rank, f"it reads at variable {variable}, which it does not have")
        return
    if isinstance(content, Add):
        _demand(len(content.coefficients) == len(ranks), "a coefficient is missing")
    elif isinstance(content, Guard):
        _demand(len(ranks) == 2, "a guard has a test and a value")
    else:
        _demand(bool(ranks), "a function of nothing")
    _variables(content.accesses, range(rank))


def _check_opaque(content: Opaque, rank: int, ranks: Sequence[int]) -> None:
    kinds, layout, own, windows = content.kinds, content.layout, content.own, content.windows
    _demand(len(layout) == len(ranks) and len(kinds) in (0, len(ranks)), "it does not say how every operand is read")
    _demand(all(kind == "float" or kind in _DTYPES for kind in kinds), "an operand of no element type")
    digits = [n for axes in layout for axis in axes if isinstance(axis, tuple) for n in axis]
    _demand(len(digits) == len(windows) and 0 <= own <= rank, "it does not place every digit")
    _demand(all(at_least(n, 1) for n in digits), "an axis of no elements")
    shared = {axis for axes in layout for axis in axes if isinstance(axis, int)}
    _demand(shared <= set(range(len(shared) + own)), "an axis that its result does not have")
    inner = {window[0] for window in windows if window is not None}
    frame = rank - own + len(inner)
    _demand(all(0 <= variable < frame for variable in inner), "a window of a variable that it does not have")
    _variables(content.accesses, range(frame))


_DTYPES = frozenset(kind.value for kind in DType if not kind.is_float)


def holes(term: int, definition: Definition | None, inner: Sequence[frozenset[int]]) -> frozenset[int]:
    """The folds and guards inside a term that have no range, from those inside of its operands."""
    found = frozenset[int]().union(*inner)
    if definition is not None and isinstance(definition.content, language.Fold | language.Guard):
        return found | {term}
    is_ranged = definition is not None and isinstance(definition.content, language.Ranged)
    return found - {definition.operands[0]} if definition is not None and is_ranged else found
