"""Tokens sorted by expert, multiplied in groups and put back: captured, and proved where ranks split the experts."""

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.ranks import capture_ranks
from rewright.interp.program import run
from rewright.refine import refine

pytest.importorskip("transformers.integrations.moe", reason="Transformers before 5")  # registers the operator
product = torch.ops.transformers.grouped_mm_fallback
EXPERTS, CHOSEN, TOKENS, WIDTH, INNER = 4, 2, 6, 8, 12


class Experts(nn.Module):
    """As Transformers' grouped experts; a rank has some of the inner features of every expert."""

    def __init__(self, inner: int = INNER) -> None:
        super().__init__()
        self.router = nn.Parameter(torch.empty(EXPERTS, WIDTH))
        self.up = nn.Parameter(torch.empty(EXPERTS, WIDTH, inner))
        self.down = nn.Parameter(torch.empty(EXPERTS, inner, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, experts = torch.softmax(x @ self.router.T, -1).topk(CHOSEN)
        ordered, permutation = torch.sort(experts.reshape(-1))
        counts = torch.histc(ordered.float(), bins=EXPERTS, min=0, max=EXPERTS - 1)
        ends = torch.cumsum(counts, 0, dtype=torch.int32)
        rows = product(x[permutation // CHOSEN], self.up, ends)
        rows = product(nn.functional.silu(rows), self.down, ends)
        rows = rows * weights.reshape(-1)[permutation].unsqueeze(-1)
        inverse = torch.empty_like(permutation)
        inverse[permutation] = torch.arange(len(permutation), device=x.device)
        return rows[inverse].view(TOKENS, CHOSEN, WIDTH).sum(1)


class Shard(Experts):
    """A rank's share of the inner features, with a sum at the end or without."""

    def __init__(self, mesh: DeviceMesh, *, summed: bool) -> None:
        super().__init__(INNER // mesh.size())
        self.mesh, self.summed = mesh, summed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = super().forward(x)
        if self.summed:
            torch.distributed.all_reduce(found, group=self.mesh.get_group())
        return found


def tokens() -> torch.Tensor:
    return torch.empty(TOKENS, WIDTH, device="meta")


def verdict(*, summed: bool) -> str:
    with torch.device("meta"):
        sequential = capture(Experts(), (tokens(),))

    def build(mesh: DeviceMesh) -> tuple[nn.Module, tuple[torch.Tensor]]:
        with torch.device("meta"):
            return Shard(mesh, summed=summed), (tokens(),)

    program = capture_ranks(build, mesh={"tp": 2})
    relations = {"up": "Shard(2)", "down": "Shard(1)", "router": "Replicate()", "x": "Replicate()"}
    return refine(sequential, program, relations, {"output": "Replicate()"}, audit=True).status


def test_what_is_captured_is_what_torch_computes() -> None:
    torch.manual_seed(0)
    model = Experts().double()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(TOKENS, WIDTH, dtype=torch.double)
    graph = capture(model, (x,))
    given = {name: value.detach().numpy() for name, value in model.named_parameters()} | {"x": x.numpy()}
    chosen = torch.softmax(x @ model.router.T, -1).topk(CHOSEN)
    dense = torch.einsum("tec,ecw->tew", nn.functional.silu(torch.einsum("tw,ewc->tec", x, model.up)), model.down)
    expected = sum(chosen.values[:, k, None] * dense[torch.arange(TOKENS), chosen.indices[:, k]] for k in range(CHOSEN))
    assert isinstance(expected, torch.Tensor)
    (found,) = run(graph, given).values()
    torch.testing.assert_close(torch.from_numpy(found), expected)


def test_inner_features_split_over_ranks_are_proved_with_their_sum_only() -> None:
    assert verdict(summed=True) == "proved"
    assert verdict(summed=False) == "refuted"
