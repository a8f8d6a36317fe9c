"""Functional collectives of PyTorch, with the ranks of every group written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from rewright import ops
from rewright.frontends.aten.context import Context, Table, Value
from rewright.ir.dims import Dim
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import TensorType
from rewright.ops.base import ReductionKind
from rewright.ops.reference import building as rb

TABLE = Table()
_KINDS: dict[str, ReductionKind] = {
    "sum": "sum",
    "avg": "sum",
    "max": "maximum",
    "min": "minimum",
    "product": "product",
    "band": "and",
    "bor": "or",
}


def _kind(reduce_op: str) -> ReductionKind:
    kind = _KINDS.get(reduce_op.lower())
    if kind is None:
        raise UnsupportedOperator(f"a collective with {reduce_op}; use sum, avg, max, min, product, band or bor")
    return kind


def _average(c: Context, position: int, reduce_op: str, ranks: Sequence[int]) -> int:
    """An average is a sum divided by the number of ranks."""
    if reduce_op.lower() != "avg":
        return position
    return rb.divide(c.b, position, rb.splat_like(c.b, len(ranks), position))


class _Who(TypedDict):
    """Who meets in a collective, and whether its rank goes on before that."""

    groups: tuple[tuple[int, ...], ...]
    communicator: int
    posted: bool


def _who(c: Context, group: object) -> _Who:
    found = c.communicator(group)
    return {"groups": (found.ranks,), "communicator": found.number, "posted": c.call.is_posted()}


def _all_reduce(c: Context, position: int, reduce_op: str, group: object) -> int:
    ranks = c.communicator(group).ranks
    if len(ranks) == 1:  # among one rank nothing moves
        return position
    reduced = c.b.add(ops.AllReduce(_kind(reduce_op), **_who(c, group)), position)
    return _average(c, reduced, reduce_op, ranks)


@TABLE.register(
    "_c10d_functional.all_reduce.default",
)
def all_reduce(c: Context, x: Value, reduce_op: str, group: object) -> int:
    return _all_reduce(c, x.position, reduce_op, group)


@TABLE.register("vllm.all_reduce.default")
def all_reduce_sum(c: Context, x: Value, group: object) -> int:
    return _all_reduce(c, x.position, "sum", group)


@TABLE.register("_c10d_functional.all_reduce_coalesced.default", "_c10d_functional.all_reduce_coalesced_.default")
def all_reduce_coalesced(c: Context, tensors: Sequence[Value], reduce_op: str, group: object) -> tuple[int, ...]:
    return tuple(_all_reduce(c, x.position, reduce_op, group) for x in tensors)


@TABLE.register(
    "_c10d_functional.all_gather_into_tensor.default",
    "_c10d_functional.all_gather_into_tensor_out.default",
    "_c10d_functional_autograd.all_gather_into_tensor.default",
)
def all_gather(c: Context, x: Value, group_size: int, group: object) -> int:
    whole = _with_axis(c, x)
    alone = len(c.communicator(group).ranks) == 1
    return whole if alone else c.b.add(ops.AllGather(0, **_who(c, group)), whole)


def _with_axis(c: Context, x: Value) -> int:
    return x.position if x.rank else rb.reshape(c.b, x.position, (1,))


@TABLE.register("_c10d_functional.all_gather_into_tensor_coalesced.default")
def all_gather_coalesced(c: Context, tensors: Sequence[Value], group_size: int, group: object) -> tuple[int, ...]:
    return tuple(all_gather(c, x, group_size, group) for x in tensors)


@TABLE.register(
    "_c10d_functional.reduce_scatter_tensor.default",
    "_c10d_functional.reduce_scatter_tensor_out.default",
    "_c10d_functional_autograd.reduce_scatter_tensor.default",
)
def reduce_scatter(c: Context, x: Value, reduce_op: str, group_size: int, group: object) -> int:
    ranks = c.communicator(group).ranks
    if len(ranks) == 1:
        return x.position
    part = c.b.add(ops.ReduceScatter(_kind(reduce_op), 0, **_who(c, group)), x.position)
    return _average(c, part, reduce_op, ranks)


@TABLE.register("_c10d_functional.reduce_scatter_tensor_coalesced.default")
def reduce_scatter_coalesced(
    c: Context, tensors: Sequence[Value], reduce_op: str, group_size: int, group: object
) -> tuple[int, ...]:
    return tuple(reduce_scatter(c, x, reduce_op, group_size, group) for x in tensors)


@TABLE.register("cplib.flex_cp_allgather.default")
def keys_and_values_gathered(c: Context, k: Value, v: Value, seq_dim: int, pg_name: object) -> tuple[int, ...]:
    """Keys and values of all ranks along the sequence, as PyTorch's context_parallel asks for FlexAttention."""
    return tuple(c.b.add(ops.AllGather(x.axis(seq_dim), **_who(c, pg_name)), x.position) for x in (k, v))


