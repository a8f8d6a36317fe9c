"""What a kernel is lowered with: its tiling, the blocks around a statement, and the memory that it has so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewright.ir.dims import Dim, Shape
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.optimize.kernel import Kernel, Running
from rewright.optimize.printing.loops.scopes import Scopes
from rewright.optimize.printing.statements import Buffer, Name
from rewright.optimize.scalars.expressions import Table
from rewright.optimize.scalars.ranges import Span


@dataclass(frozen=True, slots=True)
class Tiling:
    """Rows of a block, and elements of a lane in a tile."""

    rows: int = 48
    lanes: int = 64
    is_guarded: bool = True
    """Whether there may be sizes, among those that are symbols, which a kernel is not for."""


VECTOR = 16
"""Elements of the widest vectors of floats."""
ROW, COLUMN = Name("r"), Name("c")
"""Counters of rows in a block and of elements in a tile."""
ROWS, COLUMNS = Name("rows"), Name("cols")
"""How many there are."""
FIRST, BEGIN = Name("first"), Name("begin")
"""The first row of the block and the first element of the tile."""


@dataclass(frozen=True)
class Context:
    """The lowering of one kernel."""

    graph: Graph
    table: Table
    kernel: Kernel
    tiling: Tiling
    is_across: bool = False
    """Whether rows are the innermost loop."""
    reads_rows: bool = False
    """Whether right operands of products are read as they lie in memory, where they lie in rows."""
    scopes: Scopes = field(default_factory=Scopes)
    ranges: dict[str, Span] = field(default_factory=dict[str, Span])
    """First and last value of every loop index."""
    states: dict[int, str] = field(default_factory=dict[int, str])
    """The memory of every state."""
    done: list[Running] = field(default_factory=list[Running])
    """The reductions of the sweeps before."""
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    guards: list[Dim] = field(default_factory=list[Dim])
    """What has to be at least zero of sizes that are symbols."""

    @property
    def real(self) -> DType:
        """The dtype that floats are computed in."""
        return DType.F64 if self.kernel.is_wide else DType.F32

    @property
    def block(self) -> int:
        """Rows of a block."""
        rows = self.kernel.row.size
        return min(self.tiling.rows, rows) if isinstance(rows, int) else self.tiling.rows

    @property
    def features(self) -> int:
        """Elements of a row of features in memory."""
        return padded_size(self.kernel.features.count) if self.kernel.features else 0

    def computed(self, dtype: DType) -> DType:
        """The dtype in which values of a dtype are computed: floats in one, integers in the widest."""
        return self.real if dtype.is_float else dtype if dtype is DType.BOOL else DType.I64

    def shape(self, tensor: int) -> Shape:
        """The sizes of a tensor."""
        return self.graph.nodes[tensor].type.shape

    def buffer(self, stem: str, count: Dim, dtype: DType | None = None) -> str:
        """Memory of the kernel's own."""
        name = self.scopes.fresh(stem)
        self.buffers.append(Buffer(name, count, dtype or self.real))
        return name


def padded_size(size: int) -> int:
    """The size rounded up to whole vectors."""
    return -(-size // VECTOR) * VECTOR
