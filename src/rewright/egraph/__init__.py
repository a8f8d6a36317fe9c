"""Hash-consing, union-find and congruence closure, with a justification for every union. Read ``egraph``."""

from rewright.egraph.egraph import EGraph, ENode, Equation, Justification, Label

__all__ = ["EGraph", "ENode", "Equation", "Justification", "Label"]
