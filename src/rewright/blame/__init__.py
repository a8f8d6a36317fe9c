"""Where programs part, why, and which edit mends it, over values. Read ``divergence``, then ``exchanges``.

Two programs run on the same inputs. ``holding`` says whether ranks hold a tensor of the sequential program at a place,
``layouts`` whether two programs have one tensor in two layouts. From a wrong output ``divergence`` goes back, node by
node, to where all that is read is right and the result is not (``pairing`` has the steps); ``exchanges`` gives one
program what the other one has until all is right; ``localise`` needs no values, and asks terms. ``wording`` and
``diagnosis`` say what is wrong there, ``counterparts``, ``repairs`` and ``slips`` propose edits.

``exchanges`` and ``localise`` ask of a tensor alone whether the other program has it, and share the way back
(``regions``). ``divergence`` asks it of pairs: what a place of the ranks should hold has to be presumed, so its way
back is a cheapest path over presumptions.
"""
