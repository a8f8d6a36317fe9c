"""Slices, pads, and blocks at computed starts."""

from __future__ import annotations

from rewright.ir.dims import SizeExpr
from rewright.ir.types import DType
from rewright.rules.library.arithmetic import MODELS, XLA
from rewright.rules.pattern import Tensor, concat, constant, dynamic_slice, dynamic_update, floats, scalar
from rewright.rules.rule import Rule, rule
from rewright.terms.conditions import AnyOf, AtMost, IsFloor, IsMaximum
from rewright.terms.parameters import integer, natural, size

n, k, m, p, q, r, P0 = (size(name) for name in ("n", "k", "m", "p", "q", "r", "step"))
s, e, s2, e2, t = (natural(name) for name in ("s", "e", "s2", "e2", "t"))
lo, hi, lo2, hi2 = (integer(name) for name in ("lo", "hi", "lo2", "hi2"))
count = natural("count")
lp, lm, hp = natural("lp"), natural("lm"), natural("hp")
nl, nh, nl2 = natural("nl"), natural("nh"), natural("nl2")
A, M = floats("A", n), floats("M", n, m)
X, Y, Z = floats("X", p), floats("Y", q), floats("Z", r)
c = scalar("c")
i, j = scalar("i", DType.I64), scalar("j", DType.I64)
L, L2 = size("L"), size("L2")
U = floats("U", L)


def starts(x: Tensor, most: float | SizeExpr) -> tuple[Tensor, Tensor]:
    """That a block starts inside, so that it is not moved."""
    return x >= 0, x <= most


