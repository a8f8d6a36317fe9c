"""A kernel beside its reference on numbers, in a process of its own: a kernel that is wrong may do anything."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch.utils._pytree import tree_flatten, tree_map_only

from rewright.frontends.torch.forks import Asked, are_possible
from rewright.frontends.triton.interpreting import OutOfBounds, in_doubles, interpreted

Outcome = Literal["agrees", "differs", "out of bounds", "crashes", "fails"]
_SPREADS = (1.0, 30.0, 1e-3, 60.0)
"""Standard deviations of the floats that are drawn: beside small ones what is added to a square is seen, and of large
ones exponentials overflow."""
_MOST_SPECIAL = 4


@dataclass(frozen=True)
class Run:
    """What came of running both programs."""

    outcome: Outcome
    text: str = ""
    """What was seen, in a sentence."""
    output: str = ""
    index: tuple[int, ...] = ()
    values: tuple[float, float] = (0.0, 0.0)
    """The reference's value and the kernel's."""
    shapes: tuple[tuple[int, ...], ...] = ()
    runs: int = 0
    has_others: bool = False
    """Whether some number is infinite or none, of which a proof over real numbers says nothing."""
    loses_digits: bool | None = False
    """Whether the kernel is right in double precision; None where it does not run so."""
    place: tuple[str, int] = ("", 0)
    """The file and line of an access out of bounds."""


def run_beside(
    reference: Callable[..., Any],
    launcher: Callable[..., Any],
    inputs: Sequence[tuple[Sequence[Any], Mapping[str, Any]]],
    seconds: float,
    *,
    zeros: bool = False,
) -> Run:
    """Run both on several inputs until they differ or the time is over.

    With ``zeros`` a masked load that says nothing of other lanes gives zero there, and else what is no number.
    Raises nothing: what a kernel does to its process is an outcome.
    """
    if not are_possible():
        return Run("fails", "this process cannot be copied, and kernels run in a copy")
    asked = Asked(partial(_run, reference, launcher, inputs, seconds, zeros))
    try:
        found = asked.answer(4 * seconds + 20)
    finally:
        asked.end()
    if found is None:
        text = "the interpreter ends its process, or does not come to an end, when it runs the kernel"
        return Run("crashes", text)
    return found


def _run(reference: Any, launcher: Any, inputs: Any, seconds: float, zeros: bool) -> Run:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    warnings.simplefilter("ignore")  # of numbers that are none, which are compared
    torch.use_deterministic_algorithms(True, warn_only=True)  # which fills memory that is not written with no numbers
    try:
        return _compare(reference, launcher, inputs, time.monotonic() + seconds, zeros)
    except BaseException as error:
        cause = error.__cause__ or error
        if isinstance(cause, OutOfBounds):
            return Run("out of bounds", str(cause), place=(cause.file, cause.line))
        lines = str(cause).strip().splitlines()
        return Run("fails", f"{type(cause).__name__}: {lines[-1] if lines else ''}")


def _compare(reference: Any, launcher: Any, inputs: Any, deadline: float, zeros: bool) -> Run:
    count = 0
    for number, (args, kwargs) in enumerate(inputs):
        theirs, ours = _copies((args, kwargs)), _copies((args, kwargs))
        try:
            expected = reference(*theirs[0], **theirs[1])
        except Exception:
            if number == 0:
                raise
            continue  # it is no input of the reference
        exact = _in_doubles(reference, args, kwargs)
        with interpreted(zeros=zeros):
            mine = launcher(*ours[0], **ours[1])
        count += 1
        changed = _changed(theirs, ours)
        if changed is not None:
            text = f"the kernel leaves argument {changed} as the reference does not"
            return Run("differs", text, f"argument {changed}", runs=count)
        found = _difference(expected, exact, mine)
        precise = None if found is None else _precise(launcher, (args, kwargs), zeros)
        if found is not None and (precise is None or not _all_of(_explains, exact, mine, precise)):
            shapes = tuple(tuple(x.shape) for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor))
            output, index, values = found
            text = f"{output}{list(index)} is {values[0]:.6g} by the reference and {values[1]:.6g} by the kernel"
            is_real = all(map(math.isfinite, values)) and _are_finite((args, kwargs))
            loses = None if precise is None or exact is None else _all_of(_is_right, exact, precise)
            return Run("differs", text, output, index, values, shapes, count, not is_real, loses)
        if time.monotonic() > deadline:
            break
    return Run("agrees", runs=count)


def _are_finite(values: Any) -> bool:
    tensors = [x for x in tree_flatten(values)[0] if isinstance(x, torch.Tensor)]
    return all(bool(x.double().isfinite().all()) for x in tensors if x.is_floating_point())


def _changed(theirs: Any, ours: Any) -> int | None:
    """The first argument that is not what it is after the reference ran, by more than roundings of what it computes."""
    for number, (a, b) in enumerate(zip(tree_flatten(theirs)[0], tree_flatten(ours)[0], strict=True)):
        if not isinstance(a, torch.Tensor):
            continue
        near = torch.finfo(a.dtype).eps if a.is_floating_point() and a.itemsize == 1 else 1e-3
        wide = (x.double() if x.is_floating_point() else x for x in (a, b))
        if not torch.allclose(*wide, rtol=near, atol=near, equal_nan=True):
            return number
    return None


def _copies(values: Any) -> Any:
    return tree_map_only(torch.Tensor, lambda x: x.detach().clone(memory_format=torch.preserve_format), values)


def _in_doubles(reference: Any, args: Any, kwargs: Any) -> Any:
    """The reference in double precision; None where it does not run so."""
    try:
        wide = tree_map_only(torch.Tensor, lambda x: x.double() if x.is_floating_point() else x, (args, kwargs))
        return reference(*_copies(wide[0]), **_copies(wide[1]))
    except Exception:
        return None


def _precise(launcher: Any, given: Any, zeros: bool) -> Any:
    """What a kernel gives in double precision; None where it does not run so.

    Where large numbers cancel, the order of a kernel's operations may be worse than that of its reference.
    """
    try:
        wide = tree_map_only(torch.Tensor, lambda x: x.double() if x.is_floating_point() else x, _copies(given))
        with in_doubles(), interpreted(zeros=zeros):
            return launcher(*wide[0], **wide[1])
    except Exception:
        return None


def _all_of(holds: Callable[..., bool], *results: Any) -> bool:
    """Whether something holds of each output."""
    try:
        return all(holds(*x) for x in zip(*(tree_flatten(values)[0] for values in results), strict=True))
    except Exception:
        return False


def _is_right(exact: torch.Tensor, precise: torch.Tensor) -> bool:
    """Whether a kernel is right in doubles."""
    a, c = exact.detach().double(), precise.detach().double()
    finite = a.isfinite()
    if not bool(finite.any()):
        return True
    scale, wide = a[finite].abs().amax(), (c - a)[finite].abs().amax()
    return bool(wide.isfinite()) and bool(wide <= 1e-6 * scale + 1e-13)


def _explains(exact: torch.Tensor, mine: torch.Tensor, precise: torch.Tensor) -> bool:
    """Whether a kernel is right in doubles, and its error is about what the same operations make of shorter floats."""
    a, b, c = (x.detach().double() for x in (exact, mine, precise))
    finite = a.isfinite()
    if not bool(finite.any()):
        return True
    if not mine.is_floating_point():  # places among elements that rounding makes equal
        return bool((c == a).all())
    scale, gap, wide = a[finite].abs().amax(), (b - a)[finite].abs().amax(), (c - a)[finite].abs().amax()
    if not (bool(gap.isfinite()) and bool(wide.isfinite())):
        return False
    eps = torch.finfo(mine.dtype).eps
    share = eps / torch.finfo(torch.float64).eps
    is_smaller = bool(wide <= 1e-6 * scale + 1e-13) or bool(wide <= gap * 2**-20)
    return is_smaller and bool(gap <= 100 * (share * wide + eps * scale) + 1e-30)


def _difference(expected: Any, exact: Any, mine: Any) -> tuple[str, tuple[int, ...], tuple[float, float]] | None:
    """The first output and element by which the kernel is farther off than roundings explain."""
    left, right = (tree_flatten(x)[0] for x in (expected, mine))
    true = left if exact is None else tree_flatten(exact)[0]
    is_meant = not any(_overflows(a.double(), c.double()) for a, c in zip(left, true, strict=True))
    for number, (a, b, c) in enumerate(zip(left, right, true, strict=True)):
        name = "output" if len(left) == 1 else str(number)
        if a.shape != b.shape:
            return name, (), (float("nan"), float("nan"))
        if not a.numel():
            continue
        wide: list[torch.Tensor] = [x.detach().double() for x in (a, b, c)]
        eps = torch.finfo(b.dtype).eps if b.is_floating_point() else 0.0
        if not is_meant:  # these inputs are too large for the reference too
            wide[1] = torch.where(wide[1].isfinite(), wide[1], wide[0])
        worst = _worst(wide[0], wide[1], wide[2], eps)
        if worst is not None:
            index = tuple(int(i) for i in torch.unravel_index(torch.tensor(worst), a.shape))
            return name, index, (float(wide[2][index]), float(wide[1][index]))
    return None


def _overflows(value: torch.Tensor, exact: torch.Tensor) -> bool:
    return bool((~value.isfinite() & exact.isfinite()).any())


_UNITS = {2.0**-2: 0.5, 2.0**-3: 0.5, 2.0**-7: 8}
"""How many units in the last digit results of few digits may be off, by what a unit of one is; 200 of others."""


def _worst(a: torch.Tensor, b: torch.Tensor, exact: torch.Tensor, eps: float) -> int | None:
    """The element that is the farthest off, if it is farther than twenty times the reference's own error allows."""
    finite = exact.isfinite() & a.isfinite()
    scale = exact[finite].abs().amax() if bool(finite.any()) else torch.tensor(0.0)
    allowed = 20 * (a - exact).abs() + _UNITS.get(eps, 200) * eps * (exact.abs() + scale)
    gap = (b - exact).abs()
    same = (b == a) | (b == exact) | a.isnan() | exact.isnan()  # nothing is said where the reference is no number
    wrong = ~same & ~(gap <= allowed)
    if not bool(wrong.any()):
        return None
    return int(torch.where(wrong, gap.nan_to_num(torch.inf, torch.inf), -1.0).argmax())


