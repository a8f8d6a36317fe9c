"""Modules of single devices in the style of transformers-neuronx: vendor calls, caches, devices with other numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rewright.frontends.files import load, load_ranks
from rewright.frontends.hlo.reading import lower_device
from rewright.frontends.hlo.text import parse
from rewright.interp.program import run
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.refine import Verdict, refine
from tests.frontends.hlo.modules import read_text
from tests.frontends.hlo.neuron import Shape, relations, step


def checked(shape: Shape, folder: Path) -> Verdict:
    """The verdict on a folder with a module a device."""
    (folder / "whole.hlo").write_text(step(replace(shape, degree=1, bug="")))
    (folder / "ranks").mkdir()
    for rank in range(shape.degree):
        (folder / "ranks" / f"r{rank}.hlo").write_text(step(shape, rank))
    sequential, program = load(folder / "whole.hlo"), load(folder / "ranks")
    assert isinstance(sequential, Graph)
    assert isinstance(program, RankProgram)
    return refine(sequential, program, relations=relations(shape))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "shape",
    [
        Shape(2),
        Shape(4, layers=2),
        Shape(4, layers=3, gated=False),
        Shape(3, heads=6, keys=3),
        Shape(12, heads=12, keys=12),
        Shape(2, layers=8, heads=4, keys=2),
    ],
    ids=str,
)
def test_a_module_for_each_device_is_proved(shape: Shape, tmp_path: Path) -> None:
    verdict = checked(shape, tmp_path)
    assert verdict.status == "proved", verdict.reason
    placements = [relation.placement for relation in verdict.relation.values()]
    assert placements == ["Shard(0)", *["Shard(2)"] * (2 * shape.layers)]


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("bug", "kind", "said"),
    [
        ("groups", "wrong_collective", "all_reduce"),
        ("offset", "wrong_sum", "terms are missing, are counted twice, or are others"),
        ("reduction", "missing_reduction", "a partial sum of the matrix product"),
        ("activation", "extra_operator", "gelu"),
        ("cache", "missing_reduction", "matrix product"),
        ("axis", "missing_reduction", "softmax"),
    ],
)
def test_a_bug_is_refuted_near_its_place(bug: str, kind: str, said: str, tmp_path: Path) -> None:
    verdict = checked(Shape(4, bug=bug), tmp_path)
    assert verdict.status == "refuted"
    assert any(finding.kind == kind and said in finding.message for finding in verdict.findings)


@pytest.mark.parametrize("bug", ["activation", "bias"])
def test_a_bug_of_a_network_with_biases_is_refuted(bug: str, tmp_path: Path) -> None:
    assert checked(Shape(2, gated=False, bug=bug), tmp_path).status == "refuted"


def test_files_are_devices_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for rank in range(12):
        (tmp_path / f"r{rank}.hlo").write_text(step(Shape(12, heads=12, keys=12), rank))
    program = load(tmp_path)
    assert isinstance(program, RankProgram)
    ordered = load_ranks([tmp_path / f"r{rank}.hlo" for rank in range(12)])
    assert program == ordered
    assert program.mesh.axes == (("rank", 12),)


def test_a_module_of_another_number_of_devices_is_refused(tmp_path: Path) -> None:
    for rank in range(2):
        text = step(Shape(2), rank).replace("HloModule step", "HloModule step, replica_count=4")
        (tmp_path / f"r{rank}.hlo").write_text(text)
    with pytest.raises(RewrightError, match=r"r0\.hlo: the module is for 4 devices, as one of 2 files"):
        load(tmp_path)


def test_a_module_that_states_one_device_is_one_of_the_files() -> None:
    text = step(Shape(2), 1).replace("HloModule step", "HloModule step, replica_count=1, num_partitions=1")
    assert lower_device(parse(text), 2, 1) == lower_device(parse(step(Shape(2), 1)), 2, 1)


def called(target: str, kind: str = "f32[2,3]", config: str = "") -> str:
    call = f'custom-call(x), custom_call_target="{target}", backend_config="{config}"'
    return f"HloModule m\nENTRY main {{\n  x = f32[2,3] parameter(0)\n  ROOT r = {kind} {call}\n}}\n"


def value(text: str, x: np.ndarray) -> list[np.ndarray]:
    graph = read_text(text)
    assert isinstance(graph, Graph)
    return list(run(graph, {"x": x}).values())


def test_vendor_calls_compute_what_their_names_say() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3))
    raised = np.exp(x - x.max())
    tanh = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    known = {
        ("AwsNeuronSoftmax", ""): raised / raised.sum(1, keepdims=True),
        ("AwsNeuronSoftmax", "1"): raised / raised.sum(1, keepdims=True),
        ("AwsNeuronSoftmax", "0"): raised / raised.sum(0, keepdims=True),
        ("AwsNeuronSilu", ""): x / (1 + np.exp(-x)),
        ("AwsNeuronGeluApprxTanh", ""): x / 2 * (1 + tanh),
        ("AwsNeuronModuleMarkerStart-Forward", ""): x,
        ("AwsNeuronLNCShardingConstraint", ""): x,
    }
    for (target, config), wanted in known.items():
        np.testing.assert_allclose(value(called(target, config=config), x)[0], wanted, err_msg=target)
    (erf,), (gelu,) = value(called("AwsNeuronErf"), x / np.sqrt(2)), value(called("AwsNeuronGelu"), x)
    np.testing.assert_allclose(gelu, x / 2 * (1 + erf))
    values, places = value(called("AwsNeuronTopK", "(f32[2,2], s32[2,2])", "2"), x)
    np.testing.assert_allclose(values, -np.sort(-x)[:, :2])
    np.testing.assert_array_equal(places, np.argsort(-x)[:, :2])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (called("AwsNeuronSoftmax", config="2"), "its axis is not a number of the module"),
        (called("AwsNeuronSoftmax", config="all"), "its axis is not a number of the module"),
        (called("AwsNeuronModuleMarkerEnd-Forward", "f32[3,2]"), "its results are not its operands"),
        (called("AwsNeuronDropoutMaskV1"), "has no definition here"),
    ],
)
def test_what_a_vendor_call_does_not_say_is_refused(text: str, said: str) -> None:
    with pytest.raises(RewrightError, match=said):
        read_text(text)