RULES: tuple[Rule, ...] = (
    rule("slice-all", "slice(A, 0, |A|, 1) = A", A.slice(0, n), A, provenance=XLA + "slice/01"),
    rule(
        "slice-scalar",
        "slice(c@S) = c@S'",
        c.broadcast((n, m)).slice((s, 0), (e, m), (P0, 1)),
        c.broadcast(M.slice((s, 0), (e, m), (P0, 1)).shape),
        provenance=XLA + "slice/02",
    ),
    rule(
        "slice-of-broadcast",
        "slice(bc(A)) = bc(slice(A))",
        A.broadcast((n, m), (0,)).slice((s, s2), (e, e2), (P0, 1)),
        A.slice(s, e, P0).broadcast(M.slice((s, s2), (e, e2), (P0, 1)).shape, (0,)),
        provenance=XLA + "slice/03",
    ),
    rule(
        "slice-undoes-pad",
        "slicing the elements out of a pad gives them back",
        A.pad(c, nl, nh, t).slice(nl, n + nl + (n - 1) * t, t + 1),
        A,
        provenance=XLA + "slice/04",
    ),
    rule(
        "slice-inside-padding",
        "a slice inside the padding is constant",
        A.pad(c, lo, hi, t).slice(s, e, P0),
        c.broadcast(A.pad(c, lo, hi, t).slice(s, e, P0).shape),
        where=[AnyOf(((AtMost(e, lo),), (AtMost(n + lo + (n - 1) * t, s),)))],
        provenance=XLA + "slice/05",
    ),
    rule(
        "slice-inside-padded",
        "a slice that misses the padding is a slice of the operand",
        A.pad(c, nl, nh).slice(s, e),
        A.slice(s - nl, e - nl),
        where=[AtMost(nl, s), AtMost(e, n + nl)],
        provenance=XLA + "slice/06",
    ),
    rule(
        "slice-slice",
        "slice(slice(A)) = slice(A)",
        A.slice(s, e).slice(s2, e2),
        A.slice(s + s2, s + e2),
        provenance=XLA + "slice/07",
    ),
    rule(
        "slice-last-part",
        "slice(cat(X, Y), |X|, |X|+|Y|) = Y",
        concat(0, X, Y).slice(p, p + q),
        Y,
        provenance=XLA + "slice/08",
    ),
    rule(
        "slice-of-broadcast-axis",
        "slicing a broadcast axis makes it shorter",
        A.broadcast((n, m), (0,)).slice((0, s), (n, e)),
        A.broadcast(M.slice((0, s), (n, e)).shape, (0,)),
        provenance=XLA + "slice/09",
    ),
    rule(
        "slice-of-first-part",
        "slice(cat(X, Y)) inside X",
        concat(0, X, Y).slice(s, e, P0),
        X.slice(s, e, P0),
        where=[AtMost(e, p)],
        provenance=XLA + "slice/10",
    ),
    rule(
        "slice-of-second-part",
        "slice(cat(X, Y)) inside Y",
        concat(0, X, Y).slice(s, e, P0),
        Y.slice(s - p, e - p, P0),
        where=[AtMost(p, s)],
        provenance=XLA + "slice/11",
    ),
    rule(
        "slice-of-last-parts",
        "slice(cat(X, Y, Z)) after X",
        concat(0, X, Y, Z).slice(s, e, P0),
        concat(0, Y, Z).slice(s - p, e - p, P0),
        where=[AtMost(p, s)],
        provenance=XLA + "slice/12",
    ),
    rule(
        "slice-of-reverse",
        "slice(rev(A), s, e, p) = rev(slice(A, s', |A| - s, p))",
        A.reverse().slice(s, e, P0),
        A.slice(n - s - (P0 * count + 1), n - s, P0).reverse(),
        where=[AtMost(s + 1, e), IsFloor(count, e - s - 1, P0)],
        provenance=XLA + "slice/13",
    ),
    rule(
        "dynamic-slice-is-slice",
        "ds(A, s, L) = slice(A, s, s + L)",
        dynamic_slice(A, [constant(s, (), DType.I64)], (L,)),
        A.slice(s, s + L),
        where=[AtMost(s + L, n)],
        provenance=XLA + "dyslice/01",
    ),
    rule("dynamic-slice-of-all", "ds(A, 0, |A|) = A", dynamic_slice(A, [0], (n,)), A, provenance=XLA + "dyslice/02"),
    rule(
        "dynamic-slice-of-broadcast",
        "ds(bc(A, T), (i, j), (L, L')) = bc(ds(A, i, L), L')",
        dynamic_slice(A.broadcast((n, m), (0,)), [i, j], (L, L2)),
        dynamic_slice(A, [i], (L,)).broadcast((L, L2), (0,)),
        provenance=XLA + "dyslice/03",
    ),
    rule(
        "dynamic-slice-of-scalar",
        "ds(c@S, i, L) = c@L",
        dynamic_slice(c.broadcast((n,)), [i], (L,)),
        c.broadcast((L,)),
        provenance=XLA + "bcast/06",
    ),
    rule(
        "transpose-of-dynamic-slice",
        "transpose(ds(M, (i, j), L)) = ds(transpose(M), (j, i), L')",
        dynamic_slice(M, [i, j], (L, L2)).transpose(),
        dynamic_slice(M.transpose(), [j, i], (L2, L)),
        provenance=XLA + "dyslice/04",
    ),
    rule(
        "dynamic-slice-twice",
        "ds(ds(A, i, L1), j, L2) = ds(A, i + j, L2) where both blocks lie inside",
        dynamic_slice(dynamic_slice(A, [i], (L,)), [j], (L2,)),
        dynamic_slice(A, [i + j], (L2,)),
        where=[*starts(i, n - L), *starts(j, L - L2)],
        provenance=XLA + "dyslice/05",
    ),
    rule(
        "update-zeros-and-add",
        "A + dus(0, U, i) = dus(A, U + ds(A, i, |U|), i)",
        A + dynamic_update(constant(0.0, (n,)), U, [i]),
        dynamic_update(A, U + dynamic_slice(A, [i], (L,)), [i]),
        provenance=XLA + "dyup/01",
    ),
    rule(
        "update-of-scalar-is-pad",
        "dus(c@N, U, s) = pad(U, c, low=s, high=N-|U|-s)",
        dynamic_update(c.broadcast((n,)), U, [constant(s, (), DType.I64)]),
        U.pad(c, s, n - L - s),
        where=[AtMost(s + L, n)],
        provenance=XLA + "dyup/02",
    ),
    rule(
        "update-all",
        "dus(A, U, 0) = U where U is as large as A",
        dynamic_update(A, floats("U", n), [0]),
        floats("U", n),
        provenance=XLA + "dyup/03",
    ),
    rule(
        "update-of-update",
        "dus(A, dus(ds(A, i, L), U, j), i) = dus(A, U, i + j) where both blocks lie inside",
        dynamic_update(A, dynamic_update(dynamic_slice(A, [i], (L,)), floats("U", L2), [j]), [i]),
        dynamic_update(A, floats("U", L2), [i + j]),
        where=[*starts(i, n - L), *starts(j, L - L2)],
        provenance=XLA + "dyup/04",
    ),
    rule("pad-nothing", "pad(A, c, 0, 0, 0) = A", A.pad(c, 0, 0), A, provenance=XLA + "pad/01"),
    rule(
        "pad-one-element",
        "interior padding of a single element is nothing",
        floats("A", 1).pad(c, lo, hi, t),
        floats("A", 1).pad(c, lo, hi),
        provenance=XLA + "pad/02",
    ),
    rule(
        "pad-of-broadcast",
        "pad(bc(A)) = bc(pad(A)) where the broadcast axis is not padded",
        A.broadcast((n, m), (0,)).pad(c, (lo, 0), (hi, 0), (t, 0)),
        A.pad(c, lo, hi, t).broadcast((A.pad(c, lo, hi, t).shape[0], m), (0,)),
        provenance=XLA + "pad/03",
    ),
    rule(
        "negative-pad-is-slice",
        "a pad with negative sides = a pad and a slice",
        A.pad(c, lo, hi),
        A.pad(c, lp, hp).slice(lm, n + lp + hi),
        where=[IsMaximum(lp, lo, 0), IsMaximum(lm, -lo, 0), IsMaximum(hp, hi, 0)],
        provenance=XLA + "pad/04",
    ),
    rule(
        "pad-pad",
        "pad(pad(A)) = pad(A) with added sides",
        A.pad(c, nl, nh, t).pad(c, lo2, hi2),
        A.pad(c, nl + lo2, nh + hi2, t),
        provenance=XLA + "padTwice",
    ),
    rule(
        "pad-low-twice",
        "pad_low(pad_low(A)) = pad_low(A) with added sides",
        A.pad(c, nl, 0).pad(c, nl2, 0),
        A.pad(c, nl + nl2, 0),
        provenance=XLA + "padLow",
    ),
    rule(
        "strided-slice-of-slice",
        "slice(slice(A, s, e, p), s2, e2, q) = slice(A, s + p s2, ..., p q)",
        A.slice(s, s + P0 * (k - 1) + 1, P0).slice(s2, s2 + q * (r - 1) + 1, q),
        A.slice(s + P0 * s2, s + P0 * s2 + P0 * q * (r - 1) + 1, P0 * q),
        provenance=MODELS + "layout 10",
    ),
    rule(
        "slice-across-concat",
        "a slice across the seam of cat(X, Y) = cat of two slices",
        concat(0, X, Y).slice(s, e),
        concat(0, X.slice(s, p), Y.slice(0, e - p)),
        where=[AtMost(s, p), AtMost(p, e)],
        provenance=MODELS + "layout 8",
    ),
    rule(
        "slice-right-of-concat",
        "slice(cat(X, Y), |X| + s, |X| + e) = slice(Y, s, e)",
        concat(0, X, Y).slice(p + s, p + e),
        Y.slice(s, e),
        where=[AtMost(e, q)],
        provenance=MODELS + "layout 7",
    ),
    rule(
        "slice-slice-rows",
        "slice(slice(M)) along both axes",
        M.slice((s, 0), (e, m)).slice((0, s2), (e - s, e2)),
        M.slice((s, s2), (e, e2)),
        provenance=MODELS + "layout 9",
    ),
    rule(
        "pad-pad-low-high",
        "pad(pad(A, low), high) = pad(A, low, high)",
        A.pad(c, nl, 0).pad(c, 0, nh),
        A.pad(c, nl, nh),
        provenance=MODELS + "layout 11",
    ),
    rule(
        "concat-zeros-is-pad",
        "cat(0, X, 0) = pad(X, 0)",
        concat(0, constant(0.0, (s,)), X, constant(0.0, (e,))),
        X.pad(0.0, s, e),
        provenance=MODELS + "layout 12",
    ),
    rule(
        "update-zeros-is-pad",
        "dus(0@N, U, s) = pad(U, 0, s, N - s - |U|)",
        dynamic_update(constant(0.0, (n,)), U, [constant(s, (), DType.I64)]),
        U.pad(0.0, s, n - L - s),
        where=[AtMost(s + L, n)],
        provenance=MODELS + "layout 13",
    ),
    rule(
        "slice-of-update",
        "ds(dus(A, U, i), i, |U|) = U",
        dynamic_slice(dynamic_update(A, U, [i]), [i], (L,)),
        U,
        provenance=MODELS + "layout 14",
    ),
    rule(
        "cache-append",
        "the filled prefix of a cache after an update = cat(prefix, update)",
        dynamic_update(A, U, [constant(s, (), DType.I64)]).slice(0, s + L),
        concat(0, A.slice(0, s), U),
        where=[AtMost(s + L, n)],
        provenance=MODELS + "layout 15",
    ),
)
