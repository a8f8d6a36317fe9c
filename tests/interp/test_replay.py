"""Running again what a change reaches gives what a whole run of the changed programs gives."""

from itertools import zip_longest

import numpy as np
import pytest

from rewright.blame.editing import with_input
from rewright.interp.ranks import run_ranks
from rewright.interp.replay import Change, Replay
from rewright.interp.trial import Trial
from rewright.ir.operator import Unsupported
from rewright.refine.twin.twin import make_twin
from tests.programs import ALL

GIVEN = "given"


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_a_change_anywhere_gives_what_the_changed_programs_compute(name: str, alone: bool) -> None:
    twin = make_twin(*ALL[name](2))
    assert not isinstance(twin, Unsupported)
    trial = twin.run_all()
    assert isinstance(trial, Trial)
    graphs = twin.program.graphs
    replay = Replay(graphs, trial.ranks)
    generator = np.random.default_rng(0)
    if len({len(graph) for graph in graphs}) > 1:
        pytest.skip("ranks have other nodes at one position")
    for position in range(len(graphs[0])):
        readers = graphs[0].users()[position]
        if alone and not readers:
            continue
        kept = [execution.values[position] for execution in trial.ranks]
        if kept[0].dtype.kind != "f":
            continue
        given = [generator.standard_normal(value.shape) for value in kept]
        reader = readers[0] if alone else None
        changed = [with_input(graph, position, GIVEN, reader) for graph in graphs]
        held = [{**own, GIVEN: tensor} for own, tensor in zip(trial.held, given, strict=True)]
        changes = [Change(position, tensor, reader) for tensor in given]
        wanted = run_ranks(changed, held)
        for output in graphs[0].outputs:
            found = replay.run(output, changes)
            for one, other in zip_longest(found, wanted):
                np.testing.assert_array_equal(one.outputs[output], other.outputs[output])
