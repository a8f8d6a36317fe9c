"""Tables that were rounded when a module was made: what such rounding explains is no difference of functions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rewright.interp.trial import Trial
from rewright.ops.base import Array
from rewright.refine.twin.twin import Twin
from rewright.refine.verdict import Verdict

_STEP = 2.0**-23
_MOST = 16.0
ROUNDED = (
    "the outputs differ by no more than what rounding does to the tables that were given as values; have the programs "
    "compute their tables"
)


TOO_LARGE = (
    "{} is known by its values and is read by one program alone, and has too many elements to be compared; have the "
    "programs compute it, or read a part of it"
)

UNNAMED = (
    "{} is a large tensor that one program holds under no name, whose values the capture did not keep; register it as "
    "a buffer and give its values"
)
_SAID = frozenset(
    {
        "activation",
        "eps",
        "extra_scale",
        "mask",
        "missing_scale",
        "norm",
        "norm_axes",
        "other_order",
        "rotary_style",
        "routing",
        "soft_cap",
        "softmax_axes",
        "window",
        "window_off_by_one",
    }
)
"""Findings that name what differs, which is no table: these are differences however small they are."""


def may_be_rounding(verdict: Verdict) -> bool:
    """Whether a refutation says no more than that numbers differ."""
    return verdict.status == "refuted" and not any(finding.kind in _SAID for finding in verdict.findings)


def nudge(values: Mapping[str, Array]) -> dict[str, Array]:
    """The values with every element moved by a step of single precision, up and down in turn."""
    found: dict[str, Array] = {}
    for name, value in values.items():
        if np.asarray(value).dtype.kind != "f":
            found[name] = value
            continue
        wide = np.asarray(value, np.float64)
        signs = 1.0 - 2.0 * (np.arange(wide.size).reshape(wide.shape) % 2)
        largest = float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0))
        found[name] = wide + signs * _STEP * largest
    return found


def explains(before: Twin, after: Twin) -> bool:
    """Whether moving the tables moves the outputs about as far as the two programs are apart.

    ``after`` is the pair with nudged tables, on the same inputs.
    """
    one, other = before.run_trial(0, 0), after.run_trial(0, 0)
    if not isinstance(one, Trial) or not isinstance(other, Trial) or one.inputs.keys() != other.inputs.keys():
        return False
    if not all(np.array_equal(value, other.inputs[name]) for name, value in one.inputs.items()):
        return False
    for name, left in one.sequential.outputs.items():
        right = one.ranks[0].outputs[name]
        moved = [np.abs(other.sequential.outputs[name] - left), np.abs(other.ranks[0].outputs[name] - right)]
        farthest = max(float(m.max(initial=0.0)) for m in moved)
        if left.dtype.kind != "f" or not float(np.abs(left - right).max(initial=0.0)) <= _MOST * farthest:
            return False
    return True
