"""Known answers from outside: numpy and PyTorch for the operators whose conventions are easy to get wrong."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.ops.base import Array, TensorOperator

torch = pytest.importorskip("torch")
functional = torch.nn.functional
GENERATOR = np.random.default_rng(20)
INF, NAN = math.inf, math.nan


def normal(*shape: int) -> Array:
    return GENERATOR.normal(size=shape)


def run(op: TensorOperator, *operands: object) -> Array:
    return op.execute([np.asarray(operand) for operand in operands])


def test_batched_product_with_transposed_right_side() -> None:
    a, b = normal(2, 3, 4, 5), normal(2, 3, 6, 5)
    found = run(ops.DotGeneral((0, 1), (0, 1), (3,), (3,)), a, b)
    assert np.allclose(found, a @ b.swapaxes(-1, -2))


def test_product_over_two_axes() -> None:
    a, b = normal(3, 4, 5), normal(5, 3, 2)
    assert np.allclose(run(ops.DotGeneral((), (), (0, 2), (1, 0)), a, b), np.einsum("kij,jkl->il", a, b))


def test_integer_division_and_remainder_truncate() -> None:
    left, right = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])
    expected = torch.div(torch.tensor(left), torch.tensor(right), rounding_mode="trunc").numpy()
    assert np.array_equal(run(ops.Divide(), left, right), expected)
    assert np.array_equal(
        run(ops.Remainder(), left, right), torch.fmod(torch.tensor(left), torch.tensor(right)).numpy()
    )


def test_halves_round_to_even() -> None:
    values = np.array([0.5, 1.5, 2.5, -0.5, -1.5])
    assert np.array_equal(run(ops.RoundNearestEven(), values), [0, 2, 2, 0, -2])


@pytest.mark.parametrize("op", [ops.RoundToE4M3(), ops.RoundToE5M2()])
def test_rounding_to_eight_bits_is_that_of_pytorch(op: ops.RoundingToByte) -> None:
    dtype = torch.float8_e4m3fn if op.target is DType.F8E4M3FN else torch.float8_e5m2
    numbers = torch.arange(256, dtype=torch.uint8).view(dtype).double()
    grid = numbers[numbers.isfinite()].sort().values
    between = (grid[1:] + grid[:-1]) / 2
    large = torch.tensor([464.0, 465.0, 61439.0, 61440.0, 1e30, INF, -INF, NAN])
    values = torch.cat([grid, between, between * (1 + 2e-7), between * (1 - 2e-7), large]).float()

    assert np.array_equal(run(op, values.double().numpy()), values.to(dtype).double().numpy(), equal_nan=True)


def test_conversion_truncates() -> None:
    assert np.array_equal(run(ops.Convert(DType.I64), np.array([1.9, -1.9])), [1, -1])
    assert np.array_equal(run(ops.Convert(DType.BOOL), np.array([0.0, -0.25, NAN])), [False, True, True])


def test_infinities_and_nan() -> None:
    assert np.array_equal(run(ops.Exponential(), np.array([-INF, 0.0, INF, 1e9])), [0, 1, INF, INF])
    assert np.array_equal(run(ops.Log(), np.array([0.0, 1.0])), [-INF, 0])
    assert np.isnan(run(ops.Log(), np.array([-1.0])))
    assert np.array_equal(run(ops.Maximum(), np.array([NAN, 1.0]), np.array([0.0, NAN])), [NAN, NAN], equal_nan=True)
    assert np.array_equal(run(ops.Divide(), np.array([1.0, -1.0]), np.zeros(2)), [INF, -INF])
    assert np.array_equal(run(ops.IsFinite(), np.array([INF, NAN, 1.0])), [False, False, True])
    assert np.array_equal(run(ops.Logistic(), np.array([-1e4, 0.0, 1e4])), [0, 0.5, 1])


def test_error_function() -> None:
    values = np.linspace(-6, 6, 301)
    assert np.allclose(run(ops.Erf(), values), [math.erf(v) for v in values], rtol=1e-14, atol=0)


EDGES = [-INF, -2.5, -1.0, -1e-9, 0.0, 1e-9, 0.5, 1.0, 7.0, 26.0, 300.0, INF, NAN]


@pytest.mark.parametrize(
    ("op", "peer", "values"),
    [
        (ops.Erfc(), torch.erfc, EDGES),
        (ops.ErfcScaled(), torch.special.erfcx, EDGES),
        (ops.ErfInverse(), torch.erfinv, [-2.0, -1.0, -0.99999, -1e-9, 0.0, 0.3, 1 - 1e-12, 1.0, NAN]),
        (ops.LogGamma(), torch.lgamma, EDGES),
        (ops.Digamma(), torch.digamma, EDGES[1:]),
        (ops.BesselI0e(), torch.special.i0e, EDGES),
        (ops.BesselI1e(), torch.special.i1e, EDGES),
    ],
)
def test_special_functions(op: ops.TensorOperator, peer: Callable[..., torch.Tensor], values: list[float]) -> None:
    points = np.array([*values, *np.linspace(-0.97, 0.97, 101), *(np.linspace(-30, 30, 301) if INF in values else [])])
    expected = peer(torch.tensor(points)).numpy()
    assert np.allclose(run(op, points), expected, rtol=1e-11, atol=1e-13, equal_nan=True)


def test_zeta_and_angles() -> None:
    s, q = (grid.ravel() for grid in np.meshgrid([1.0, 1.5, 2.0, 3.0, 9.0], [0.3, 1.0, 4.0, 25.0, -1.5, -2.0, 0.0]))
    expected = torch.special.zeta(torch.tensor(s), torch.tensor(q)).numpy()
    assert np.allclose(run(ops.Zeta(), s, q), expected, rtol=1e-11, equal_nan=True)
    y, x = (grid.ravel() for grid in np.meshgrid([-INF, -2.0, 0.0, 3.0, INF], [-1.0, 0.0, 2.0, INF, NAN]))
    assert np.array_equal(run(ops.Atan2(), y, x), np.arctan2(y, x), equal_nan=True)


@pytest.mark.parametrize("kind", ["sum", "maximum", "minimum", "product"])
def test_a_reduction_of_nothing_is_the_identity(kind: str) -> None:
    expected = {"sum": 0.0, "maximum": -INF, "minimum": INF, "product": 1.0}[kind]
    assert np.array_equal(run(ops.Reduce(kind, (1,)), np.zeros((2, 0))), [expected] * 2)  # type: ignore[arg-type]


def test_cumulative_sum() -> None:
    x = normal(3, 7)
    assert np.allclose(run(ops.ReduceWindow("sum", (1, 7), (1, 1), ((0, 0), (6, 0))), x), x.cumsum(1))


def test_max_pooling() -> None:
    x = normal(1, 1, 9, 8)
    expected = functional.max_pool2d(torch.tensor(x), (3, 2), (2, 2), (1, 0)).numpy()
    found = run(ops.ReduceWindow("maximum", (1, 1, 3, 2), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (0, 0))), x)
    assert np.array_equal(found, expected)


def test_grouped_strided_dilated_convolution() -> None:
    x, kernel = normal(2, 4, 9, 8), normal(6, 2, 3, 2)
    expected = functional.conv2d(
        torch.tensor(x), torch.tensor(kernel), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2
    )
    op = ops.Convolution((2, 1), ((1, 1), (2, 2)), (1, 1), (1, 2), 2)
    assert np.allclose(run(op, x, kernel), expected.numpy())


def test_transposed_convolution_is_a_dilated_one() -> None:
    x, kernel = normal(1, 2, 4, 4), normal(2, 3, 3, 3)
    expected = functional.conv_transpose2d(torch.tensor(x), torch.tensor(kernel), stride=2, padding=1)
    flipped = run(ops.Reverse((2, 3)), kernel.swapaxes(0, 1))
    op = ops.Convolution((1, 1), ((1, 1), (1, 1)), (2, 2), (1, 1), 1)
    assert np.allclose(run(op, x, flipped), expected.numpy())


def test_embedding_and_its_gradient() -> None:
    table, tokens = normal(10, 4), np.array([[1, 7], [7, 0]])
    embedding = ops.Gather((2,), (0,), (), (), (0,), 2, (1, 4))
    assert np.array_equal(run(embedding, table, tokens), table[tokens])
    weight = torch.tensor(table, requires_grad=True)
    seed = normal(2, 2, 4)
    functional.embedding(torch.tensor(tokens), weight).backward(torch.tensor(seed))
    gradient = ops.Scatter("sum", (2,), (0,), (), (), (0,), 2)
    assert np.allclose(run(gradient, np.zeros((10, 4)), tokens, seed), weight.grad.numpy())


def test_gather_along_an_axis_with_batching() -> None:
    x, index = normal(3, 5), np.array([[4, 0], [1, 1], [2, 3]])
    take = ops.Gather((), (1,), (0,), (0,), (1,), 2, (1, 1))
    assert np.array_equal(run(take, x, index[:, :, None]), np.take_along_axis(x, index, 1))


def test_an_index_out_of_range_is_an_error_and_not_clamped() -> None:
    take = ops.Gather((), (0,), (), (), (0,), 1, (1,))
    for bad in (-1, 4):
        with pytest.raises(RewrightError, match="the indices given are out of range"):
            run(take, normal(4), np.array([bad]))


def test_updates_out_of_range_are_skipped() -> None:
    put = ops.Scatter("replace", (), (0,), (), (), (0,), 1)
    assert np.array_equal(run(put, np.zeros(3), np.array([1, 5, -1]), np.array([1.0, 2.0, 3.0])), [0, 1, 0])


def test_the_last_of_colliding_updates_stays() -> None:
    put = ops.Scatter("replace", (), (0,), (), (), (0,), 1)
    assert np.array_equal(run(put, np.zeros(2), np.array([1, 1]), np.array([4.0, 5.0])), [0, 5])


def test_dynamic_slices_are_moved_inside() -> None:
    x = np.arange(6.0)
    assert np.array_equal(run(ops.DynamicSlice((3,)), x, 5), [3, 4, 5])
    assert np.array_equal(run(ops.DynamicSlice((3,)), x, -2), [0, 1, 2])
    assert np.array_equal(run(ops.DynamicUpdateSlice(), x, np.zeros(2), 9), [0, 1, 2, 3, 0, 0])


@pytest.mark.parametrize("descending", [False, True])
def test_sorting_is_stable(descending: bool) -> None:
    x = np.array([[2.0, 1.0, 2.0, 1.0], [0.0, NAN, 3.0, 0.0]])
    values, indices = torch.sort(torch.tensor(x), dim=1, descending=descending, stable=True)
    assert np.array_equal(run(ops.Sort(1, descending, "values"), x), values.numpy(), equal_nan=True)
    assert np.array_equal(run(ops.Sort(1, descending, "indices"), x), indices.numpy())


def test_top_k() -> None:
    x = normal(3, 8)
    values, indices = torch.topk(torch.tensor(x), 3)
    assert np.array_equal(run(ops.TopK(3, "values"), x), values.numpy())
    assert np.array_equal(run(ops.TopK(3, "indices"), x), indices.numpy())
    assert np.array_equal(run(ops.TopK(2, "indices"), np.array([5.0, 7.0, 7.0])), [1, 2])


def test_padding_with_interior_and_negative_sides() -> None:
    found = run(ops.Pad((1,), (-1,), (1,)), np.array([1.0, 2.0, 3.0]), 9.0)
    assert np.array_equal(found, [9, 1, 9, 2, 9])


def test_collectives_need_all_ranks() -> None:
    with pytest.raises(RewrightError, match="all_reduce cannot be executed on one rank alone"):
        run(ops.AllReduce("sum", ((0, 1),)), normal(2))


def test_an_opaque_call_cannot_be_executed() -> None:
    with pytest.raises(RewrightError, match="custom_call flash is opaque and cannot be executed"):
        run(ops.CustomCall("flash", (), (), 0))


def test_philox_gives_the_words_of_its_authors() -> None:
    """The known answers of Random123 for counters and keys of zeros and of ones."""
    zeros, ones = [0] * 6, [0xFFFFFFFF] * 6

    def words(counter: list[int]) -> list[int]:
        return [int(run(ops.Philox(), *(np.array(n, np.int64) for n in (*counter, word)))) for word in range(4)]

    assert words(zeros) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert words(ones) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
