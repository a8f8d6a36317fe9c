"""Rewrites of programs in front of a proof, each a step that the checker verifies. Read ``forms`` first: the table.

``forms`` has the rewrites of one program, and a module beside it says how one of them is done where no law of the
checker says it all: ``local`` is typical. Rewrites of several programs take for granted that numbers in
these are the same but for rounding, and are made where programs have other numbers: ``ideal`` and ``computed_tables``.
"""
