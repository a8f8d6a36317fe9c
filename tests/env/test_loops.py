"""What is noted at a loop: where it follows from the loop it is nothing new, and else it is another loop."""

from __future__ import annotations

import pytest

from rewright.env.datasets import dataset
from rewright.env.dryrun import dry_change
from rewright.env.evidence import evidence_for
from rewright.env.session import Session
from tests.env.test_inlining import proofs

LOOP = """body {{ s = (s32[], u32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  v = u32[4] get-tuple-element(s), index=1 one = s32[] constant({step}) j = s32[] {add}(i, one) w = u32[4] not(v)
  ROOT o = (s32[], u32[4]) tuple(j, w) }}
cond {{ s = (s32[], u32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant({bound})
  ROOT l = pred[] compare(i, n), direction={test} }}
ENTRY main {{ x = u32[4] parameter(0) y = s32[] parameter(1) zero = s32[] constant({start})
  start = (s32[], u32[4]) tuple({first}, x)
  e = (s32[], u32[4]) while(start), condition=cond, body=body{note}
  ROOT r = (u32[4], s32[]) tuple(f, y) }}""".replace("ROOT r", "f = u32[4] get-tuple-element(e), index=1\n  ROOT r")
PLAIN = {"step": "2", "add": "add", "bound": "9", "test": "LT", "start": "1", "first": "zero"}
NOTE = (
    ', backend_config={"known_trip_count":{"n":"4"},"known_init_step":{"init":"1","step":"2"},'
    '"known_induction_variable":{"tuple_index":"0"},"dynamic_variables":[]}'
)


def noted(xla: Session, note: str, **changes: str) -> list[str]:
    """The grades of the sites between a loop without a note and with one."""
    plain = {**PLAIN, **changes}
    return proofs(xla, LOOP.format(**plain, note=""), LOOP.format(**plain, note=note))


def _n(count: int) -> str:
    return NOTE.replace('"n":"4"', f'"n":"{count}"')


RIGHT = {
    "as XLA writes it": (NOTE, {}),
    "up to and with the bound": (_n(5), {"test": "LE"}),
    "downwards": (NOTE.replace('"step":"2"', '"step":"-2"'), {"step": "-2", "test": "GT", "bound": "-7"}),
    "never": (_n(0), {"bound": "1"}),
    "without start and step": (NOTE.replace('"known_init_step":{"init":"1","step":"2"},', ""), {}),
}
WRONG = {
    "once less": (_n(3), {}),
    "once more": (_n(5), {}),
    "another start": (NOTE.replace('"init":"1"', '"init":"0"'), {}),
    "another step": (NOTE.replace('"step":"2"', '"step":"1"'), {}),
    "another part": (NOTE.replace('"tuple_index":"0"', '"tuple_index":"1"'), {}),
    "a part that is not there": (NOTE.replace('"tuple_index":"0"', '"tuple_index":"7"'), {}),
    "more than that": (NOTE.replace('"dynamic_variables":[]', '"unrolled":true'), {}),
    "variables that change": (NOTE.replace('"dynamic_variables":[]', '"dynamic_variables":[1]'), {}),
    "no count": (NOTE.replace('"known_trip_count":{"n":"4"},', ""), {}),
    "a start that is an input": (NOTE, {"first": "y"}),
    "another bound": (NOTE, {"bound": "11"}),
    "another test": (NOTE, {"test": "LE"}),
    "a test that is not monotone": (NOTE, {"test": "NE"}),
    "a product": (NOTE, {"add": "multiply"}),
    "a step backwards": (NOTE, {"step": "-2"}),
    "out of its integers": (_n(1), {"start": "2147483647", "bound": "2147483647", "test": "LE"}),
}


@pytest.mark.parametrize(("note", "changes"), RIGHT.values(), ids=RIGHT.keys())
def test_a_note_that_follows_is_nothing_new(xla: Session, note: str, changes: dict[str, str]) -> None:
    assert noted(xla, note, **changes) == ["same"]


@pytest.mark.parametrize(("note", "changes"), WRONG.values(), ids=WRONG.keys())
def test_any_other_note_is_another_loop(xla: Session, note: str, changes: dict[str, str]) -> None:
    assert noted(xla, note, **changes) == [""]


def test_what_xla_notes_is_proved(xla: Session) -> None:
    (entry,) = dataset(xla, "jax:recurrent")
    notes = [c for c in xla.changes(entry.module) if c.name == "while-loop-trip-count-annotator"]
    assert notes
    for change in notes:
        graph = dry_change(xla, change, tested=False).graph
        assert len(graph)
        assert [evidence_for(graph, n, None).grade for n in range(len(graph))] == ["same"] * len(graph)
