"""The programs of all ranks of a mesh, captured one rank after the other in one process on a CPU."""

from __future__ import annotations

import gc
import multiprocessing
import operator
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from torch.distributed.device_mesh import DeviceMesh

from rewright.frontends import fitting
from rewright.frontends.ranks import share_nodes
from rewright.frontends.torch import forks, waiting
from rewright.frontends.torch.alike.lowering import lower_alike
from rewright.frontends.torch.alike.tracing import Alike, have_one_group, trace_alike
from rewright.frontends.torch.capture import with_metadata
from rewright.frontends.torch.drawing.generators import watching_seeds
from rewright.frontends.torch.fakes import Dynamic
from rewright.frontends.torch.lower import lower
from rewright.frontends.torch.one_rank import Build, TracedRank, build_program, trace_rank
from rewright.frontends.torch.run.exchange import Exchange
from rewright.frontends.torch.run.running import run
from rewright.frontends.torch.run.together import Ranks, check_ranks, run_together
from rewright.frontends.torch.specs import RankPlacement, assemble
from rewright.frontends.torch.traced import TracedProgram
from rewright.frontends.torch.validation.calls import Calls
from rewright.frontends.torch.waiting import Waits
from rewright.frontends.torch.world import groups, without_network
from rewright.frontends.validation.record import Validation, join_validations
from rewright.ir.errors import CaptureError, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, Placement, RankProgram
from rewright.ir.unknowns import unknowns

_PATIENCE = 30.0
"""Seconds that a copy of this process is waited for, besides those in which all ranks would be traced one by one."""


@dataclass(frozen=True)
class _Lowered:
    graph: Graph
    inputs: dict[str, RankPlacement]
    outputs: dict[str, RankPlacement]
    notes: tuple[str, ...]
    collectives: int
    waits: Waits
    checked: Validation | None = None
    """Of a rank that is checked where it runs."""


def capture_ranks(
    build: Build,
    mesh: Mapping[str, int],
    *,
    backward: bool = False,
    dynamic: Dynamic | None = None,
    jobs: int = 1,
    ranks: Ranks = "traced",
    all_ranks: bool = False,
    validate: bool = True,
) -> RankProgram:
    """Call ``build`` once per rank with a device mesh of these axes, trace what it returns, and lower it.

    Under the mesh there are no peers: every collective is recorded and none communicates. Placements of parameters,
    buffers, arguments, results and gradients are read off DTensors; of plain tensors only parameters that Megatron-LM
    marked (``tensor_model_parallel``, ``partition_dim``, ``partition_stride``) have a known placement. ``jobs`` forks
    that many processes, each for its share of the ranks. With ``validate`` every distinct call of all ranks is checked
    once. The rest is as in :func:`capture`. Raises CaptureError and UnsupportedOperator.

    Ranks whose process groups are of all of them are traced once, in a copy of this process, where the program does not
    look at a number that ranks differ in, but only computes with it; the last rank is traced by itself too, and has to
    be the same. Else they are traced one after the other, as they are with ``all_ranks``.

    Of a mesh of more than 16 ranks some are traced, and the rest is taken to be like them but for numbers that are
    affine in mesh coordinates, which is compared with ranks that it was not made from and named under assumptions.
    Where it does not hold, or with ``all_ranks``, every rank is traced.

    ``ranks="threads"`` runs all ranks together instead, on the real tensors that ``build`` returns, and records what
    they do: for programs that look at values (token counts), pipeline schedules, and gradient reducers. ``"processes"``
    forks one process per rank, for code that keeps its rank in a global. Such a capture is of one run, and the
    verdict's assumptions name the values that the program looked at.
    """
    axes = Mesh.of(mesh)
    check_ranks(ranks)
    if axes.size < 1:
        raise CaptureError(f"the mesh {dict(mesh)} has no ranks; give every axis a size of at least one")
    if ranks != "traced":
        if dynamic:
            raise CaptureError(f"ranks={ranks!r} runs on real tensors, whose sizes are numbers; leave dynamic out")
        return _run_together(build, axes, backward, ranks, Calls() if validate else None)
    calls = Calls() if validate else None

    def one(rank: int) -> _Lowered:
        traced = trace_rank(build, axes, rank, backward=backward, dynamic=dynamic)
        if calls is not None:
            calls.add(traced.trace.program)
        return _lower(traced)

    def checked() -> list[Validation]:
        return [] if calls is None else [calls.record()]

    if axes.size > fitting.LARGEST and not all_ranks:
        fitted = _fit(one, axes)
        if fitted is not None:
            return _assemble(fitted, axes, checked())
    if 2 < axes.size <= fitting.LARGEST and have_one_group(axes) and not all_ranks and forks.are_possible():
        copy = forks.Asked(partial(_trace_alike, build, axes, backward, dynamic, validate))
        if (found := _of_all(copy, partial(one, axes.size - 1), axes)) is not None:
            return _assemble(found[0], axes, [*found[1], *checked()])
    if jobs > 1 and axes.size > 1:
        try:
            return _assemble(*_fork(one, checked, axes, jobs))
        except CaptureError as error:
            if not forks.is_refused(error):
                raise
    lowered = [one(rank) for rank in range(axes.size)]
    return _assemble(lowered, axes, checked())


