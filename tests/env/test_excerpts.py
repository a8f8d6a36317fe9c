"""Parts of a module as modules of their own, and what HloEnv tells of compilation and device."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rewright.env.compat import GpuBackend, HloEnv
from rewright.env.excerpts import (
    excerpt,
    extract_fusions_as_module,
    extract_instructions_as_module,
    extract_random_submodule,
)
from rewright.env.inputs import draw_inputs
from rewright.env.module import HloModule
from rewright.env.session import Session
from rewright.ir.errors import RewrightError
from tests.env.modules import LOOP, RATES


@pytest.mark.parametrize("text", [RATES, LOOP])
def test_every_instruction_runs_alone(xla: Session, text: str) -> None:
    module = xla.canonical(xla.parse(text))
    found = extract_instructions_as_module(module, repeat=3)
    assert found
    for what, part in found:
        (opcode,) = re.findall(r" ([a-z-]+)\(", what)
        assert [i.opcode for i in part.program.main.instructions.values()].count(opcode) == 3
        results = xla.execute(part, draw_inputs(part))
        each = len(results) // 3
        for first, second in zip(results[:each], results[each : 2 * each], strict=True):
            np.testing.assert_array_equal(first, second)


def test_every_fusion_runs_alone(xla: Session) -> None:
    fused = xla.isolated(xla.parse(RATES), "fusion")
    count = [i.opcode for i in fused.program.main.instructions.values()].count("fusion")
    found = extract_fusions_as_module(fused, repeat=2)
    assert len(found) == count > 0
    for part in found:
        assert [i.opcode for i in part.program.main.instructions.values()].count("fusion") == 2
        assert xla.execute(part, draw_inputs(part))


@pytest.mark.parametrize("seed", range(4))
def test_a_random_part_computes_what_it_does_inside(xla: Session, seed: int) -> None:
    module = xla.canonical(xla.parse(RATES))
    part = extract_random_submodule(module, 3, 20, seed)
    assert part is not None
    # As deep as the module, all that is read is a parameter of the module.
    assert {str(s) for s in part.parameter_shapes()} <= {str(s) for s in module.parameter_shapes()}
    again = extract_random_submodule(module, 3, 20, seed)
    assert again is not None
    assert again.digest == part.digest
    assert xla.execute(part, draw_inputs(part))


def test_the_whole_as_an_excerpt_is_the_module(xla: Session) -> None:
    module = xla.canonical(xla.parse(RATES))
    names = [i.name for i in module.program.main.instructions.values() if i.opcode != "parameter"]
    whole = excerpt(module, names)
    inputs = draw_inputs(module)
    by_name = dict(zip((i.name for i in module.program.main.parameters()), inputs, strict=True))
    own = [by_name[i.name] for i in whole.program.main.parameters()]
    np.testing.assert_array_equal(xla.execute(whole, own)[0], xla.execute(module, inputs)[0])


def test_too_little_is_none_and_a_wrong_name_an_error(xla: Session) -> None:
    module: HloModule = xla.parse(RATES)
    assert extract_random_submodule(module, 1000, 2) is None
    with pytest.raises(RewrightError, match="no instruction 'nothing'"):
        excerpt(module, ["nothing"])


def test_the_configuration_has_its_names(xla: Session) -> None:
    config = HloEnv(RATES, "txt", session=xla).config
    assert (config.seed, config.replica_count, config.num_partitions) == (42, 1, 1)
    assert len(vars(config.debug_options)) > 30
    assert all(name.startswith("xla_") for name in vars(config.debug_options))


def test_a_gpu_need_not_be_there() -> None:
    backend = GpuBackend("a100")
    assert backend.cuda_is_at_least(GpuBackend.CudaComputeCapability.VOLTA)
    assert backend.cuda_is_at_least(backend.CudaComputeCapability.AMPERE)
    assert not backend.cuda_is_at_least(backend.CudaComputeCapability.AMPERE, 6)
    assert not backend.cuda_is_at_least(9)
    with pytest.raises(RewrightError, match="no GPU 'abacus'"):
        GpuBackend("abacus")
