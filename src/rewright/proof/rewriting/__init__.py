"""How a program was rewritten in front of a proof, step by step, and how each step is checked.

Read ``stages`` first: a stage puts new parts in the places of old ones, and a lemma says of each that both compute the
same. ``evidence`` checks lemmas: by normal forms, by ``numbers`` where nothing is read, or by one of the ``laws``.
"""
