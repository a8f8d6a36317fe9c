"""The e-graph: hash-consing, union-find, congruence closure and justifications."""

from rewright.egraph.egraph import EGraph, ENode, Equation, Justification, Label

__all__ = ["EGraph", "ENode", "Equation", "Justification", "Label"]
