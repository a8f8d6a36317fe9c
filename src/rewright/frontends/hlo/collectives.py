"""HLO collectives, and which devices take part in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rewright import ops
from rewright.frontends.hlo.context import Context, registering
from rewright.frontends.hlo.devices import Groups
from rewright.frontends.hlo.module import Instruction
from rewright.frontends.hlo.reductions import reduction
from rewright.ir.errors import RewrightError, UnsupportedOperator
from rewright.ops.reference import building as rb

Function = Callable[[Context, Instruction, int], int]
TABLE: dict[str, Function] = {}
_register = registering(TABLE)


def members(c: Context, i: Instruction) -> tuple[int, ...]:
    """The devices of the own group, in order.

    Groups are of replicas; with a channel they are of replicas with all their partitions, or of devices where the
    instruction says so (``use_global_device_ids``). For an exchange between pairs a channel means partitions. Raises
    RewrightError where no group has the device.
    """
    groups: Groups = i.attribute("replica_groups") or ()
    channel = i.attribute("channel_id") is not None
    devices = bool(i.attribute("use_global_device_ids"))
    if devices or (channel and i.opcode.startswith(("all-to-all", "collective-"))):
        across = devices or c.replicas == 1
        return _own(i, groups, c.device if across else c.partition, _all(c, devices))
    if channel and c.partitions > 1:
        replicas = _own(i, groups, c.replica, range(c.replicas))
        return tuple(replica * c.partitions + part for replica in replicas for part in range(c.partitions))
    replicas = _own(i, groups, c.replica, range(c.replicas))
    return tuple(replica * c.partitions + c.partition for replica in replicas)


def _all(c: Context, devices: bool) -> range:
    return range(c.replicas * c.partitions) if devices else range(c.partitions)


def _own(i: Instruction, groups: Sequence[Sequence[int]], own: int, everyone: Sequence[int]) -> tuple[int, ...]:
    if not groups:
        return tuple(everyone)
    found = [tuple(group) for group in groups if own in group]
    if len(found) != 1 or not set(found[0]) <= set(everyone):
        raise RewrightError(f"device {own} is in {len(found)} replica groups of {i.name:.60}; print the module again")
    return found[0]


@_register("all-reduce", "all-reduce-start")
def _all_reduce(c: Context, i: Instruction, operand: int) -> int:
    group = members(c, i)
    return operand if len(group) == 1 else c.b.add(ops.AllReduce(reduction(c.module, i), (group,)), operand)


@_register("all-gather", "all-gather-start")
def _all_gather(c: Context, i: Instruction, operand: int) -> int:
    (axis,) = i.integers("dimensions")
    group = members(c, i)
    return operand if len(group) == 1 else c.b.add(ops.AllGather(axis, (group,)), operand)


@_register("reduce-scatter")
def _reduce_scatter(c: Context, i: Instruction, operand: int) -> int:
    (axis,) = i.integers("dimensions")
    group = members(c, i)
    return operand if len(group) == 1 else c.b.add(ops.ReduceScatter(reduction(c.module, i), axis, (group,)), operand)


@_register("all-to-all")
def _all_to_all(c: Context, i: Instruction, operand: int) -> int:
    axes = i.integers("dimensions")
    if len(axes) != 1:
        raise UnsupportedOperator("an exchange of a tuple of arrays; join them first")
    group = members(c, i)
    return operand if len(group) == 1 else c.b.add(ops.AllToAll(axes[0], axes[0], (group,)), operand)


def exchange(c: Context, i: Instruction, operands: Sequence[int]) -> tuple[int, ...]:
    """``all-to-all`` of a tuple: part k goes to member k, and part k of the result is what member k sent."""
    group = members(c, i)
    if len(operands) != len(group):
        raise RewrightError(f"{i.name:.60} sends {len(operands)} arrays to {len(group)} devices; print it again")
    shape = c.b.type(operands[0]).shape
    joined = rb.concatenate(c.b, [rb.reshape(c.b, operand, (1, *shape)) for operand in operands], 0)
    moved = joined if len(group) == 1 else c.b.add(ops.AllToAll(0, 0, (group,)), joined)
    return tuple(
        rb.reshape(c.b, rb.slice_axis(c.b, moved, 0, place, place + 1), shape) for place in range(len(operands))
    )


@_register("collective-permute", "collective-permute-start")
def _permute(c: Context, i: Instruction, operand: int) -> int:
    given: Sequence[tuple[int, int]] = i.attribute("source_target_pairs") or ()
    partitions = i.attribute("channel_id") is not None
    moved: list[tuple[int, int]] = []
    for source, target in given:
        if partitions:
            moved += [(r * c.partitions + source, r * c.partitions + target) for r in range(c.replicas)]
        else:
            moved += [(source * c.partitions + p, target * c.partitions + p) for p in range(c.partitions)]
    if any(not 0 <= device < c.replicas * c.partitions for pair in moved for device in pair):
        raise RewrightError(f"{i.name:.60} moves between devices that do not exist; print the module again")
    return c.b.add(ops.CollectivePermute(tuple(moved)), operand)


@_register("collective-broadcast")
def _broadcast(c: Context, i: Instruction, operand: int) -> int:
    group = members(c, i)
    return operand if len(group) == 1 else c.b.add(ops.CollectiveBroadcast(group[0], (group,)), operand)


def identity(c: Context, i: Instruction) -> int:
    """``partition-id`` and ``replica-id``: numbers of the device."""
    number = c.partition if i.opcode == "partition-id" else c.replica
    return rb.splat(c.b, number, (), c.type(i).dtype)
