"""Questions about guards that only z3 can answer; the only place that imports it.

Only ``unsat`` is believed: anything else counts as open, so that a hard question costs a proof and never soundness.
Floor quotients are integers with their defining inequalities, because z3's own division is less reliable.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import z3  # pyright: ignore[reportMissingTypeStubs]

from rewright.terms.normal.polynomials.atoms import (
    Atom,
    Base,
    Element,
    Exponential,
    Floor,
    Guard,
    Indicator,
    Number,
    Polynomial,
    Symbol,
)

_z3: Any = z3
Term = Any
Signed = tuple[Guard, bool]


_WRITTEN_OUT = 16
"""Integer powers up to this are products for z3."""


def _name(prefix: str, text: str) -> str:
    """A name that no other text gives: z3 reads names up to the first null character, which repr escapes."""
    return f"{prefix}{text!a}"


class Bridge:
    """A solver with scopes; translations are scoped with it, because some bring a lemma along."""

    def __init__(self, milliseconds: int) -> None:
        self._solver: Term = _z3.SimpleSolver()
        self._solver.set("timeout", milliseconds)
        self._terms: list[dict[bytes, Term]] = [{}]
        self.queries = 0

    @property
    def depth(self) -> int:
        """Number of scopes that are open."""
        return len(self._terms) - 1

    def limit(self, milliseconds: int) -> None:
        """Answer every later question within this time, or not at all."""
        self._solver.set("timeout", max(1, milliseconds))

    def push(self) -> None:
        """Open a scope."""
        self._solver.push()
        self._terms.append({})

    def pop(self) -> None:
        """Forget what was added since the last push."""
        self._solver.pop()
        self._terms.pop()

    def add(self, facts: Iterable[Signed]) -> None:
        """Assume guards, or their negations."""
        for guard, polarity in facts:
            term = self._guard(guard)
            self._solver.add(term if polarity else _z3.Not(term))

    def impossible(self, facts: Iterable[Signed] = ()) -> bool:
        """Whether the facts cannot all hold together with what was assumed."""
        self.push()
        try:
            self.add(facts)
            self.queries += 1
            return self._solver.check() == _z3.unsat
        except _z3.Z3Exception:
            # What the solver cannot even read is open, like all that it cannot decide.
            return False
        finally:
            self.pop()

    def small_model(self, names: Iterable[str], most: int) -> dict[str, int] | None:
        """Integers up to ``most`` for the names under which everything assumed holds."""
        wanted = list(names)
        self.push()
        try:
            symbols = {name: _z3.Int(_name("s", name)) for name in wanted}
            for symbol in symbols.values():
                self._solver.add(symbol <= most, symbol >= -most)
            if self._solver.check() != _z3.sat:
                return None
            model = self._solver.model()
            return {name: model.eval(s, model_completion=True).as_long() for name, s in symbols.items()}
        finally:
            self.pop()

    def _guard(self, guard: Guard) -> Term:
        if guard.kind == "true":
            atom = guard.value.atom()
            return self._known(b"b" + guard.key, lambda: self._element(atom, _z3.BoolSort(), _z3.Bool, "b"))
        value = self._integer(guard.value) if guard.kind.startswith("integer") else self._real(guard.value)
        return value >= 0 if guard.kind.endswith(">=0") else value == 0

    def _known(self, key: bytes, build: Any) -> Term:
        for level in self._terms:
            if key in level:
                return level[key]
        term = build()
        self._terms[-1][key] = term
        return term

    def _integer(self, value: Polynomial) -> Term:
        total = _z3.IntVal(0)
        for monomial, coefficient in value.terms.items():
            product = _z3.IntVal(int(coefficient))
            for atom, exponent in monomial:
                factor = self._integer_atom(atom)
                for _ in range(int(exponent)):
                    product = product * factor
            total = total + product
        return total

    def _integer_atom(self, atom: Atom) -> Term:
        return self._known(b"i" + atom.key, lambda: self._new_integer(atom))

    def _new_integer(self, atom: Atom) -> Term:
        if isinstance(atom, Symbol):
            return _z3.Int(_name("s", atom.name))
        if isinstance(atom, Floor):
            return self._floor(atom)
        if isinstance(atom, Indicator):
            return _z3.If(self._guard(atom.guard), _z3.IntVal(1), _z3.IntVal(0))
        if isinstance(atom, Element):
            return self._element(atom, _z3.IntSort(), _z3.Int, "i")
        return _z3.Int(f"~{atom.key.hex()}")

    def _floor(self, atom: Floor) -> Term:
        numerator, divisor = self._integer(atom.numerator), self._integer(atom.divisor)
        found = _z3.Int(f"~{atom.key.hex()}")
        inside = _z3.And(divisor * found <= numerator, numerator <= divisor * found + divisor - 1)
        self._solver.add(_z3.Implies(divisor > 0, inside))
        return found

    def _element(self, atom: Any, sort: Term, constant: Any, prefix: str) -> Term:
        """An element of a tensor, as an uninterpreted function of its index."""
        if not isinstance(atom, Element):
            return constant(f"~{prefix}{atom.key.hex()}")
        name = _name(prefix, atom.tensor)
        if not atom.index:
            return constant(name)
        signature = [_z3.IntSort()] * len(atom.index)
        return _z3.Function(name, *signature, sort)(*[self._integer(i) for i in atom.index])

    def _real(self, value: Polynomial) -> Term:
        total = _z3.RealVal(0)
        for monomial, coefficient in value.terms.items():
            product = _z3.RealVal(str(coefficient))
            for atom, exponent in monomial:
                product = self._times(product, atom, exponent)
            total = total + product
        return total

    def _times(self, product: Term, atom: Atom, exponent: Number) -> Term:
        if isinstance(exponent, Fraction) or abs(exponent) > _WRITTEN_OUT:
            return product * self._known(b"p" + atom.key + str(exponent).encode(), lambda: self._root(atom, exponent))
        factor = self._real_atom(atom)
        for _ in range(abs(exponent)):
            product = product * factor if exponent > 0 else product / factor
        return product

    def _root(self, atom: Atom, exponent: Number) -> Term:
        """A fractional or a large power: all that z3 is told is its sign, where it has one."""
        if not isinstance(exponent, Fraction) and not isinstance(atom, Exponential):
            return _z3.Real(f"~{atom.key.hex()}^{exponent}")
        found = _z3.Real(f"~{atom.key.hex()}^{exponent}")
        self._solver.add(found > 0 if isinstance(atom, Exponential) else found >= 0)
        return found

    def _real_atom(self, atom: Atom) -> Term:
        return self._known(b"r" + atom.key, lambda: self._new_real(atom))

    def _new_real(self, atom: Atom) -> Term:
        if atom.integer:
            return _z3.ToReal(self._integer_atom(atom))
        if isinstance(atom, Element):
            return self._element(atom, _z3.RealSort(), _z3.Real, "r")
        if isinstance(atom, Base):
            return self._real(atom.value)
        found = _z3.Real(f"~{atom.key.hex()}")
        if isinstance(atom, Exponential):
            self._solver.add(found > 0)
        return found
