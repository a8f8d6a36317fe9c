"""What a pass did, site by site: all of it is XLA's result, none of it the original, and any of it means the same."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from rewright.env.alternatives import ROOT, Alternative, AlternativeGraph, Provenance, Use, merge
from rewright.env.dryrun import DryRun, dry_change, dry_run
from rewright.env.hlo.editing import with_entry
from rewright.env.module import HloModule
from rewright.env.session import Change, Session
from rewright.env.sites import split
from rewright.env.testing import compare_modules
from rewright.frontends.hlo.order import Cycle
from rewright.ir.errors import RewrightError
from tests.env.modules import DTYPES, LOOP, RATES

PROVENANCE = Provenance("xla", "algsimp")
TWICE = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY main { x = f32[4,3] parameter(0) zero = f32[] constant(0)
  rows = f32[4] reduce(x, zero), dimensions={1}, to_apply=add
  columns = f32[3] reduce(x, zero), dimensions={0}, to_apply=add
  ROOT both = (f32[4], f32[3]) tuple(rows, columns) }"""
"""One computation that two reductions call."""
REPEATS = """HloModule m
body { s = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 x = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1) next = s32[] add(i, one)
  a = f32[4] cosine(x) b = f32[4] cosine(x) y = f32[4] multiply(a, b) ROOT t = (s32[], f32[4]) tuple(next, y) }
condition { s = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3) ROOT less = pred[] compare(i, n), direction=LT }
ENTRY main { s = (s32[], f32[4]) parameter(0) ROOT w = (s32[], f32[4]) while(s), condition=condition, body=body }"""
"""A loop whose body computes one value twice."""


@pytest.mark.parametrize("text", [RATES, LOOP, DTYPES, REPEATS])
def test_all_sites_of_every_pass_give_the_module_of_xla(xla: Session, text: str) -> None:
    changes = xla.changes(xla.parse(text))
    assert changes
    for change in changes:
        graph = split(change.before.program, change.after.program, PROVENANCE)
        everything = HloModule(graph.apply(range(len(graph))))
        assert xla.fingerprint(everything) == xla.fingerprint(change.after.pruned()), change.name


def test_a_copy_of_a_computation_is_a_new_one(xla: Session) -> None:
    """As XLA's ``flatten-call-graph`` makes one where two reductions call the same computation."""
    before = xla.parse(TWICE).program
    (own,) = (name for name in before.computations if name != before.entry)
    copy = replace(before.computations[own], name=f"{own}.clone")
    rows = next(i for i in before.main.instructions.values() if i.called)
    calling = replace(
        before.main, instructions={**before.main.instructions, rows.name: rows.rename({}, {own: copy.name})}
    )
    after = HloModule(with_entry(replace(before, computations={copy.name: copy, **before.computations}), calling))
    graph = split(before, after.program, PROVENANCE)
    assert len(graph) == 1
    assert xla.fingerprint(HloModule(graph.apply([0]))) == xla.fingerprint(after)


def test_no_site_is_the_identity(xla: Session) -> None:
    run = dry_run(xla, xla.parse(RATES), ["algsimp"])
    assert len(run) == 3
    assert run.apply([]) is run.module


def test_every_subset_gives_the_same_outputs(xla: Session) -> None:
    run = dry_run(xla, xla.parse(RATES), ["algsimp", "cse"])
    assert all(run.offered)
    chooser = random.Random(1)
    for _ in range(4):
        chosen: list[int] = []
        for number in range(len(run)):
            if chooser.random() < 0.5 and run.graph.applicable(chosen)[number]:
                chosen.append(number)
        assert compare_modules(xla, run.module, run.apply(chosen)).agrees


def test_a_use_at_a_time(xla: Session) -> None:
    by_value = dry_run(xla, xla.parse(RATES), ["algsimp"])
    by_use = dry_run(xla, xla.parse(RATES), ["algsimp"], granularity="use")
    assert sorted(len(a.uses) for a in by_value.graph.alternatives) == [1, 2, 3]
    assert len(by_use.graph.alternatives) == 4


def test_a_name_that_gets_another_value_is_told_apart(xla: Session) -> None:
    before = xla.parse("""HloModule m
    ENTRY main { x = f32[4] parameter(0) n = f32[4] negate(x) e = f32[4] abs(n) ROOT r = f32[4] add(e, x) }""")
    # The pass wrote abs(x) under the name e, and x - (-e) for the sum: n is the name of another value now.
    after = xla.parse("""HloModule m
    ENTRY main { x = f32[4] parameter(0) e = f32[4] abs(x) n = f32[4] negate(e) ROOT r = f32[4] subtract(x, n) }""")
    run = dry_change(xla, _change(before, after))
    assert all(test.agrees for test in run.tests)
    assert xla.fingerprint(run.apply(range(len(run)))) == xla.fingerprint(after.pruned())


