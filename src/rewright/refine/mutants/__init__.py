"""Injected bugs: wrong versions of a rank program, to measure whether a refinement check finds them."""

from rewright.refine.mutants.generating import MutantKind, generate
from rewright.refine.mutants.model import Mutant
from rewright.refine.mutants.oracle import is_equivalent

__all__ = ["Mutant", "MutantKind", "generate", "is_equivalent"]
