"""Calls of an optimised program: by kernels where the guard of one that was looked at holds, else by itself."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch

from rewright.frontends.torch.names import bind_arguments, leaves
from rewright.frontends.torch.owners import Owners
from rewright.ir.digest import digest
from rewright.ir.errors import CaptureError, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.sizes import size_symbols, substitute_sizes
from rewright.ir.types import TensorType
from rewright.optimize.calls.ambient import is_watched, without_gradients
from rewright.optimize.calls.guard import Guard, Reached, look_at_arguments, names_of
from rewright.optimize.calls.ran import Ran
from rewright.optimize.calls.reachable import State, Walker
from rewright.optimize.calls.rehearsal import rehearse
from rewright.optimize.calls.repeat import Repeat
from rewright.optimize.calls.results import UPDATED, Place, Results, update_inputs
from rewright.optimize.calls.tensors import describe
from rewright.optimize.sizes.fitting import is_at
from rewright.optimize.sizes.inputs import Shapes, numbers_of

LOOKS = 4
"""So many kinds of calls of the same sizes, beside the first, are looked at, each by a capture; the original program
runs for others."""
SIZES = 64
"""For so many tuples of sizes kinds of calls are known; then those of the oldest are forgotten."""
CAPTURING = threading.RLock()
"""Captures change what PyTorch's modules mean while they last: one at a time."""
Capture = Callable[[Sequence[Any], Mapping[str, Any]], Graph]
Run = Callable[[Mapping[str, torch.Tensor]], dict[str, torch.Tensor]]
Leaves = dict[str, Any]
"""Arguments by path; of an example, the class for a tensor."""


@dataclass(frozen=True)
class Known:
    """A kind of calls that was looked at: what it returns, or why kernels are not for it."""

    guard: Guard
    results: Results | None = None
    reason: str = ""


