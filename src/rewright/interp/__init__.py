"""Programs run on numbers: one program, and all ranks in lock step. Read ``program``, then ``machine``.

``machine`` is the one loop behind every execution; number systems are floats (``arithmetic``), 50 digits
(``decimals``) and fractions (``rationals``); ``exact`` reads denotations literally. ``adversarial`` draws inputs that
may tell programs apart.
"""
