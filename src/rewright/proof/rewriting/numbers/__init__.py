"""Lemmas that numbers decide: their sides read nothing, or one byte, and both are computed.

Read ``closed`` first. ``cutting`` computes a side with ``bounded`` arrays, whose elements lie between two numbers each
(``elements``), ``bytes`` goes through all values of a byte, and ``taken`` says in words what is taken for granted.
"""
