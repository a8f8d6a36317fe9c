"""Layouts decide what the bytes of a literal and a bitcast mean."""

from __future__ import annotations

import numpy as np

from rewright.env.claims import prove_alternative
from rewright.env.dryrun import dry_change
from rewright.env.session import Change, Session
from rewright.interp.program import run

HEAD = "HloModule m\nENTRY main { x = f32[2,3] parameter(0) "


def test_a_constant_with_its_columns_together_is_read_as_xla_prints_it(xla: Session) -> None:
    text = HEAD + "k = f32[2,3]{0,1} constant({{1,2,3},{4,5,6}}) ROOT r = f32[2,3] add(x, k) }"
    graph = xla.parse(text).graph()
    (value,) = run(graph, {"x": np.zeros((2, 3), np.float32)}).values()
    assert value.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_bitcast_that_transposes_is_no_reshape(xla: Session) -> None:
    before = xla.parse(HEAD + "y = f32[3,2] reshape(x) ROOT r = f32[3,2] tanh(y) }")
    after = xla.parse(HEAD + "c = f32[2,3]{0,1} copy(x) z = f32[3,2] bitcast(c) ROOT r = f32[3,2] tanh(z) }")
    run = dry_change(xla, Change(before, after, "pass", "", 0), tested=False)
    assert not prove_alternative(run.graph, 0).proved


def test_a_transpose_is_a_bitcast_of_another_layout(xla: Session) -> None:
    before = xla.parse(HEAD + "y = f32[3,2] transpose(x), dimensions={1,0} ROOT r = f32[3,2] tanh(y) }")
    after = xla.parse(HEAD + "c = f32[2,3]{0,1} copy(x) z = f32[3,2] bitcast(c) ROOT r = f32[3,2] tanh(z) }")
    run = dry_change(xla, Change(before, after, "pass", "", 0), tested=False)
    assert prove_alternative(run.graph, 0).proved