@TABLE.register("cplib.flex_cp_allgather_backward.default")
def gradients_of_keys_and_values(
    c: Context, grad_full_k: Value, grad_full_v: Value, seq_dim: int, pg_name: object
) -> tuple[int, ...]:
    """The sum over ranks of what they add to the gradients of keys and values, each rank's part of the sequence."""
    both = grad_full_k, grad_full_v
    return tuple(c.b.add(ops.ReduceScatter("sum", x.axis(seq_dim), **_who(c, pg_name)), x.position) for x in both)


@TABLE.register(
    "_c10d_functional.all_to_all_single.default",
    "_c10d_functional_autograd.all_to_all_single.default",
)
def all_to_all(
    c: Context, x: Value, output_split_sizes: Sequence[Dim], input_split_sizes: Sequence[Dim], group: object
) -> int:
    send, receive = tuple(input_split_sizes), tuple(output_split_sizes)
    if len(set(send)) == 1 and send == receive:
        return c.b.add(ops.AllToAll(0, 0, **_who(c, group)), x.position)
    return c.b.add(ops.AllToAll(0, 0, send_splits=send, receive_splits=receive, **_who(c, group)), x.position)


@TABLE.register("_dtensor.shard_dim_alltoall.default")
def shard_dim_alltoall(c: Context, x: Value, gather_dim: int, shard_dim: int, group: object) -> int:
    return c.b.add(ops.AllToAll(x.axis(shard_dim), x.axis(gather_dim), **_who(c, group)), x.position)


@TABLE.register(
    "_c10d_functional.broadcast.default",
)
def broadcast(c: Context, x: Value, src: int, group: object) -> int:
    """The source is a position in the group, as functional collectives count."""
    ranks = c.communicator(group).ranks
    if not 0 <= src < len(ranks):
        raise UnsupportedOperator(f"a broadcast from position {src} of a group of {len(ranks)}; name a member")
    if len(ranks) == 1:
        return x.position
    return c.b.add(ops.CollectiveBroadcast(ranks[src], **_who(c, group)), x.position)


@TABLE.register("rewright.send.default")
def send(c: Context, x: Value, destination: int, tag: int = 0) -> int:
    """What has one element is sent as a vector: a transport sends elements, and not their axes."""
    if not _is_single(x):
        return c.b.add(ops.Send(destination, tag), x.position)
    sent = c.b.add(ops.Send(destination, tag), c.b.add(ops.Reshape((1,)), x.position))
    return c.b.add(ops.Reshape(x.shape), sent)


def _is_single(x: Value) -> bool:
    """Whether a tensor has one element, and is no vector."""
    return len(x.shape) != 1 and all(size == 1 for size in x.shape)


@TABLE.register("rewright.posted.default")
def posted(c: Context, x: Value) -> int:
    """What a collective will have computed when somebody waits for it."""
    return x.position


@TABLE.register("rewright.in_flight.default")
def in_flight(c: Context, x: Value, overwritten: str) -> int:
    """What memory holds that a collective writes, and that nobody has waited for."""
    return pending_result(c, x.position, overwritten)


def pending_result(c: Context, result: int, overwritten: str = "") -> int:
    """What is in the memory of a collective's result until somebody waits for it."""
    attributes = (*c.site(), ("overwritten", overwritten))
    return c.b.add(ops.CustomCall(ops.CustomCall.IN_FLIGHT, attributes, (c.b.type(result),), 0), result)


@TABLE.register("rewright.recv.default")
def recv(c: Context, like: Value, source: int, tag: int = 0) -> int:
    single = _is_single(like)
    found = c.b.add(ops.Recv(source, tag, TensorType((1,) if single else like.shape, like.dtype)))
    return c.b.add(ops.Reshape(like.shape), found) if single else found
