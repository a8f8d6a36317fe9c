"""What goes to z3 keeps apart what is apart."""

from __future__ import annotations

from rewright.terms.normal.algebra import new_context
from rewright.terms.normal.facts.bridge import Bridge
from rewright.terms.normal.facts.guards import Guard, is_zero
from rewright.terms.normal.polynomials.atoms import Element, Symbol, polynomial, symbol


def test_tensors_whose_names_differ_after_a_null_character_are_two() -> None:
    """z3 reads names up to the first null character: all terms of a certificate with named inputs were one tensor."""
    first, second = (polynomial(Element(f"\0t{n}", (symbol("i"),), True)) for n in (1, 2))
    guard = is_zero(first - second)
    assert isinstance(guard, Guard)
    assert not new_context(10).implied_real(guard, True)
    bridge = Bridge(400)
    assert not bridge.impossible([(guard, False)])
    assert not bridge.impossible([(guard, True)])


def test_a_size_and_a_tensor_of_one_name_are_two() -> None:
    size, scalar = polynomial(Symbol("i'x'")), polynomial(Element("x", (), True))
    guard = is_zero(size - scalar)
    assert isinstance(guard, Guard)
    assert not Bridge(400).impossible([(guard, False)])
