"""Capture of programs that are written in Python: which front end a program is of, by what it is made of."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from rewright.frontends.frontend import Programs
from rewright.frontends.registry import programs
from rewright.ir.errors import CaptureError, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram

_DEPTH = 4
"""Functions that are called by functions that are called, and so on, are read for what they name so often."""


def capture(
    program: Any,
    args: Sequence[Any] | Mapping[str, Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    backward: bool = False,
    dynamic: Any = None,
    run: bool = False,
    guards_queries: bool = False,
    opaque: bool = False,
    validate: bool = True,
    framework: str | None = None,
) -> Graph:
    """One sequential program as a graph.

    ``program`` is a torch module or function, an ExportedProgram, a ``.pt2`` file, an fx.GraphModule, or a JAX
    function (under ``jit`` or not) on arrays or ``jax.ShapeDtypeStruct``; ``args`` may be a dictionary, which is
    ``kwargs``. No weight is read. Inputs are parameters and
    buffers by qualified name, and arguments by name and path (``input_ids``, ``params.w``); outputs are ``output``, or
    the path in what is returned (``loss``, ``output.0``).

    With ``backward`` the gradients are outputs too, as ``grad:<input>``: of torch's parameters, or of the first
    argument of a JAX function of one number. ``dynamic`` keeps sizes of torch programs symbolic:
    ``{"input_ids": {0: "batch", 1: "sequence"}}``. ``framework`` follows from the program where it is not given. Raises
    CaptureError and UnsupportedOperator.

    With ``run`` a torch program runs once on its real tensors and is recorded as it goes, for programs that look at
    values; it is then captured for inputs that give these values, and the graph says under assumptions which they are.

    ``guards_queries`` says what the attention of a torch program gives a query that a mask keeps all keys from: zero,
    as PyTorch's kernels do, where it is set, and else what ``softmax`` written out gives, which is no number. So it is
    with ``logsumexp`` of what is infinite, which is infinite, and written out no number. With ``opaque`` an operator
    of a torch program that is not supported is an opaque call, where all that it does is to compute its results.

    With ``validate`` the capture is checked: every distinct call is run by PyTorch beside what it was lowered to. A
    difference is a CaptureError that names the call and its line. What was checked, and what could not be, is kept with
    the graph and reported with verdicts.
    """
    if isinstance(args, Mapping):
        args, kwargs = (), {**args, **(kwargs or {})}
    own = _of(framework or framework_of(program, (args, kwargs)))
    options: dict[str, Any] = {"backward": backward, "validate": validate, "dynamic": dynamic, "run": run}
    given = own.given(options | {"guards_queries": guards_queries, "opaque": opaque})
    return own.capture(program, args, kwargs, **given)


def capture_ranks(
    build: Callable[[Any], Any],
    mesh: Mapping[str, int],
    *,
    backward: bool = False,
    dynamic: Any = None,
    jobs: int = 1,
    ranks: str = "traced",
    all_ranks: bool = False,
    validate: bool = True,
    framework: str | None = None,
) -> RankProgram:
    """The programs of all ranks of a mesh, with how they hold inputs and outputs.

    ``build(mesh)`` returns ``(program, args)`` or ``(program, args, kwargs)``. For torch it is called once per rank
    with a ``DeviceMesh`` under which nothing communicates, in ``jobs`` processes, and placements are read off DTensors.
    For JAX it is called once with a ``jax.sharding.Mesh`` of virtual CPU devices, the program is what XLA's SPMD
    partitioner makes of a function under ``jit`` with shardings or of a ``shard_map``, and placements are read off the
    shardings. The rest is as in :func:`capture`. Raises CaptureError and UnsupportedOperator.

    Of a torch mesh of more than 16 ranks some are captured, and the rest is taken to be like them but for numbers that
    are affine in mesh coordinates; the verdict's assumptions say so. ``all_ranks`` captures every one.

    ``ranks="threads"`` runs all ranks of a torch program together instead, on the real tensors that ``build`` returns,
    and records what they do: for programs that look at values (token counts), pipeline schedules, and gradient
    reducers. ``"processes"`` forks one process per rank, for code that keeps its rank in a global. Such a capture is
    of one run, and the verdict's assumptions name the values that the program looked at.
    """
    which = framework or framework_of(build, ())
    own = _of(which)
    if own.capture_ranks is None:
        raise CaptureError(f"{which} has no programs of ranks; capture the program of each and put them together")
    options: dict[str, Any] = {"backward": backward, "validate": validate, "dynamic": dynamic, "jobs": jobs}
    given = own.given(options | {"ranks": ranks, "all_ranks": all_ranks})
    try:
        return own.capture_ranks(build, mesh, **given)
    except CaptureError as error:
        if framework or not any(text in str(error) for text in ("jax", "std::bad_cast")):
            raise
        other = next(name for name in programs() if name != which)
        raise CaptureError(f"{error}; if it is a program of {other}, say framework={other!r}") from None


def building() -> ExitStack:
    """The context under which programs are built: of every front end whose library is there, what it says of that."""
    stack = ExitStack()
    for own in programs().values():
        if own.building is not None and _is_imported(own):
            stack.enter_context(own.building())
    return stack


def framework_of(program: Any, arguments: Any) -> str:
    """Which front end a program is of: by its type, its arguments, and the names that a function uses.

    Raises CaptureError where a function uses several.
    """
    for value in (program, *_leaves(arguments)):
        found = _owner(type(value).__module__)
        if found is not None:
            return found
    used = _frameworks(program)
    if len(used) > 1:
        name = getattr(program, "__name__", "the program")
        both = " and ".join(own for own in programs() if own in used)
        raise CaptureError(f"{name} uses {both}; say which of them it is a program of: framework={min(used)!r}")
    if used:
        return used.pop()
    return next((name for name, own in programs().items() if _is_imported(own)), next(iter(programs())))


def _leaves(value: Any) -> Iterator[Any]:
    """The values in nested dictionaries, lists and tuples."""
    if isinstance(value, Mapping):
        value = tuple(cast("Mapping[Any, Any]", value).values())
    if isinstance(value, list | tuple):
        for part in cast("Sequence[Any]", value):
            yield from _leaves(part)
    else:
        yield value


def _frameworks(program: Any) -> set[str]:
    """The frameworks among what a function names, and what functions of those names do, else among its module's."""
    functions, seen = [found] if (found := _function(program)) is not None else [], set[CodeType]()
    modules = [v for f in functions for v in f.__globals__.values() if isinstance(v, ModuleType)]
    for depth in range(_DEPTH):
        named = [value for function in functions for value in _values(function)]
        roots = _roots(named)
        if len(roots) == 1 or (roots and not depth):  # what others wrote for both frameworks tells nothing
            return roots
        seen |= {function.__code__ for function in functions}
        functions = [f for value in named if (f := _function(value)) is not None and f.__code__ not in seen]
    return _roots(modules)


