"""Where programs part, why, and which edit mends it. Read ``localise``, then ``explain``.

``localise`` finds the first operators whose results the sequential program never computes; ``cuts`` says what the ranks
should hold there, ``nearest_law`` why no law relates it; ``counterparts``, ``slips`` and ``repairs`` propose edits, and
``proved_repairs`` keeps those that are proved.
"""
