"""Parallel styles that ``torch.distributed.tensor.parallel`` does not have: fused and expert weights."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ParallelStyle
from torch.distributed.tensor.placement_types import Placement, _StridedShard  # pyright: ignore[reportPrivateUsage]


class LocalModule(ParallelStyle):
    """Runs a module on its local shards: inputs are replicated, outputs are replicated, sharded, or sums to reduce.

    ``shards`` gives a placement per parameter name; parameters that are not named stay as they are. ``reduced`` says
    that the outputs are addends. Gradients of replicated inputs are partial, and are reduced where they leave.
    """

    def __init__(
        self, shards: dict[str, Placement], *, inputs: int = 1, copied: bool = True, reduced: bool = False
    ) -> None:
        super().__init__()
        self._shards, self._inputs, self._copied, self._reduced = shards, inputs, copied, reduced

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        for name, placement in self._shards.items():
            owner = module.get_parameter(name)
            whole = distribute_tensor(owner.data, device_mesh, [placement], src_data_rank=None)
            path, _, last = name.rpartition(".")
            module.get_submodule(path).register_parameter(last, nn.Parameter(whole, requires_grad=owner.requires_grad))
        forward = module.forward

        def local_forward(*args: Any, **kwargs: Any) -> Any:
            given = [self._enter(a, device_mesh) if self._takes(a) else a for a in args]
            with _Local(module, self._shards):
                output = forward(*given, **kwargs)
            return self._leave(output, device_mesh)

        module.forward = local_forward
        return module

    def _takes(self, value: Any) -> bool:
        return self._copied and isinstance(value, torch.Tensor) and value.is_floating_point()

    def _enter(self, value: torch.Tensor, mesh: DeviceMesh) -> torch.Tensor:
        whole = value if isinstance(value, DTensor) else DTensor.from_local(value, mesh, [Replicate()], run_check=False)
        return whole.redistribute(placements=[Replicate()]).to_local(grad_placements=[Partial()])

    def _leave(self, output: torch.Tensor, mesh: DeviceMesh) -> torch.Tensor:
        if not self._reduced:
            return output
        partial = DTensor.from_local(output, mesh, [Partial()], run_check=False)
        return partial.redistribute(placements=[Replicate()]).to_local()


class _Local:
    """Within the block the named parameters of a module are local tensors that autograd follows."""

    def __init__(self, module: nn.Module, shards: dict[str, Placement]) -> None:
        self._module, self._names = module, list(shards)
        self._saved: dict[str, nn.Parameter] = {}

    def __enter__(self) -> None:
        for name in self._names:
            owner, last = self._owner(name)
            parameter = owner._parameters.pop(last)
            self._saved[name] = parameter
            object.__setattr__(owner, last, cast("DTensor", parameter).to_local())

    def __exit__(self, *_: object) -> None:
        for name in self._names:
            owner, last = self._owner(name)
            object.__delattr__(owner, last)
            owner._parameters[last] = self._saved[name]

    def _owner(self, name: str) -> tuple[Any, str]:
        path, _, last = name.rpartition(".")
        return self._module.get_submodule(path), last


def strided(axis: int, parts: int) -> Placement:
    """A shard of each of the equal parts that are fused along an axis, as packed query, key and value need it."""
    return _StridedShard(axis, split_factor=parts)


class Conv1DColumn(LocalModule):
    """A Conv1D, whose weight is (width, features), split by features; ``fused`` parts are each split."""

    def __init__(self, fused: int = 1) -> None:
        along = [Shard(axis) if fused == 1 else strided(axis, fused) for axis in (1, 0)]
        super().__init__({"weight": along[0], "bias": along[1]})

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        convolution: Any = module
        convolution.nf //= device_mesh.size()
        return super()._apply(module, device_mesh)


def experts() -> LocalModule:
    """Expert weights split inside each expert: gate and up interleaved by halves, down by its inputs."""
    return LocalModule({"gate_up_proj": strided(1, 2), "down_proj": Shard(2)}, reduced=True)


class Conv1DRow(ParallelStyle):
    """A Conv1D split by input features: the products are reduced, and then the bias is added once."""

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        weight = module.get_parameter("weight")
        sharded = distribute_tensor(weight.data, device_mesh, [Shard(0)], src_data_rank=None)
        module.register_parameter("weight", nn.Parameter(sharded, requires_grad=weight.requires_grad))

        def forward(x: torch.Tensor) -> torch.Tensor:
            local = cast("DTensor", module.get_parameter("weight")).to_local()
            partial = DTensor.from_local(torch.matmul(x, local), device_mesh, [Partial()], run_check=False)
            return partial.redistribute(placements=[Replicate()]).to_local() + module.get_parameter("bias")

        module.forward = forward
        return module
