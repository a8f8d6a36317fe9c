"""Modules, passes and execution through the worker; what XLA refuses is one line, and what ends it is survived."""

from __future__ import annotations

import numpy as np
import pytest

from rewright.env.dryrun import dry_run
from rewright.env.inputs import draw_inputs
from rewright.env.listing import passes
from rewright.env.module import HloModule
from rewright.env.passes import Pipeline, XlaPass
from rewright.env.repairs import runnable
from rewright.env.session import Session
from rewright.env.testing import compare_modules
from rewright.env.xla.names import CPU_PASSES
from rewright.env.xla.worker import XlaCrash, XlaTimeout
from rewright.ir.errors import RewrightError
from tests.env.modules import DTYPES, LOOP, RATES, THREEFRY


def test_a_pass_alone(xla: Session) -> None:
    module = xla.parse(RATES)
    simple, changed = xla.run(module, XlaPass("algsimp"))
    assert changed
    assert "power" not in {i.opcode for i in simple.pruned().program.main.instructions.values()}
    assert not xla.run(simple, XlaPass("algsimp"))[1]


def test_pipelines_nest_and_end_at_a_fixpoint(xla: Session) -> None:
    inner = Pipeline.of(["algsimp", "cse"], loop=-1)
    module, changed = xla.run(xla.parse(RATES), Pipeline.of([inner, "dce"]))
    assert changed
    assert not {"power", "subtract"} & {i.opcode for i in module.program.main.instructions.values()}


def test_a_pass_that_does_not_exist_is_named(xla: Session) -> None:
    with pytest.raises(RewrightError, match="did you mean algsimp"):
        XlaPass("algsimpl")


def test_all_of_the_pipeline_by_step(xla: Session) -> None:
    names = [change.name for change in xla.changes(xla.parse(RATES))]
    assert "algsimp" in names
    assert "fusion" in names


def test_every_pass_is_listed_with_what_it_did(xla: Session) -> None:
    found = passes(xla, xla.parse(RATES))
    assert found.keys() >= CPU_PASSES
    assert [change.name for change in found["algsimp"]] == ["algsimp"] * len(found["algsimp"])
    assert found["algsimp"]
    assert not found["topk-rewriter"]


def test_the_chosen_module_is_what_is_compiled(xla: Session) -> None:
    chosen = {}
    for mode in ("exact", "default"):
        key = xla.compiled(xla.parse(RATES), mode)
        program = HloModule(xla.worker.call("compiled_module", key)).program
        chosen[mode] = {i.opcode for c in program.computations.values() for i in c.instructions.values()}
    assert {"power", "subtract"} <= chosen["exact"]
    assert not {"power", "subtract"} & chosen["default"]


def test_a_late_module_runs_with_its_fusions(xla: Session) -> None:
    module = xla.parse(RATES)
    late = xla.optimised(module)
    inputs = draw_inputs(module)
    (expected,), (found,) = xla.execute(module, inputs), xla.execute(late, inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(RewrightError, match="behind this module"):
        xla.changes(late)


def test_execution_agrees_with_numpy(xla: Session) -> None:
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(xla.execute(xla.parse(LOOP), [x])[0], 8 * x)


def test_inputs_of_every_dtype(xla: Session) -> None:
    module = xla.parse(DTYPES)
    for draw in ("ordinary", "edge"):
        inputs = draw_inputs(module, draw=draw)
        outputs = xla.execute(module, inputs)
        np.testing.assert_array_equal(outputs[0], inputs[0])
        np.testing.assert_array_equal(outputs[1], inputs[1] >> np.uint32(5))
        np.testing.assert_array_equal(outputs[2], inputs[2])
        np.testing.assert_array_equal(outputs[3], inputs[3])


def test_threefry_has_its_known_answers(xla: Session) -> None:
    module = runnable(xla, xla.parse(THREEFRY))
    # The known answers of Random123 for 20 rounds.
    known = {
        (0, 0, 0, 0): (0x6B200159, 0x99BA4EFE),
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF): (0x1CB996FC, 0xBB002BE7),
        (0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3): (0xC4923A9C, 0x483DF7A0),
    }
    for given, (expected, _) in known.items():
        found = xla.execute(module, [np.full(2, word, np.uint32) for word in given])[0]
        assert found.tolist() == [expected, expected]


def test_nonsense_is_one_line(xla: Session) -> None:
    for text in ("", "HloModule", "HloModule x\nENTRY e { ROOT r = f32[2] foo() }", "HloModule \x00"):
        with pytest.raises(RewrightError) as caught:
            xla.parse(text)
        assert "\n" not in str(caught.value)


def test_a_process_that_ends_is_replaced(xla: Session) -> None:
    started = xla.worker.started
    with pytest.raises(XlaCrash, match="replaced"):
        xla.worker.call("abort")
    assert xla.execute(xla.parse(LOOP), [np.ones(4, np.float32)])[0].tolist() == [8] * 4
    assert xla.worker.started == started + 1


def test_what_takes_too_long_is_ended(xla: Session) -> None:
    with pytest.raises(XlaTimeout, match=r"longer than 0\.2 s in measure"):
        xla.worker.call("measure", [xla.compiled(xla.parse(LOOP))], [np.ones(4, np.float32)], 10**9, 0, seconds=0.2)
    assert xla.fingerprint(xla.parse(LOOP))


def test_stablehlo_both_ways(xla: Session) -> None:
    module = xla.parse(RATES)
    again = xla.from_stablehlo(xla.stablehlo(module))
    inputs = draw_inputs(module)
    np.testing.assert_array_equal(xla.execute(module, inputs)[0], xla.execute(again, inputs)[0])


CONSTANTS = """HloModule m
ENTRY main { x = f32[4] parameter(0) c = f32[] constant(%s) b = f32[4] broadcast(c), dimensions={}
  k = f32[13] constant({1,2,3,4,5,6,7,8,9,10,11,12,%s}) ROOT r = (f32[4], f32[13]) tuple(b, k) }"""


def test_a_fingerprint_sees_the_values_of_constants(xla: Session) -> None:
    pairs = [("0.9", "3"), ("0.9", "4"), ("0.3", "3"), ("0", "3"), ("0.1", "3.14159274"), ("0.1", "3.14159298")]
    prints = [xla.fingerprint(xla.parse(CONSTANTS % pair)) for pair in pairs]
    assert len(set(prints)) == len(pairs)
    renamed = (CONSTANTS % pairs[0]).replace("c = f32", "other = f32").replace("(c)", "(other)")
    assert xla.fingerprint(xla.parse(renamed)) == prints[0]


def test_modules_that_differ_in_a_constant_have_dry_runs_of_their_own(xla: Session) -> None:
    first, second = (
        dry_run(xla, xla.parse(RATES.replace("constant(3)", f"constant({value})")), ["algsimp"]) for value in (3, 7)
    )
    assert compare_modules(xla, second.module, second.apply(range(len(second)))).agrees
    assert not compare_modules(xla, first.module, second.module).agrees


def test_a_module_after_xla_is_never_taken_for_the_same_one_before(xla: Session) -> None:
    late = xla.optimised(xla.parse(RATES), "fusion")
    early = HloModule(late.proto)
    runs = [dry_run(xla, module, ["general-fusion"], tested=False) for module in (late, early)]
    assert [run.module.late for run in runs] == [True, False]
