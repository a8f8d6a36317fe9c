"""Sums of products: what they say of a tensor is what the tensor is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from rewright.claims.language import View
from rewright.interp.program import run_nodes
from rewright.lifting.programs import Lifter
from rewright.lifting.recognition.expansion import BOUND, Sum, multiplied_out
from tests.lifting.evaluate import Meaning
from tests.lifting.random_programs import sequential_program


def evaluated(products: Sum, view: View, meaning: Meaning) -> NDArray[np.float64]:
    """A sum of products, element by element and value by value of its bound variables."""
    digits = [int(str(n)) for axis in view.dims for n in axis]
    total = np.zeros(digits)
    for place in np.ndindex(*digits):
        for factors, region in products.items():
            for box, often in region:
                for bound in product(*(range(int(str(low)), int(str(high))) for low, high in box)):
                    names = {**dict(enumerate(place)), **{BOUND + k: n for k, n in enumerate(bound)}}
                    value = float(often)
                    for term, access in factors:
                        index = [
                            int(str(low)) + sum(names[v] * int(str(s)) for v, s in strides) for low, strides in access
                        ]
                        arrays = tuple(np.array(n, np.int64) for n in index)
                        value *= float(meaning.term(term, arrays, (), {}))
                    total[place] += value
    return total.reshape([int(str(n)) for n in view.shape])


def sums(seed: int) -> Iterator[tuple[int, NDArray[np.float64], NDArray[np.generic]]]:
    """For the small nodes of a random program what its sum of products is, and what was executed."""
    program = sequential_program(seed)
    (graph,) = program.build()
    lifter = Lifter()
    lifted = lifter.sequential(graph)
    meaning = Meaning(lifter.algebra.terms, program.inputs)
    for position, wanted in run_nodes(graph, program.inputs).items():
        value = lifter.values[lifted.values[position]]
        if wanted.size > 12 or not isinstance(value, View) or not np.isfinite(wanted.astype(float)).all():
            continue
        products = multiplied_out(lifter.algebra, value.addends)
        if products is not None and len(products) < 12:
            yield position, evaluated(products, value, meaning), wanted


@pytest.mark.parametrize("block", range(3))
def test_random_programs(block: int) -> None:
    seen = 0
    for seed in range(12 * block, 12 * (block + 1)):
        for position, got, wanted in sums(seed):
            np.testing.assert_allclose(got, wanted.astype(float), rtol=1e-7, atol=1e-7, err_msg=f"{seed}: %{position}")
            seen += 1
    assert seen > 20