def draws(
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    parameters: Sequence[str],
    dynamic: Mapping[str, Mapping[int, str]],
    *,
    steps: Sequence[int] = (1, -1, 7),
    special: Sequence[int] = (),
    extreme: bool = False,
    ties: bool | None = False,
) -> list[tuple[Sequence[Any], Mapping[str, Any]]]:
    """The inputs themselves, others of their shapes, and, where sizes are symbols, some that are larger by steps.

    ``special`` are integers that some elements of integers are. With ``extreme`` some floats are infinite or none. With
    ``ties`` many are equal, and rows of truth values are true or false throughout; with None none are so large that
    numbers become equal by rounding.
    """
    found: list[tuple[Sequence[Any], Mapping[str, Any]]] = [(args, kwargs)]
    for number, spread in enumerate(_SPREADS if ties is not None else _SPREADS[:1]):  # large ones saturate
        found.append(_drawn(args, kwargs, spread, number))
    if ties:
        found.append(_of_ties(args, kwargs))
    found += [tree_map_only(torch.Tensor, partial(_with, value), (args, kwargs)) for value in special[:_MOST_SPECIAL]]
    if any(_is_short(x) for x in tree_flatten((args, kwargs))[0]):
        found.append(tree_map_only(torch.Tensor, _of_all_numbers, (args, kwargs)))
    if extreme:
        found.append(tree_map_only(torch.Tensor, _extreme, (args, kwargs)))
    named = {**dict(zip(parameters, args, strict=False)), **kwargs}
    sizes = {
        symbol: int(named[name].shape[axis])
        for name, axes in dynamic.items()
        for axis, symbol in axes.items()
        if isinstance(named.get(name), torch.Tensor) and symbol.isidentifier()
    }
    for step in steps if sizes else ():
        other = {symbol: max(size + step * (n + 1), 2) for n, (symbol, size) in enumerate(sizes.items())}
        shaped = {name: _resized(value, dynamic.get(name, {}), other) for name, value in named.items()}
        positional = [shaped[name] for name, _ in zip(parameters, args, strict=False)]
        found.append(_drawn(positional, {k: shaped[k] for k in kwargs}, 1.0, 100 + step))
    return found