@dataclass
class Calls:
    """What is known of the calls of one program, whose kernels compute one graph."""

    program: Any
    capture: Capture
    ran: Ran
    reached: Reached
    graph: Graph
    """The graph that was captured first, perhaps with symbols for sizes."""
    names: tuple[str, ...] = ()
    """The parameters, where all of them can be given by position and none is variadic; else nothing."""
    known: dict[Shapes, list[Known]] = field(default_factory=dict[Any, list[Known]])
    """The kinds of calls by the sizes of what has symbols."""
    constants: tuple[torch.Tensor, ...] = ()
    """Tensors that kernels keep."""
    example: Leaves = field(default_factory=dict[str, Any])
    """The arguments of the first call."""
    repeats: tuple[tuple[Repeat, Known], ...] = ()
    """The kinds of calls that ran, as far as another one is told to be of them at once."""

    @staticmethod
    def of(
        program: Any, args: Sequence[Any], kwargs: Mapping[str, Any], capture: Capture, graph: Graph | None = None
    ) -> Calls:
        """Look at a program and its first call; raises RewrightError where calls cannot be distinguished.

        ``graph`` is the program with symbols for sizes, where kernels are for that.
        """
        with CAPTURING:
            arguments = arguments_by_name(program, args, kwargs)
            owners = Owners.of(program, arguments, wrappers=True)
            found = rehearse(program, args, kwargs, _together(program))
            reached = Reached.of(program, owners, found.ran)
            captured = capture(args, kwargs)
            calls = Calls(program, capture, found.ran, reached, graph or captured, plain_names(program))
            tensors, state = calls._looked_at(arguments, reached)
            if not calls._computes(captured, tensors):
                raise RewrightError("with symbols for sizes it is another program than the one that is called")
            known = Known(calls._guard(reached, state, tensors), found.results)
            calls.example = {n: torch.Tensor if n in tensors else v for n, v in leaves_of(arguments).items()}
            _refuse(calls.graph, known, tensors)
            calls.known[calls._sizes(tensors)] = [known]
            return calls

    def __call__(
        self, run: Run, args: Sequence[Any], kwargs: Mapping[str, Any], fresh: frozenset[str] = frozenset()
    ) -> tuple[Any, str]:
        """What the call returns, or why the original program has to run, which may raise what the program raises.

        ``fresh`` are outputs of ``run`` that are in memory of their own.
        """
        if why := is_watched():
            return None, why
        plain = self.names if not kwargs and len(args) == len(self.names) else ()
        for repeat, known in self.repeats if plain else ():
            if repeat.reached is self.reached and repeat.holds(args):
                tensors = repeat.tensors(args, plain)
                if repeat.is_plain or not _gradient(tensors, self.reached.state):
                    return self._made(run, known, tensors, fresh)
        try:
            arguments = dict(zip(plain, args, strict=True)) if plain else arguments_by_name(self.program, args, kwargs)
        except CaptureError as error:
            return None, str(error)
        reached = self.reached = self.reached.now()
        tensors, state = self._looked_at(arguments, reached)
        if why := _gradient(tensors, reached.state) or _unusual(tensors):
            return None, why
        found = self._found(reached, state, tensors)
        known = found if isinstance(found, Known) else self._learn(args, kwargs, reached, state, tensors, found)
        if plain and known.results is not None:
            self._remember(known, args, state)
        return self._made(run, known, tensors, fresh)

    def _made(
        self, run: Run, known: Known, tensors: Mapping[str, torch.Tensor], fresh: frozenset[str]
    ) -> tuple[Any, str]:
        """What a call of a known kind returns, or why kernels are not for it."""
        results, state = known.results, self.reached.state
        if results is None:
            return None, known.reason
        if why := self._shared(tensors, state):
            return None, why
        with without_gradients():
            values = update_inputs(tensors, run(tensors))
            if (alone := results.alone(values, fresh)) is not None:
                return results.build(alone), ""
            held = {item.path: item.tensor for item in state.held}
            return results.make(values, {**tensors, **held}, self.constants, fresh), ""

    def _remember(self, known: Known, args: Sequence[Any], state: State) -> None:
        """Note a kind of calls that another one is told to be of without looking into objects."""
        repeat = Repeat.of(known.guard, self.reached, args, self.names, state)
        others = [(r, k) for r, k in self.repeats if r.reached is self.reached and k is not known]
        self.repeats = (*([] if repeat is None else [(repeat, known)]), *others[:LOOKS])

    def tensors(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The tensors that a call has, by name: arguments, parameters and buffers."""
        return self._looked_at(arguments_by_name(self.program, args, kwargs), self.reached)[0]

    def lines(self) -> list[str]:
        """What the kernels are for, and what they return, in words."""
        first = next(iter(self.known.values()))[0]
        return [*first.guard.lines(), *(first.results.lines() if first.results else [])]

    def _looked_at(self, arguments: Mapping[str, Any], reached: Reached) -> tuple[dict[str, torch.Tensor], State]:
        tensors = dict(reached.tensors)
        for name, value in arguments.items():
            tensors |= {n: leaf for n, leaf in leaves(name, value) if isinstance(leaf, torch.Tensor)}
        return tensors, look_at_arguments(arguments, self.ran, names_of(tensors))

    def _guard(self, reached: Reached, state: State, tensors: Mapping[str, torch.Tensor]) -> Guard:
        return Guard(reached, state, {name: describe(tensors[name]) for name in self.graph.inputs if name in tensors})

    def _found(self, reached: Reached, state: State, tensors: Mapping[str, torch.Tensor]) -> Known | str:
        """What is known of such a call, or else how it differs from the one that was looked at last."""
        alike, why = self.known.get(self._sizes(tensors), []), ""
        for number, known in enumerate(alike):
            said = known.guard.violation(reached, state, tensors)
            if not said:
                if known.guard.reached is not reached:
                    alike[number] = known = replace(known, guard=known.guard.refresh(reached))
                    self.reached = known.guard.reached
                return known
            why = why or said
        return why or "its sizes are not those of a call before, and with them it is another program"

    def _learn(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        reached: Reached,
        state: State,
        tensors: Mapping[str, torch.Tensor],
        why: str,
    ) -> Known:
        """Look at a call of another kind: where it has the same graph, its kernels are the same."""
        guard, sizes = self._guard(reached, state, tensors), self._sizes(tensors)
        if len(self.known.get(sizes, ())) > LOOKS or not _fits(self.graph, tensors):
            return Known(guard, None, f"{why}: the original program ran")
        with CAPTURING:
            try:
                found = rehearse(self.program, args, kwargs, _together(self.program))
                same = self._computes(self.capture(args, kwargs), tensors)
                known = Known(guard, found.results) if same else Known(guard, None, f"{why}: the original program ran")
                _refuse(self.graph, known, tensors)
            except RewrightError as error:
                known = Known(guard, None, f"{why}: the original program ran ({error})")
            if len(self.known) >= SIZES and sizes not in self.known:
                del self.known[next(iter(self.known))]
            self.known.setdefault(sizes, []).append(known)
        return known

    @cached_property
    def open(self) -> tuple[str, ...]:
        """The inputs that have sizes that are symbols."""
        return tuple(name for name, position in self.graph.inputs.items() if not self._type(position).is_static())

    def _sizes(self, tensors: Mapping[str, torch.Tensor]) -> Shapes:
        """The shapes of these among the tensors of a call."""
        return tuple([tensors[name].shape if name in tensors else None for name in self.open])

    def _type(self, position: int) -> TensorType:
        return self.graph.nodes[position].type

    def _computes(self, captured: Graph, tensors: Mapping[str, torch.Tensor]) -> bool:
        """Whether what was captured of a call is the program that kernels are for, at the sizes of that call."""
        if not size_symbols(self.graph):
            return captured is self.graph or digest(captured) == digest(self.graph)
        return is_at(self.graph, numbers_of(self.graph, tensors), captured)

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The inputs that the program writes to."""
        return tuple(name.removeprefix(UPDATED) for name in self.graph.outputs if name.startswith(UPDATED))

    def _shared(self, tensors: Mapping[str, torch.Tensor], state: State) -> str:
        """Why memory that is written is also read under another name."""
        written = self.written
        if not written:
            return ""
        every = [*((n, tensors[n]) for n in self.graph.inputs), *((h.path, h.tensor) for h in state.held)]
        places: dict[int, str] = {}
        for name, value in every:
            place = value.untyped_storage().data_ptr()
            other = places.setdefault(place, name)
            if place and other != name and ({other, name} & set(written)):
                return f"{name} and {other} share memory that is written: the original program ran"
        return ""


def arguments_by_name(program: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by the names that a capture gives them; raises CaptureError where they do not fit."""
    if isinstance(program, torch.fx.GraphModule) and not kwargs and getattr(program, "_in_spec", None) is None:
        names = [str(node.target) for node in program.graph.nodes if node.op == "placeholder"]
        if len(names) != len(args):
            raise CaptureError(f"the graph takes {len(names)} arguments, and {len(args)} are given; pass each")
        return dict(zip(names, args, strict=True))
    return bind_arguments(program.forward if isinstance(program, torch.nn.Module) else program, args, kwargs)


def leaves_of(arguments: Mapping[str, Any]) -> Leaves:
    """What containers among arguments hold, by path; tensors have the names that captures give them."""
    return dict(leaf for name, value in arguments.items() for leaf in leaves(name, value))


def plain_names(program: Any) -> tuple[str, ...]:
    """The parameters of a program by name, where each is one argument that may be given by position; else nothing."""
    try:
        every = inspect.signature(program.forward if isinstance(program, torch.nn.Module) else program).parameters
    except (TypeError, ValueError):
        return ()
    is_plain = not isinstance(program, torch.fx.GraphModule)
    is_plain &= all(p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for p in every.values())
    return tuple(every) if is_plain else ()


def _together(program: Any) -> Callable[[Ran, Mapping[int, str], Mapping[str, Any]], State]:
    """Looks at a program and its arguments as one."""

    def looking(ran: Ran, names: Mapping[int, str], arguments: Mapping[str, Any]) -> State:
        walker = Walker(ran, names, marks=False)
        walker.look("", program)
        walker.scopes()
        for name, value in arguments.items():
            walker.look(name, value)
        return walker.state

    return looking


def _fits(graph: Graph, tensors: Mapping[str, torch.Tensor]) -> bool:
    """Whether the inputs have the sizes that a graph is for."""
    types = {name: graph.nodes[position].type for name, position in graph.inputs.items()}
    if not all(name in tensors for name in types):
        return False
    try:
        sizes = numbers_of(graph, tensors)
    except RewrightError:
        return False
    return all(tuple(tensors[name].shape) == substitute_sizes(kind.shape, sizes) for name, kind in types.items())


def _gradient(tensors: Mapping[str, torch.Tensor], state: State) -> str:
    if not torch.is_grad_enabled():
        return ""
    if any(t.requires_grad for t in (*tensors.values(), *(held.tensor for held in state.held))):
        return "a gradient may be asked for, and kernels have none: the original program ran"
    return ""


def _unusual(tensors: Mapping[str, torch.Tensor]) -> str:
    """Why tensors cannot be read element by element from memory."""
    for name, value in tensors.items():
        if type(value) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
            return f"{name} is a {type(value).__name__}: the original program ran"
        if value.layout is not torch.strided or value.is_neg() or value.is_conj() or value.device.type == "meta":
            return f"{name} is sparse, without values, or stands for other values: the original program ran"
    return ""


def _is_apart(value: torch.Tensor) -> bool:
    """Whether each element has a place of its own: each step is beyond all that the smaller steps reach."""
    reach = 0
    for stride, size in sorted(zip(value.stride(), value.shape, strict=True)):
        if size > 1 and stride <= reach:
            return False
        reach += stride * (size - 1)
    return True


def _refuse(graph: Graph, known: Known, tensors: Mapping[str, torch.Tensor]) -> None:
    """Raise RewrightError where a graph has not what is returned, or writes would meet themselves."""
    if known.results is None:
        return
    wanted = {leaf.value for leaf in known.results.leaves if isinstance(leaf, Place)}
    made = {name for name in graph.outputs if not name.startswith(UPDATED)}
    if wanted - made or any(name.startswith("grad:") for name in made):
        raise RewrightError("it computes gradients itself, or returns what its capture does not; return tensors")
    for name in graph.outputs:
        value = tensors.get(name.removeprefix(UPDATED)) if name.startswith(UPDATED) else None
        if value is not None and not _is_apart(value):
            raise RewrightError(f"it writes to {name.removeprefix(UPDATED)}, whose elements share memory")


__all__ = ["CAPTURING", "Calls", "Leaves", "arguments_by_name", "leaves_of"]
