"""A process group without peers: every call to a collective becomes a functional operator in the trace.

Whatever route a program takes (functional, in-place, async, list and coalesced forms, point to point, functions bound
early under another name, autograd functions), ``torch.distributed`` ends in a method of the process group. This one
emits ``_c10d_functional`` operators, and for point to point ``rewright::send`` and ``rewright::recv``, whose peers are
global ranks. A broadcast's source is a rank within the group, as the functional operator defines it.

What an asynchronous collective writes is there when its handle is waited for, and ``rewright::in_flight`` until then.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from rewright.frontends.torch.communication import communication
from rewright.frontends.torch.overwriting import SEND, Unfinished, note_write, running
from rewright.frontends.torch.run.exchange import Pending, current_exchange
from rewright.frontends.torch.waiting import log
from rewright.ir.errors import CaptureError

BACKEND = "rewright"
Tensors = list[torch.Tensor]
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_CALLED = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "alltoall": "all_to_all",
    "all_gather_single": "all_gather_into_tensor",
    "reduce_scatter_single": "reduce_scatter_tensor",
}
"""What the functions of ``torch.distributed`` are called that end in a method of another name."""
_TAGS = 1 << 32
"""Tags of one group are smaller."""
_REDUCTIONS = {
    "SUM": "sum",
    "AVG": "avg",
    "PRODUCT": "product",
    "MIN": "min",
    "MAX": "max",
    "BAND": "band",
    "BOR": "bor",
    "BXOR": "bxor",
}

# The annotations of these classes differ from how PyTorch calls their methods.
_distributed: Any = dist
_Work: Any = _distributed._Work
_ProcessGroup: Any = _distributed.ProcessGroup


class Handle(_Work):
    """The handle of a collective: what an asynchronous call returns."""

    def __init__(self, tensors: Sequence[Any], parts: Sequence[Handle] = ()) -> None:
        _Work.__init__(self)
        self._tensors, self._parts = list(tensors), list(parts)
        self._landing: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._unfinished: Unfinished | None = None
        self._ticket: int | None = None

    def begin(self, landing: Sequence[tuple[torch.Tensor, torch.Tensor]], unfinished: Unfinished) -> None:
        """Have tensors get values when somebody waits; nobody may write to the collective's until then."""
        self._landing += landing
        unfinished.finish = self.wait
        self._unfinished = unfinished
        running.every.append(unfinished)

    def awaited_by(self, ticket: int) -> None:
        """Have who waits be noted as waiting for the call of that ticket."""
        self._ticket = ticket

    def wait(self, timeout: object = None) -> bool:
        """Write what was received; True."""
        for part in self._parts:
            part.wait()
        if self._ticket is not None:
            log.wait(self._ticket)
            self._ticket = None
        if self._unfinished in running.every:
            running.every.remove(self._unfinished)
        landing, self._landing = self._landing, []
        by = self._unfinished.overwritten if self._unfinished is not None else ""
        for destination, value in landing:
            _copy(destination, communication().in_flight(value, by) if by else value)
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        """True: who asks and goes on has waited."""
        return self.wait()

    def result(self) -> list[Any]:
        """The tensors written."""
        return self._tensors

    def get_future(self) -> Any:
        """A future that holds the tensors written; what asks for it is taken to wait for it."""
        self.wait()
        kind: Any = torch.futures.Future
        future = kind()
        future.set_result(self._tensors)
        return future


class Receiving(Handle):
    """The handle of a receive; among ranks that run the values come when it is waited for."""

    def __init__(self, tensors: Tensors, pending: Sequence[tuple[torch.Tensor, Pending]]) -> None:
        super().__init__(tensors)
        self._pending = list(pending)

    def wait(self, timeout: object = None) -> bool:
        """Fill the tensors; True."""
        for tensor, each in self._pending:
            each.wait(tensor)
        return super().wait()


class _Nesting(threading.local):
    """Whether this thread is inside a method of the group: the functional operator calls back when it runs eagerly."""

    def __init__(self) -> None:
        self.inside = False
        self.landing: list[tuple[torch.Tensor, torch.Tensor]] | None = None
        """For an asynchronous call what it has to write later."""


_nesting = _Nesting()