def test_a_wrong_pass_is_caught_at_its_site(xla: Session) -> None:
    before = xla.parse("""HloModule m
    ENTRY main { x = f32[4] parameter(0) a = f32[4] add(x, x) b = f32[4] tanh(a) c = f32[4] negate(x)
      ROOT r = (f32[4], f32[4]) tuple(b, c) }""")
    after = xla.parse("""HloModule m
    ENTRY main { x = f32[4] parameter(0) w = f32[4] multiply(x, x) b = f32[4] tanh(w) c = f32[4] negate(x)
      ROOT r = (f32[4], f32[4]) tuple(b, c) }""")
    run = dry_change(xla, _change(before, after))
    assert [(a.value, a.replacement) for a in run.graph.alternatives] == [("a", "w")]
    assert run.offered == [False]


def _change(before: HloModule, after: HloModule) -> Change:
    return Change(before, after, "pass", "", 0)


def _graph(xla: Session) -> AlternativeGraph:
    """Replacements that need what they replace, or concern one use."""
    program = xla.parse(RATES).program
    first = Alternative("main", "third", "less", (Use("a", 0),), PROVENANCE)
    second = Alternative("main", "sum", "less", (Use("out", 0),), PROVENANCE)
    third = Alternative("main", "sum", "square", (Use("out", 0), Use(ROOT)), PROVENANCE)
    return AlternativeGraph(program, (first, second, third))


def test_what_would_close_a_cycle_is_masked(xla: Session) -> None:
    graph = _graph(xla)
    assert graph.applicable() == [False, True, True]
    with pytest.raises(Cycle):
        graph.apply([0])


def test_alternatives_of_one_use_exclude_each_other(xla: Session) -> None:
    graph = _graph(xla)
    assert graph.slots == ((0,), (1, 2))
    assert graph.applicable([1]) == [False, False, False]
    assert (1, 2, "the same use") in graph.conflicts()
    with pytest.raises(RewrightError, match="choose one"):
        graph.apply([1, 2])


def test_a_number_that_is_not_there_is_an_error(xla: Session) -> None:
    with pytest.raises(RewrightError, match="there are 3"):
        _graph(xla).apply([7])


def test_graphs_of_one_program_are_merged_and_keep_apart_what_they_bring(xla: Session) -> None:
    run = dry_run(xla, xla.parse(RATES), ["algsimp"])
    graph, origins = merge(run.module.program, [run.graph, run.graph])
    assert origins[: len(run)] == [(0, n) for n in range(len(run))]
    both = DryRun(run.module, graph)
    every = [n for n in range(len(graph)) if n < len(run)]
    assert xla.fingerprint(both.apply(every)) == xla.fingerprint(run.apply(range(len(run))))


def test_what_an_earlier_round_brought_in_keeps_its_name(xla: Session) -> None:
    # The first round took a value that was named n.c1; another one that is to be named so must get another name.
    module = xla.parse("""HloModule m
    ENTRY main { x = f32[4] parameter(0) n.c1 = f32[4] negate(x) e = f32[4] abs(n.c1) ROOT r = f32[4] add(e, n.c1) }""")
    program = module.program
    main = program.main
    (old,) = (i for i in main.instructions.values() if i.opcode == "negate")
    (kept,) = (i for i in main.instructions.values() if i.opcode == "abs")
    assert old.name == "n.c1"
    pool = {"n": replace(old, name="n"), "m": replace(kept, name="m", operands=("n",))}
    offered = Alternative(main.name, kept.name, "m", (Use(main.root, 0),), PROVENANCE, ("n", "m"))
    empty = AlternativeGraph(program)
    graph, _ = merge(program, [empty, AlternativeGraph(program, (offered,), {main.name: pool})])
    assert not graph.pool[main.name].keys() & main.instructions.keys()
    assert compare_modules(xla, module, HloModule(graph.apply([0]))).agrees


def test_two_values_of_one_name_are_refused(xla: Session) -> None:
    program = xla.parse(RATES).program
    main = program.main
    name = next(i.name for i in main.instructions.values() if i.opcode == "tanh")
    offered = Alternative(main.name, name, name, (Use(main.root, 0),), PROVENANCE)
    graph = AlternativeGraph(program, (offered,), {main.name: {name: main.instructions[name]}})
    with pytest.raises(RewrightError, match="is there already"):
        graph.apply([0])


def test_new_computations_have_names_of_their_own(xla: Session) -> None:
    text = """HloModule m
    f { a = f32[4] parameter(0) ROOT b = f32[4] negate(a) }
    f.new { a = f32[4] parameter(0) ROOT b = f32[4] abs(a) }
    ENTRY main { x = f32[4] parameter(0) y = f32[4] call(x), to_apply=f ROOT z = f32[4] call(y), to_apply=f.new }"""
    other = """HloModule m
    f { a = f32[4] parameter(0) c = f32[4] parameter(1) ROOT b = f32[4] subtract(a, c) }
    f.new { a = f32[4] parameter(0) ROOT b = f32[4] abs(a) }
    ENTRY main { x = f32[4] parameter(0) o = f32[] constant(0) q = f32[4] broadcast(o), dimensions={}
      y = f32[4] call(q, x), to_apply=f ROOT z = f32[4] call(y), to_apply=f.new }"""
    before, after = xla.parse(text), xla.parse(other)
    graph = split(before.program, after.program, PROVENANCE)
    assert not graph.computations.keys() & before.program.computations.keys()
    assert compare_modules(xla, before, HloModule(graph.apply(range(len(graph))))).agrees
