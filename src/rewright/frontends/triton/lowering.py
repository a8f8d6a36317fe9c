"""The operator ``rewright::launch`` as nodes: what a kernel leaves in the tensors that it writes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rewright import ops
from rewright.frontends.aten.context import Context, Table, Value
from rewright.ir.dims import Dim
from rewright.ir.types import DType
from rewright.ops.reference import building as rb

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Argument, Tensor

TABLE = Table()


@TABLE.register("rewright.launch.default")
def launch(
    c: Context,
    ttir: str,
    kinds: str,
    tensors: Sequence[Value],
    memories: Sequence[int],
    strides: Sequence[Dim],
    sizes: Sequence[Dim],
    numbers: Sequence[float],
    read: Sequence[Value],
    grid: Sequence[Dim],
    written: Sequence[int],
    offsets: Sequence[Dim],
    zeros: bool,
) -> list[int]:
    """What the tensors hold that were written to; see :mod:`rewright.frontends.triton.launches`."""
    # Programs without kernels need no prover to be captured.
    from rewright.frontends.triton.meaning.reader import Number, read_kernel
    from rewright.frontends.triton.text import parse_module

    module = parse_module(ttir)
    own = _tensors(tensors, strides)
    left = {
        "t": iter([replace(own[n], offset=by) for n, by in zip(memories, offsets, strict=True)]),
        "s": iter(sizes),
        "n": iter(numbers),
    }
    left |= {"b": iter([]), "d": iter([Number(x.position) for x in read])}
    names = [name for name, _ in module.kernel.body.arguments]
    arguments: dict[str, Argument] = {}
    for name, kind in zip(names, kinds, strict=True):
        value = next(left["n"] if kind == "b" else left[kind])
        arguments[name] = bool(value) if kind == "b" else value
    reader = read_kernel(c.b, module, arguments, grid, zeros=zeros)
    for text in reader.assumptions:
        c.assume(text)
    places = [name for name, kind in zip(names, kinds, strict=True) if kind == "t"]
    return [reader.memories[places[memories.index(number)]].position for number in written]


@TABLE.register("rewright.philox.default")
def philox(c: Context, low: Value, high: Value, seed: Value, word: int) -> int:
    """A word of Philox for places of 64 bits in two parts; see :mod:`rewright.kernel.random`."""
    b, shape = c.b, c.result().shape
    counter, rest, key = (rb.broadcast(b, rb.convert(b, p, DType.I64), shape) for p in c.positions(low, high, seed))
    zero, which = rb.splat_like(b, 0, counter), rb.splat_like(b, word, counter)
    keys = [b.add(op, key, rb.splat_like(b, 1 << 32, key)) for op in (ops.Remainder(), ops.Divide())]
    return b.add(ops.Philox(), counter, rest, zero, zero, *keys, which)


def _tensors(tensors: Sequence[Value], strides: Sequence[Dim]) -> list[Tensor]:
    from rewright.frontends.triton.meaning.reader import Tensor

    found: list[Tensor] = []
    place = 0
    for number, tensor in enumerate(tensors):
        found.append(Tensor(tensor.position, tuple(strides[place : place + tensor.rank]), number))
        place += tensor.rank
    return found
