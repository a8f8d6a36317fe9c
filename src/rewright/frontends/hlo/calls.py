"""HLO custom calls with a meaning that is written out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rewright import ops
from rewright.frontends.hlo import ordering
from rewright.frontends.hlo.context import Context, Value
from rewright.frontends.hlo.module import Instruction
from rewright.ir.errors import RewrightError, UnsupportedOperator
from rewright.ir.graph import GraphBuilder
from rewright.ops.reference import activation, softmax, vendor
from rewright.ops.reference import building as rb

Function = Callable[[Context, Instruction, Sequence[int]], Value]


def _identity(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    return operands[0]


def _aws_rms_norm(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    """Operands x, weight and a scalar epsilon; the backend configuration is the axis."""
    x, weight, epsilon = operands
    eps = c.b.uniform(epsilon)
    axis = re.fullmatch(r"\s*[0-9]{1,2}\s*", i.word("backend_config", "0"))
    if eps is None or axis is None or int(axis[0]) >= c.b.type(x).rank:
        raise UnsupportedOperator("its epsilon or its axis is not a number of the module")
    found = vendor.rms_norm_along(c.b, x, weight, int(axis[0]), float(eps))
    return rb.convert(c.b, found, c.type(i).dtype)


def _aws_softmax(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    """Along the axis that the backend configuration names, else along the last one."""
    (x,) = operands
    text = i.word("backend_config", "").strip() or "-1"
    rank = c.b.type(x).rank
    if re.fullmatch(r"-?[0-9]{1,2}", text) is None or not -rank <= int(text) < rank:
        raise UnsupportedOperator("its axis is not a number of the module")
    return rb.convert(c.b, softmax.softmax(c.b, x, int(text) % rank), c.type(i).dtype)


def _elementwise(function: Callable[[GraphBuilder, int], int]) -> Function:
    """A call that computes a function of every element of its operand."""

    def lower(c: Context, i: Instruction, operands: Sequence[int]) -> int:
        (x,) = operands
        return rb.convert(c.b, function(c.b, x), c.type(i).dtype)

    return lower


def _marker(c: Context, i: Instruction, operands: Sequence[int]) -> Value:
    """A place in a program: what goes in comes out."""
    kinds = [part.type() for part in i.shape.parts] or [c.type(i)]
    if kinds != [c.b.type(x) for x in operands]:
        raise UnsupportedOperator("it marks a place in the program, and its results are not its operands")
    return tuple(operands) if i.shape.parts else operands[0]


TABLE: dict[str, Function] = {
    "AwsNeuronTransferWithStaticRing": _identity,
    "AwsNeuronRmsNorm": _aws_rms_norm,
    "AwsNeuronSoftmax": _aws_softmax,
    "AwsNeuronErf": _elementwise(lambda b, x: b.add(ops.Erf(), x)),
    "AwsNeuronGelu": _elementwise(activation.gelu),
    "AwsNeuronGeluApprxTanh": _elementwise(lambda b, x: activation.gelu(b, x, "tanh")),
    "AwsNeuronSilu": _elementwise(activation.silu),
    "AwsNeuronTopK": ordering.top_k,
    "AwsNeuronLNCShardingConstraint": _marker,
    **{f"AwsNeuronModuleMarker{end}-{way}": _marker for end in ("Start", "End") for way in ("Forward", "Backward")},
    **{f"NeuronBoundaryMarker-{end}": _marker for end in ("Start", "End")},
    "Sharding": _identity,
    "xla.sdy.FuncResultSharding": _identity,
    "SPMDFullToShardShape": _identity,
    "SPMDShardToFullShape": _identity,
    "annotate_device_placement": _identity,
    "TopK": ordering.top_k,
}
"""By target, what a call computes. A call that only annotates is the identity."""


def custom_call(c: Context, i: Instruction, operands: Sequence[int]) -> Value:
    """A call by its definition; one without is an uninterpreted function of its operands."""
    target = i.word("custom_call_target")
    function = TABLE.get(target)
    if function is not None:
        if not operands:
            raise RewrightError(f"the custom call {target:.60} has no operands; print the module again")
        return function(c, i, operands)
    if i.called or re.search(r"host|callback|send|recv|coll|rng|rand|dropout", target, re.I):
        raise UnsupportedOperator(f"the custom call {target:.60} has no definition here; write what it computes")
    c.assume(f"the custom call {target:.60} is a function of its operands and of nothing else")
    kinds = tuple(part.type() for part in i.shape.parts) or (c.type(i),)
    attributes = (("backend_config", i.word("backend_config")),)
    found = [c.b.add(ops.CustomCall(target, attributes, kinds, place), *operands) for place in range(len(kinds))]
    return tuple(found) if i.shape.parts else found[0]
