"""Models by configuration alone, sequential and parallelised, for tests and benchmarks: a folder of the checkout.

Needs the extra ``rewright[models]``. Nothing is downloaded and no weight is allocated: modules are built on the meta
device, and captures need shapes only.
"""

from zoo.decoder import DECODERS
from zoo.families import FAMILIES
from zoo.families import SIZES as _OF_FAMILIES
from zoo.programs import PLANS, parallel, sequential, supported

SIZES: dict[str, tuple[str, ...]] = {**_OF_FAMILIES, "decoder": ("tiny", *DECODERS)}
"""The sizes of every model; ``8b/4`` is the shape of ``8b`` with 4 layers."""

__all__ = ["FAMILIES", "PLANS", "SIZES", "parallel", "sequential", "supported"]