def _trace_alike(
    build: Build, mesh: Mesh, backward: bool, dynamic: Dynamic | None, validate: bool
) -> tuple[list[_Lowered], list[Validation]]:
    """All ranks by one trace, and what was checked of calls in which they differ."""
    gc.disable()  # this process ends with its answer
    calls = Calls() if validate else None
    found: list[_Lowered] = []
    with trace_alike(build, mesh, backward=backward, dynamic=dynamic) as alike:
        graphs = _lowered_alike(alike, mesh)
        for rank in range(mesh.size):
            with alike.at(rank) as traced:
                if calls is not None:
                    calls.add(traced.trace.program, alike.arguments)
                found.append(_lower(traced, graphs.get(rank)))
    shared = share_nodes([rank.graph for rank in found])
    ranks = [replace(rank, graph=graph) for rank, graph in zip(found, shared, strict=True)]
    return ranks, [] if calls is None else [calls.record()]


def _lowered_alike(alike: Alike, mesh: Mesh) -> dict[int, Graph]:
    """The graphs of ranks that are lowered together; of those that are left out others may be alike."""
    graphs: dict[int, Graph] = {}
    rest = list(range(mesh.size))
    while len(rest) > 1:
        first = rest[-2]  # the numbers of the first ranks are often those of something else too, as nought and one
        with alike.at(first):
            graphs |= lower_alike({rank: alike.program(rank) for rank in rest}, alike.arguments, first)
        rest = [rank for rank in rest if rank not in graphs]
    return graphs


def _of_all(
    copy: forks.Asked[tuple[list[_Lowered], list[Validation]]], last: Callable[[], _Lowered], mesh: Mesh
) -> tuple[list[_Lowered], list[Validation]] | None:
    """What a copy of this process found for all ranks, where that is what the last one is by itself."""
    start = time.monotonic()
    try:
        own = last()
        found = copy.answer(_PATIENCE + mesh.size * (time.monotonic() - start))
    except RewrightError:  # which is then that of the first rank that has one
        return None
    finally:
        copy.end()
    return found if found is not None and _is_same(found[0][-1], own) else None


def _is_same(found: _Lowered, other: _Lowered) -> bool:
    return fitting.same(found, other) and found.graph.metadata == other.graph.metadata


def _fit(one: Callable[[int], _Lowered], mesh: Mesh) -> list[_Lowered] | None:
    """What all ranks have, from some of them; None where these differ in more than affine numbers."""

    waits: list[Waits] = []

    def unordered(rank: int) -> _Lowered:
        found = one(rank)
        waits.append(found.waits)
        return replace(found, waits=Waits())  # what other ranks wait for is not known

    known = {place: unordered(mesh.rank(place)) for place in fitting.first_ranks(mesh)}
    try:
        build = fitting.fit(known, mesh)
    except fitting.NotAffine:
        return None
    others = fitting.other_ranks(mesh)
    if not all(fitting.same(build(place), unordered(mesh.rank(place))) for place in others):
        return None
    if not waiting.have_equal_order(waits):
        return None
    found = [build(mesh.coordinates(rank)) for rank in range(mesh.size)]
    captured = sorted(mesh.rank(place) for place in (*known, *others))
    shown = ", ".join(map(str, captured))
    text = (
        f"of {mesh.size} ranks those numbered {shown} were captured, and the others run the same program with numbers "
        "that are affine in mesh coordinates"
    )
    graph = found[0].graph
    before = graph.metadata.get("assumptions")
    metadata = graph.metadata | {"assumptions": f"{before}; {text}" if before else text}
    return [replace(found[0], graph=replace(graph, metadata=metadata)), *found[1:]]


def _run_together(
    build: Build, mesh: Mesh, backward: bool, ranks: Literal["threads", "processes"], calls: Calls | None
) -> RankProgram:
    """The program of ranks that run together; threads are checked when all have run, as a check is of the process."""
    programs: list[TracedProgram] = []

    def one(rank: int, device_mesh: DeviceMesh, exchange: Exchange) -> _Lowered:
        with watching_seeds():
            target, args, kwargs = build_program(build, device_mesh, rank)
            traced = run(target, args, kwargs, backward=backward, groups=groups, rank=rank, memory=exchange.memory)
        lowered = _lower(TracedRank.of(traced, mesh, rank))
        programs.append(traced.program)
        if calls is None or ranks == "threads":
            return lowered
        calls.add(traced.program)
        return replace(lowered, checked=calls.record())

    with without_network():
        lowered = run_together(one, mesh, ranks)
    if calls is None:
        return _assemble(lowered, mesh, [])
    for program in programs:
        calls.add(program)
    return _assemble(lowered, mesh, [calls.record(), *(rank.checked for rank in lowered if rank.checked is not None)])


