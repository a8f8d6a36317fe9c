"""Polynomials over atoms: the terms of the normal form. Read ``atoms``, ``ranged``, ``powers``, ``curves``."""
