"""Reference functions: softmax, attention, norms and losses as plain graphs of operators.

A frontend lowers a composite function of its framework to the reference function here, so that two programs that
spell the same function differently meet in the same operators, and no rule has to know about softmax.
"""