def _lower(traced: TracedRank, graph: Graph | None = None) -> _Lowered:
    graph = with_metadata(graph or lower(traced.trace.program), traced.trace)
    outputs = {name: placement for name, placement in traced.outputs.items() if name in graph.outputs}
    return _Lowered(graph, traced.inputs, outputs, traced.trace.notes, traced.collectives, traced.trace.waits)


def _assemble(ranks: Sequence[_Lowered], mesh: Mesh, checked: Sequence[Validation]) -> RankProgram:
    """The program of lowered ranks; what was checked of them is reported once, with the first one."""
    notes = list(dict.fromkeys(note for rank in ranks for note in rank.notes))
    if mesh.size > 1 and not any(rank.collectives for rank in ranks):
        notes.append(
            f"no rank of {mesh.size} calls a collective: nothing is exchanged, which is right only if the ranks do "
            "independent or equal work"
        )
    waits = [rank.waits for rank in ranks]
    deadlock = waiting.deadlock(waits)
    notes += [*_different_names(ranks), *(() if deadlock else waiting.notes(waits))]
    first, *others = share_nodes(completed([rank.graph for rank in ranks], mesh))
    program = RankProgram(
        (join_validations(checked).attach_to(first) if checked else first, *others),
        mesh,
        _common([rank.inputs for rank in ranks]),
        _common([rank.outputs for rank in ranks]),
        tuple(notes),
    )
    return program.with_deadlock(deadlock) if deadlock else program


def completed(graphs: Sequence[Graph], mesh: Mesh) -> tuple[Graph, ...]:
    """The rank programs with equal inputs: a rank that lacks one of the others' takes it and does not use it.

    The parameters of other stages of a pipeline, say, and the inputs of its first stage. The shape is that of the
    rank with the most equal coordinates.
    """
    names = dict.fromkeys(name for graph in graphs for name in graph.inputs if name not in unknowns(graph))
    found: list[Graph] = []
    for rank, graph in enumerate(graphs):
        own = mesh.coordinates(rank)
        nearest = sorted(range(len(graphs)), key=lambda other: -sum(map(operator.eq, own, mesh.coordinates(other))))
        extra = {
            name: next(
                graphs[other].nodes[graphs[other].inputs[name]] for other in nearest if name in graphs[other].inputs
            )
            for name in names
            if name not in graph.inputs
        }
        places = {name: len(graph.nodes) + index for index, name in enumerate(extra)}
        drawn = {name: place for name, place in graph.inputs.items() if name not in names}
        inputs = {name: (graph.inputs | places)[name] for name in names} | drawn
        found.append(replace(graph, nodes=(*graph.nodes, *extra.values()), inputs=inputs) if extra else graph)
    return tuple(found)


def _different_names(ranks: Sequence[_Lowered]) -> list[str]:
    """A note where ranks do not return the same tensors."""
    every = {name for rank in ranks for name in rank.graph.outputs}
    found = sorted(name for name in every if any(name not in rank.graph.outputs for rank in ranks))
    return [f"only some ranks return {', '.join(found)}"] if found else []


def _common(tables: Sequence[Mapping[str, RankPlacement]]) -> dict[str, Placement]:
    """Placements that every rank knows."""
    return {
        name: assemble([table[name] for table in tables])
        for name in tables[0]
        if all(name in table for table in tables)
    }


def _fork(
    one: Callable[[int], _Lowered], checked: Callable[[], list[Validation]], mesh: Mesh, jobs: int
) -> tuple[list[_Lowered], Mesh, list[Validation]]:
    """What :func:`_assemble` takes, from forked processes that each do every ``jobs``-th rank."""
    size = mesh.size
    context = multiprocessing.get_context("fork")  # build functions are closures, which other start methods cannot send
    workers: list[tuple[Any, Any]] = []
    for share in range(min(jobs, size)):
        receiver, sender = context.Pipe(duplex=False)
        worker = context.Process(target=_send_share, args=(sender, one, checked, range(share, size, jobs)))
        forks.start([worker])
        sender.close()
        workers.append((worker, receiver))
    found: dict[int, _Lowered] = {}
    records: list[Validation] = []
    failure: RewrightError | None = None
    for worker, receiver in workers:
        try:
            answer: Any = receiver.recv()
        except EOFError:
            answer = CaptureError("a capture process ended without an answer; run with jobs=1 to see why")
        worker.join()
        if isinstance(answer, RewrightError):
            failure = failure or answer
        else:
            found |= answer[0]
            records += answer[1]
    if failure is not None:
        raise failure
    return [found[rank] for rank in range(size)], mesh, records


def _send_share(
    sender: Any, one: Callable[[int], _Lowered], checked: Callable[[], list[Validation]], ranks: Iterable[int]
) -> None:
    torch.set_num_threads(1)  # a thread pool of the parent does not survive the fork
    try:
        sender.send(({rank: one(rank) for rank in ranks}, checked()))
    except RewrightError as error:
        sender.send(error)
    finally:
        sender.close()
