"""The operators: StableHLO's vocabulary, one class per operator with all its facets, and the table of them.

Families are classes too: ``View`` moves the elements of one operand, ``Layout`` those of several, ``Elementwise``
computes at each place (``Linear`` and ``Homogeneous`` say how), ``Monoid`` is what reductions are made of, which are
``Combining``, ``GroupCollective`` joins groups of ranks, a ``Leaf`` is made of nothing. Code that asks what an operator
does names a family or a facet (``moves``, ``indexed``, ``facts``) and keeps no list of its own. Read ``base.py`` first;
an elementwise operator is little more than the record of its scalar function (``functions/``).
"""
# pyright: reportUnusedImport=false, reportWildcardImportFromLibrary=false

from collections.abc import Mapping

from rewright.ir.types import DType
from rewright.ops.base import Combining, TensorOperator
from rewright.ops.binary import *
from rewright.ops.choosing import Clamp, Compare, Select
from rewright.ops.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Collective,
    CollectiveBroadcast,
    CollectivePermute,
    GroupCollective,
    Message,
    Recv,
    ReduceScatter,
    Send,
)
from rewright.ops.contraction import DotGeneral
from rewright.ops.convolution import Convolution
from rewright.ops.custom import CustomCall
from rewright.ops.dynamic import DynamicSlice, DynamicUpdateSlice, Update
from rewright.ops.elementwise import Convert, Elementwise, Homogeneous, Limiting, Linear
from rewright.ops.functions.order import COMPARISONS
from rewright.ops.gather import Gather
from rewright.ops.layout import (
    BroadcastInDim,
    Concatenate,
    Layout,
    Lossless,
    Pad,
    Rearrangement,
    Reshape,
    Reverse,
    Slice,
    Transpose,
    View,
)
from rewright.ops.leaf import Constant, Input, Iota, Leaf, is_table, splat
from rewright.ops.random import Philox
from rewright.ops.reduction import Reduce, ReduceWindow
from rewright.ops.scatter import Scatter
from rewright.ops.sorting import Ordering, Sort, TopK
from rewright.ops.unary import *

_CLASSES = [kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, TensorOperator)]
REGISTRY: Mapping[str, type[TensorOperator]] = {kind.name: kind for kind in _CLASSES if hasattr(kind, "name")}
"""Every operator by its StableHLO name; families of operators have none."""
_OF_FUNCTIONS: tuple[Elementwise, ...] = (
    *(Convert(dtype) for dtype in DType),
    *(Compare(direction) for direction in COMPARISONS),
    *(kind() for kind in REGISTRY.values() if issubclass(kind, Elementwise) and kind.scalar is not None),
)
ELEMENTWISE: Mapping[str, Elementwise] = {op.function(dtype): op for op in _OF_FUNCTIONS for dtype in DType}
"""The elementwise operator of every scalar function, by the name that denotations have for the function."""
