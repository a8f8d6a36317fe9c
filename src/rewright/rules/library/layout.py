"""Rules that move elements: broadcast, concatenate, transpose, reverse, reshape."""

from __future__ import annotations

from rewright.ir.types import DType
from rewright.rules.library.arithmetic import EXTRA, MODELS, XLA
from rewright.rules.pattern import apply, concat, constant, floats, iota, operator, scalar
from rewright.rules.rule import Rule, rule
from rewright.terms.parameters import natural, size

a, b, d, h, k, m, n, p, q, r = (size(name) for name in "abdhkmnpqr")
s, e, w = natural("s"), natural("e"), natural("w")
e1, e2 = natural("e1"), natural("e2")
A, B = floats("A", m, n), floats("B", m, n)
v, u = floats("v", m), floats("u", n)
X, Y, Z = floats("X", p, n), floats("Y", q, n), floats("Z", r, n)
Q1, R3 = floats("Q", a * b), floats("R", a * b, d)
T = floats("T", a, b, d)
c = scalar("c")
f, g = operator("f"), operator("g", 2)
full = c.broadcast((m, n))

RULES: tuple[Rule, ...] = (
    rule(
        "add-of-broadcasts",
        "bc(v) + bc(w) = bc(v + w)",
        v.broadcast((m, n), (0,)) + floats("w", m).broadcast((m, n), (0,)),
        (v + floats("w", m)).broadcast((m, n), (0,)),
        provenance=XLA + "bcast/01",
    ),
    rule(
        "multiply-of-broadcasts",
        "bc(v) bc(w) = bc(v w)",
        v.broadcast((m, n), (0,)) * floats("w", m).broadcast((m, n), (0,)),
        (v * floats("w", m)).broadcast((m, n), (0,)),
        provenance=XLA + "bcast/02",
    ),
    rule(
        "transpose-of-scalar",
        "transpose(c@S) = c@S'",
        full.transpose(),
        c.broadcast((n, m)),
        provenance=XLA + "bcast/03",
    ),
    rule("reverse-of-scalar", "rev(c@S) = c@S", full.reverse(), full, provenance=XLA + "bcast/04"),
    rule(
        "slice-of-scalar",
        "slice(c@S, s, e, p) = c@ceil((e - s) / p)",
        c.broadcast((n,)).slice(s, e, p),
        c.broadcast(floats("x", n).slice(s, e, p).shape),
        provenance=XLA + "bcast/05",
    ),
    rule(
        "broadcast-of-iota",
        "bc(iota(a), T) = iota(a x T)",
        iota((m,)).broadcast((m, n), (0,)),
        iota((m, n)),
        provenance=XLA + "bcast/07",
    ),
    rule(
        "broadcast-of-broadcast",
        "bc(bc(v, T), U) = bc(v, T x U)",
        v.broadcast((m, n), (0,)).broadcast((m, n, k), (0, 1)),
        v.broadcast((m, n, k), (0,)),
        provenance=XLA + "bcast/08",
    ),
    rule(
        "concat-list",
        "cat[X, Y] = cat(X, Y)",
        concat(0, X, Y),
        concat(0, concat(0, X), Y),
        provenance=XLA + "concat/01",
    ),
    rule(
        "concat-associates",
        "cat(X, cat(Y, Z)) = cat(cat(X, Y), Z)",
        concat(0, X, concat(0, Y, Z)),
        concat(0, concat(0, X, Y), Z),
        provenance=XLA + "concat/02",
    ),
    rule(
        "concat-flatten",
        "cat[X, Y, Z] = cat(X, cat(Y, Z))",
        concat(0, X, Y, Z),
        concat(0, X, concat(0, Y, Z)),
        provenance=XLA + "concat/03",
    ),
    rule(
        "concat-of-slices",
        "cat(A[s:e], A[e:f]) = A[s:f]",
        concat(0, A.slice((s, 0), (e1, n)), A.slice((e1, 0), (e2, n))),
        A.slice((s, 0), (e2, n)),
        provenance=XLA + "concat/04",
    ),
    rule(
        "concat-scalar-first",
        "cat(c@w, Y) = pad(Y, c, low=w)",
        concat(0, c.broadcast((w, n)), Y),
        Y.pad(c, (w, 0), (0, 0)),
        provenance=XLA + "concat/05",
    ),
    rule(
        "concat-scalar-last",
        "cat(X, c@w) = pad(X, c, high=w)",
        concat(0, X, c.broadcast((w, n))),
        X.pad(c, (0, 0), (w, 0)),
        provenance=XLA + "concat/06",
    ),
    rule(
        "concat-nested",
        "cat(X, cat(Y, Z)) = cat[X, Y, Z]",
        concat(0, X, concat(0, Y, Z)),
        concat(0, X, Y, Z),
        provenance=XLA + "concat/07",
    ),
    rule(
        "iota-of-one",
        "iota over an axis of size 1 = 0",
        iota((1, n)),
        constant(0, (1, n), DType.I64),
        provenance=XLA + "iota/01",
    ),
    rule(
        "transpose-transpose",
        "transpose(transpose(T, p), q) = transpose(T, p . q)",
        T.transpose(1, 2, 0).transpose(1, 0, 2),
        T.transpose(2, 1, 0),
        provenance=XLA + "relabel/01",
    ),
    rule("transpose-identity", "transpose(A, id) = A", A.transpose(0, 1), A, provenance=XLA + "relabel/02"),
    rule(
        "reverse-of-one",
        "rev over an axis of size 1 is nothing",
        floats("A", 1, n).reverse(0),
        floats("A", 1, n),
        provenance=XLA + "reverse/01",
    ),
    rule("reverse-reverse", "rev(rev(A)) = A", A.reverse().reverse(), A, provenance=XLA + "reverse/02"),
    rule(
        "reverse-combined",
        "rev_{b,c}(rev_{a,b}(T)) = rev_{a,c}(T)",
        T.reverse(0, 1).reverse(1, 2),
        T.reverse(0, 2),
        provenance=XLA + "reverse/03",
    ),
    rule(
        "reverse-of-sum", "rev(A + c) = rev(A) + c", (A + c).reverse(), A.reverse() + c, provenance=XLA + "reverse/04"
    ),
    rule("reshape-identity", "reshape(A, its shape) = A", A.reshape(m, n), A, provenance=EXTRA + "E01"),
    rule(
        "reshape-of-scalar",
        "reshape(c@(a,b)) = c@ab",
        c.broadcast((a, b)).reshape(a * b),
        c.broadcast((a * b,)),
        provenance=EXTRA + "E03",
    ),
    rule(
        "reshape-of-product",
        "reshape(A B) = reshape(A) reshape(B)",
        (A * B).reshape(m * n),
        A.reshape(m * n) * B.reshape(m * n),
        provenance=EXTRA + "E05",
    ),
    rule(
        "broadcast-of-unit-axis",
        "bc(reshape(v, [m,1])) = bc(v)",
        v.reshape(m, 1).broadcast((m, 1, n), (0, 1)),
        v.broadcast((m, 1, n), (0,)),
        provenance=EXTRA + "E07",
    ),
    rule(
        "concat-of-units-is-stack",
        "cat of reshaped rows = cat of broadcast rows",
        concat(0, u.reshape(1, n), floats("z", n).reshape(1, n)),
        concat(0, u.broadcast((1, n), (1,)), floats("z", n).broadcast((1, n), (1,))),
        provenance=EXTRA + "E13",
    ),
    rule(
        "reverse-of-reshape",
        "rev(reshape(Q)) = reshape(rev(Q))",
        Q1.reshape(a, b).reverse(),
        Q1.reverse().reshape(a, b),
        provenance=EXTRA + "E15",
    ),
    rule(
        "transpose-of-iota",
        "transpose(iota along 0) = iota along 1",
        iota((m, n), 0).transpose(),
        iota((n, m), 1),
        provenance=EXTRA + "E63",
    ),
    rule(
        "compare-iotas-transposed",
        "(iota0 <= iota1) = transpose(iota1 <= iota0)",
        iota((n, n), 0) <= iota((n, n), 1),
        (iota((n, n), 1) <= iota((n, n), 0)).transpose(),
        provenance=EXTRA + "E65",
    ),
    rule(
        "function-of-concat",
        "f(cat(X, Y)) = cat(f(X), f(Y))",
        apply(f, concat(0, X, Y)),
        concat(0, apply(f, X), apply(f, Y)),
        provenance=MODELS + "layout 1",
    ),
    rule(
        "binary-function-of-concat",
        "g(cat(X, Y), cat(X', Y')) = cat(g(X, X'), g(Y, Y'))",
        apply(g, concat(0, X, Y), concat(0, floats("V", p, n), floats("W", q, n))),
        concat(0, apply(g, X, floats("V", p, n)), apply(g, Y, floats("W", q, n))),
    ),
    rule(
        "function-of-slice",
        "f(slice(A)) = slice(f(A))",
        apply(f, A.slice((s, 0), (e, n), (p, 1))),
        apply(f, A).slice((s, 0), (e, n), (p, 1)),
        provenance=MODELS + "layout 2",
    ),
    rule(
        "function-of-transpose", "f(transpose(A)) = transpose(f(A))", apply(f, A.transpose()), apply(f, A).transpose()
    ),
    rule(
        "function-of-reshape",
        "f(reshape(R)) = reshape(f(R))",
        apply(f, R3.reshape(a, b, d)),
        apply(f, R3).reshape(a, b, d),
    ),
    rule("function-of-reverse", "f(rev(A)) = rev(f(A))", apply(f, A.reverse(0)), apply(f, A).reverse(0)),
    rule(
        "function-of-broadcast",
        "f(bc(v)) = bc(f(v))",
        apply(f, v.broadcast((m, n), (0,))),
        apply(f, v).broadcast((m, n), (0,)),
    ),
    rule(
        "transpose-composed",
        "transpose(transpose(T)) with composed axes",
        T.transpose(2, 0, 1).transpose(2, 0, 1),
        T.transpose(1, 2, 0),
        provenance=MODELS + "layout 3",
    ),
    rule(
        "reshape-reshape",
        "reshape(reshape(T)) = reshape(T)",
        T.reshape(a * b, d).reshape(a, b * d),
        T.reshape(a, b * d),
        provenance=MODELS + "layout 4",
    ),
    rule(
        "reshape-round-trip",
        "reshape(reshape(R, [a,b,d]), [ab,d]) = R",
        R3.reshape(a, b, d).reshape(a * b, d),
        R3,
        provenance=MODELS + "layout 5",
    ),
    rule(
        "reshape-not-nested",
        "reshape(reshape([2k, 3n] -> [3, 2kn]) -> [2k, 3n]) is nothing",
        floats("A", 2 * k, 3 * n).reshape(3 * k, 2 * n).reshape(2 * k, 3 * n),
        floats("A", 2 * k, 3 * n),
        provenance=MODELS + "layout 5b",
    ),
    rule(
        "transpose-of-groups",
        "transpose of reshaped groups = reshape of the transpose",
        R3.transpose().reshape(d, a, b),
        R3.reshape(a, b, d).transpose(2, 0, 1),
        provenance=MODELS + "layout 6",
    ),
    rule(
        "repeat-heads",
        "repeating by broadcast = by stacking copies",
        floats("K", h, d).broadcast((h, 2, d), (0, 2)).reshape(2 * h, d),
        concat(1, floats("K", h, d).reshape(h, 1, d), floats("K", h, d).reshape(h, 1, d)).reshape(2 * h, d),
        provenance=MODELS + "layout 16",
    ),
    rule(
        "transpose-of-concat",
        "transpose(cat_0(X, Y)) = cat_1(transpose(X), transpose(Y))",
        concat(0, X, Y).transpose(),
        concat(1, X.transpose(), Y.transpose()),
    ),
    rule(
        "reverse-of-concat",
        "rev(cat(X, Y)) = cat(rev(Y), rev(X))",
        concat(0, X, Y).reverse(0),
        concat(0, Y.reverse(0), X.reverse(0)),
    ),
    rule(
        "broadcast-then-reshape",
        "reshape(bc(v, [m,k,n]), [mk, n]) row by row",
        u.broadcast((m, k, n), (2,)).reshape(m * k, n),
        u.broadcast((m * k, n), (1,)),
    ),
)