def _function(value: Any) -> FunctionType | None:
    """The Python function that is called by calling a value; None where there is none."""
    value = inspect.unwrap(value) if callable(value) else value
    while isinstance(value, partial):
        value = cast("partial[Any]", value).func
    if not isinstance(value, FunctionType | MethodType | type) and not inspect.isbuiltin(value):
        value = vars(cast("type[object]", type(value))).get("__call__", value)
    value = getattr(value, "__func__", value)
    return value if isinstance(value, FunctionType) else None


def _values(function: FunctionType) -> list[object]:
    """What a function names that has a value."""
    namespace = function.__globals__
    named: list[object] = [namespace[name] for name in _names(function.__code__) if name in namespace]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # a variable that has no value yet
            named.append(cell.cell_contents)
    return named


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _roots(values: Sequence[Any]) -> set[str]:
    found = set[str]()
    for value in values:
        own = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        found |= {name for name in map(_owner, (own, type(value).__module__)) if name is not None}
    return found


def _of(name: str) -> Programs:
    known = programs()
    if name not in known:
        raise RewrightError(
            f"programs in Python are of {' or '.join(known)}, and not of {name!r:.40}; name one of these"
        )
    return known[name]


def _is_imported(own: Programs) -> bool:
    return any(package in sys.modules for package in own.packages)


def _owner(module: object) -> str | None:
    """The front end whose package a module is of, by the name of the module."""
    root = module.split(".")[0] if isinstance(module, str) else None
    return next((name for name, own in programs().items() if root in own.packages), None)
