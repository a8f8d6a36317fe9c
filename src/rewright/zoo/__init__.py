"""Models by configuration alone, sequential and parallelised, for demonstrations, tests and benchmarks.

Needs the extra ``rewright[zoo]``. Nothing is downloaded and no weight is allocated: modules are built on the meta
device, and captures need shapes only.
"""

from rewright.zoo.families import FAMILIES, SIZES
from rewright.zoo.programs import PLANS, parallel, sequential, supported

__all__ = ["FAMILIES", "PLANS", "SIZES", "parallel", "sequential", "supported"]