def _outermost(
    method: Callable[Concatenate[TracedGroup, _Arguments], Handle],
) -> Callable[Concatenate[TracedGroup, _Arguments], Handle]:
    """A nested call is eager execution outside of a trace: answer as if every rank held this rank's values."""

    @functools.wraps(method)
    def call(self: TracedGroup, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Handle:
        if _nesting.inside:
            return _eager(self, method.__name__, args)
        options: Any = kwargs.get("opts", args[-1] if args else None)
        landing = _nesting.landing = [] if getattr(options, "asyncOp", False) else None
        ticket = log.begin("collective", self.members(), self.number())
        _nesting.inside = True
        try:
            handle = method(self, *args, **kwargs)
        finally:
            _nesting.inside, _nesting.landing = False, None
        if landing is None:
            log.wait(ticket)
        else:
            handle.awaited_by(ticket)
            name = _CALLED.get(method.__name__, method.__name__)
            handle.begin(landing, Unfinished.of(name, args))
        return handle

    return call


def _eager(group: TracedGroup, method: str, values: tuple[Any, ...]) -> Handle:
    output: Any = values[0] if values else []
    if isinstance(output, torch.Tensor) and method == "all_gather_single":
        output.copy_(torch.cat([values[1].reshape(-1)] * group.size()).view(output.shape))
    elif isinstance(output, torch.Tensor) and method == "reduce_scatter_single":
        output.copy_(values[1].reshape(group.size(), -1)[group.rank()].view(output.shape))
    return Handle(_as_list(output))


class TracedGroup(_ProcessGroup):
    """The process group of one rank among ``size``; there are no peers and nothing is communicated."""

    def __init__(self, rank: int, size: int) -> None:
        _ProcessGroup.__init__(self, rank, size)
        self._own_rank, self._own_size, self._own_name = rank, size, ""

    def size(self) -> int:
        """Number of ranks in the group."""
        return self._own_size

    def rank(self) -> int:
        """This rank's position in the group."""
        return self._own_rank

    def getBackendName(self) -> str:
        """The name that the backend is registered under."""
        return BACKEND

    def _get_backend(self, device: object) -> TracedGroup:
        """The backend for a device, which PyTorch asks whether it joins messages: the group itself, and it does not."""
        return self

    def members(self) -> list[int]:
        """The global ranks of the group."""
        return dist.get_process_group_ranks(self)

    def number(self) -> int:
        """Which of the groups of these ranks it is, in the order in which they were made."""
        return log.communicators()[self.pg_name].number

    @property
    def pg_name(self) -> str:
        """The name by which functional operators refer to the group; one that is destroyed keeps it."""
        if not self._own_name:
            self._own_name = c10d._world.pg_names[self]  # pyright: ignore[reportPrivateUsage]
        return self._own_name

    @property
    def group_name(self) -> str:
        """The same as ``pg_name``."""
        return self.pg_name

    def __repr__(self) -> str:
        return f"TracedGroup({self._own_rank} of {self._own_size})"

    @_outermost
    def allreduce(self, tensors: Any, opts: Any = None) -> Handle:
        """Every tensor becomes its reduction over the group."""
        every = _as_list(tensors)
        for tensor in every:
            _write(tensor, self._reduced(tensor.detach(), opts))
        return Handle(every)

    allreduce_coalesced = allreduce

    @_outermost
    def reduce(self, tensors: Tensors, opts: Any = None) -> Handle:
        """The root's tensors become the reduction; the others keep theirs."""
        for tensor in tensors:
            reduced = self._reduced(tensor.detach(), opts)
            if opts.rootRank == self._own_rank:
                _write(tensor, reduced)
        return Handle(tensors)

    @_outermost
    def broadcast(self, tensors: Tensors, opts: Any = None) -> Handle:
        """Every tensor becomes the root's."""
        for tensor in tensors:
            _write(tensor, self._call("broadcast", tensor.detach(), opts.rootRank))
        return Handle(tensors)

    @_outermost
    def scatter(self, outputs: Tensors, inputs: list[Tensors], opts: Any = None) -> Handle:
        """Every output becomes this rank's tensor of the root's list: a broadcast of all of them, then one slice."""
        for position, output in enumerate(outputs):
            mine = inputs[position] if inputs else [torch.zeros_like(output)] * self._own_size
            stacked = torch.stack([tensor.detach() for tensor in mine])
            every = self._call("broadcast", stacked, opts.rootRank)
            _write(output, every[self._own_rank])
        return Handle(outputs)

    @_outermost
    def gather(self, outputs: list[Tensors], inputs: Tensors, opts: Any = None) -> Handle:
        """The root's list becomes everybody's tensors."""
        for position, tensor in enumerate(inputs):
            parts = self._gather(tensor)
            if opts.rootRank == self._own_rank:
                for output, part in zip(outputs[position], parts, strict=True):
                    _write(output, part.view(output.shape))
        return Handle(outputs)

    @_outermost
    def all_gather_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Handle:
        """The output becomes everybody's tensors one after the other along axis 0."""
        every = self._call("all_gather_into_tensor", _flat(given), self._own_size)
        _write(output, every.view(output.shape))
        return Handle([output])

    _allgather_base = all_gather_single  # its name before PyTorch 2.13

    def all_gather_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Handle:
        """Several at once."""
        both = zip(outputs, inputs, strict=True)
        return Handle(outputs, [self.all_gather_single(output, given, opts) for output, given in both])

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    @_outermost
    def allgather(self, outputs: list[Tensors], inputs: Tensors, opts: Any = None) -> Handle:
        """Every list becomes everybody's tensors, which need not have one shape: each rank knows those of all."""
        for every, given in zip(outputs, inputs, strict=True):
            sizes = [output.numel() for output in every]
            if given.numel() != sizes[self._own_rank]:
                own = tuple(every[self._own_rank].shape)
                raise CaptureError(f"all_gather of {tuple(given.shape)} into {own}, its place; give it that shape")
            sent = given if len(set(sizes)) == 1 else _filled(given, max(sizes))
            for output, part, size in zip(every, self._gather(sent), sizes, strict=True):
                _write(output, part.reshape(-1)[:size].view(output.shape))
        return Handle(outputs)

    def allgather_coalesced(self, outputs: list[Tensors], inputs: Tensors, opts: Any = None) -> Handle:
        """Here ``outputs[rank]`` has one tensor for each of ``inputs``."""
        return self.allgather([[each[i] for each in outputs] for i in range(len(inputs))], inputs, opts)

    @_outermost
    def reduce_scatter_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Handle:
        """The output becomes this rank's chunk along axis 0 of the reduction."""
        _write(output, self._scatter(_flat(given), opts).view(output.shape))
        return Handle([output])

    _reduce_scatter_base = reduce_scatter_single  # its name before PyTorch 2.13

    def reduce_scatter_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Handle:
        """Several at once."""
        both = zip(outputs, inputs, strict=True)
        return Handle(outputs, [self.reduce_scatter_single(output, given, opts) for output, given in both])

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    @_outermost
    def reduce_scatter(self, outputs: Tensors, inputs: list[Tensors], opts: Any = None) -> Handle:
        """Every output becomes the reduction of this rank's tensor in everybody's lists, which have equal shapes."""
        for output, every in zip(outputs, inputs, strict=True):
            if any(part.shape != output.shape for part in every):
                raise CaptureError(
                    f"reduce_scatter of tensors of shapes {[tuple(p.shape) for p in every]} is uneven; use equal shapes"
                )
            stacked = torch.stack([part.detach() for part in every])
            _write(output, self._scatter(stacked, opts).view(output.shape))
        return Handle(outputs)

    @_outermost
    def all_to_all_single(
        self, output: torch.Tensor, given: torch.Tensor, output_splits: Any, input_splits: Any, opts: Any = None
    ) -> Handle:
        """Chunks along axis 0 go to their ranks; without splits the chunks are equal."""
        received = list(output_splits) or [output.shape[0] // self._own_size] * self._own_size
        sent = list(input_splits) or [given.shape[0] // self._own_size] * self._own_size
        _write(output, self._call("all_to_all_single", _flat(given), received, sent))
        return Handle([output])

    alltoall_base = all_to_all_single  # its name before PyTorch 2.13

    @_outermost
    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Handle:
        """Tensor ``i`` of the inputs goes to rank ``i`` of the group."""
        if len({t.shape[1:] for t in [*outputs, *inputs]}) > 1 or any(t.dim() == 0 for t in inputs):
            raise CaptureError("all_to_all of tensors that differ beyond axis 0 cannot be captured; flatten them first")
        received, sent = [t.shape[0] for t in outputs], [t.shape[0] for t in inputs]
        every = self._call("all_to_all_single", torch.cat([t.detach() for t in inputs]), received, sent)
        for output, part in zip(outputs, torch.split(every, received), strict=True):
            _write(output, part.view(output.shape))
        return Handle(outputs)

    def send(self, tensors: Tensors, destination: int, tag: int = 0) -> Handle:
        """Send to a rank of the group; the operator holds the global rank."""
        tag = self._tag(destination, tag)
        for tensor in tensors:
            communication().send(tensor.detach(), self._global_rank(destination), tag)
        handle = Handle(tensors)
        handle.awaited_by(log.begin("send", [self._global_rank(destination)], tag))
        handle.begin((), Unfinished.of(SEND, tensors))
        return handle

    def recv(self, tensors: Tensors, source: int, tag: int = 0) -> Handle:
        """Receive from a rank of the group; the operator holds the global rank."""
        pending: list[tuple[torch.Tensor, Pending]] = []
        landing: list[tuple[torch.Tensor, torch.Tensor]] = []
        note_write("recv", tensors)
        tag = self._tag(source, tag)
        ticket = log.begin("recv", [self._global_rank(source)], tag)
        for tensor in tensors:
            value = communication().recv(tensor.detach(), self._global_rank(source), tag)
            exchange = current_exchange()
            pending += [(tensor, exchange.claim())] if exchange is not None else []
            _copy(tensor, communication().in_flight(value, ""))
            landing.append((tensor, value))
        handle = Receiving(tensors, pending)
        handle.awaited_by(ticket)
        handle.begin(landing, Unfinished.of("recv", tensors))
        return handle

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Handle:
        """Always an error: the sender is not known in advance."""
        raise CaptureError("recv from any source depends on timing and cannot be captured; name the source rank")

    def barrier(self, opts: Any = None) -> Handle:
        """Nothing: it moves no data. The others are waited for all the same."""
        handle = Handle([])
        handle.awaited_by(log.begin("collective", self.members(), self.number()))
        return handle

    def _tag(self, rank: int, tag: int) -> int:
        """The tag of a message, apart from that of other groups: messages of two groups never meet.

        Both ends are in the same groups with each other, which every member made in one order.
        """
        peer = self._global_rank(rank)
        common = [name for name, group in log.communicators().items() if peer in group.ranks]
        return tag + _TAGS * common.index(self.pg_name)

    def _global_rank(self, rank: int) -> int:
        return dist.get_global_rank(self, rank)

    def _call(self, operator: str, *args: object) -> torch.Tensor:
        """The functional operator on this group, waited for, or posted where the call is asynchronous."""
        functional: Any = torch.ops._c10d_functional
        result: Any = functional.wait_tensor(getattr(functional, operator)(*args, self.pg_name))
        return result if _nesting.landing is None else communication().posted(result)

    def _reduced(self, tensor: torch.Tensor, opts: Any) -> torch.Tensor:
        scaled, kind = _reduction(tensor, opts)
        return self._call("all_reduce", scaled, kind)

    def _scatter(self, tensor: torch.Tensor, opts: Any) -> torch.Tensor:
        scaled, kind = _reduction(tensor, opts)
        return self._call("reduce_scatter_tensor", scaled, kind, self._own_size)

    def _gather(self, tensor: torch.Tensor) -> Sequence[torch.Tensor]:
        every = self._call("all_gather_into_tensor", _flat(tensor), self._own_size)
        return every.chunk(self._own_size) if tensor.dim() else every.unbind()


def _filled(given: torch.Tensor, size: int) -> torch.Tensor:
    """The elements of a tensor, with zeros up to a number of elements."""
    return torch.cat([given.reshape(-1), given.new_zeros(size - given.numel())])


@functools.cache
def register_backend() -> None:
    """Make ``init_process_group("rewright")`` create groups of this class."""

    def create(store: object, rank: int, size: int, timeout: object) -> TracedGroup:
        return TracedGroup(rank, size)

    _distributed.Backend.register_backend(BACKEND, create, devices=["cpu", "cuda"])


def _write(destination: torch.Tensor, source: torch.Tensor) -> None:
    """The in-place form: the caller's tensor gets the result, of an asynchronous call when it is waited for."""
    if _nesting.landing is None:
        _copy(destination, source)
        return
    _copy(destination, communication().in_flight(source, ""))
    _nesting.landing.append((destination, source))


@torch.no_grad()
def _copy(destination: torch.Tensor, source: torch.Tensor) -> None:
    running.is_own = True
    try:
        destination.detach().copy_(source)
    finally:
        running.is_own = False


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous()


def _as_list(tensors: Any) -> Tensors:
    return cast("Tensors", tensors) if isinstance(tensors, list) else [tensors]


def _reduction(tensor: torch.Tensor, opts: Any) -> tuple[torch.Tensor, str]:
    """The tensor to reduce and the name of the reduction; a pre-multiplied sum is a product and a sum."""
    operator: Any = getattr(opts, "reduceOp", opts)
    name = "SUM" if operator is None else str(getattr(operator, "op", operator)).rsplit(".", 1)[-1]
    if name == "PREMUL_SUM":
        factor: float = cast("Any", operator).__getstate__()[1]  # it can be read nowhere else
        return tensor * factor, "sum"
    if name not in _REDUCTIONS:
        raise CaptureError(f"a collective reduces with {name}, which is unknown; use SUM, AVG, PRODUCT, MIN or MAX")
    return tensor, _REDUCTIONS[name]
