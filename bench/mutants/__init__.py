"""Injected bugs: wrong versions of a rank program, to measure whether a refinement check finds them."""

from bench.mutants.generating import MutantKind, generate
from bench.mutants.model import Mutant
from bench.mutants.oracle import is_equivalent

__all__ = ["Mutant", "MutantKind", "generate", "is_equivalent"]