def _of_ties(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Floats of which many are equal, or zero, and truth values that are the same in whole rows."""
    generator = torch.Generator().manual_seed(0)

    def new(x: torch.Tensor) -> torch.Tensor:
        if not x.is_floating_point() and x.dtype is not torch.bool:
            return x
        made = torch.empty_strided(x.size(), x.stride(), dtype=x.dtype)
        if not x.numel():
            return made
        if x.is_floating_point():
            return made.copy_(torch.randint(-2, 3, x.shape, generator=generator) / 2)
        made.copy_(torch.randint(0, 2, x.shape, generator=generator) > 0)
        if x.dim() > 1:
            made.select(-2, 0).fill_(False)
            made.select(-2, -1).fill_(True)
        return made

    return tree_map_only(torch.Tensor, new, (args, kwargs))


def _is_short(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in (torch.int8, torch.uint8, torch.int16)


def _of_all_numbers(tensor: torch.Tensor) -> torch.Tensor:
    """Integers of 8 and 16 bits over all of their range, the ends among them; other tensors as they are."""
    if not _is_short(tensor):
        return tensor
    limits = torch.iinfo(tensor.dtype)
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randint(limits.min, limits.max + 1, tensor.shape, generator=generator, dtype=tensor.dtype)
    flat = drawn.view(-1)
    flat[::5], flat[1::5] = limits.max, limits.min
    return drawn


def _extreme(tensor: torch.Tensor) -> torch.Tensor:
    """Floats of which some are no number, or infinite."""
    if not tensor.is_floating_point() or not tensor.numel():
        return tensor
    found = tensor.clone().flatten()
    for start, value in enumerate((torch.nan, torch.inf, -torch.inf)):
        found[start::7] = value
    return found.view(tensor.shape)


def _with(value: int, tensor: torch.Tensor) -> torch.Tensor:
    """Integers of which every third one is this, where their type holds it; other tensors as they are."""
    if tensor.is_floating_point() or tensor.dtype is torch.bool or not tensor.numel():
        return tensor
    limits = torch.iinfo(tensor.dtype)
    if not limits.min <= value <= limits.max:
        return tensor
    changed = tensor.clone()
    changed.view(-1)[::3] = value
    return changed


def _resized(value: Any, axes: Mapping[int, str], sizes: Mapping[str, int]) -> Any:
    if not isinstance(value, torch.Tensor) or not axes:
        return value
    shape = [sizes.get(axes.get(axis, ""), n) for axis, n in enumerate(value.shape)]
    if value.is_floating_point():
        return torch.empty(shape, dtype=value.dtype)
    flat = value.reshape(-1)
    count = torch.Size(shape).numel()
    return flat[torch.arange(count) % max(flat.numel(), 1)].reshape(shape)


def _drawn(
    args: Sequence[Any], kwargs: Mapping[str, Any], spread: float, seed: int
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Floats drawn anew; integers stay, since they may be places."""
    generator = torch.Generator().manual_seed(seed)

    def new(x: torch.Tensor) -> torch.Tensor:
        if not x.is_floating_point():
            return x
        values = torch.randn(x.shape, generator=generator, dtype=torch.float64) * spread
        made = torch.empty_strided(x.size(), x.stride(), dtype=x.dtype)
        return made.copy_(values) if x.numel() else made

    return tree_map_only(torch.Tensor, new, (args, kwargs))
