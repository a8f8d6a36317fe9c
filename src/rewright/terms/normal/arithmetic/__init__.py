"""Steps on guarded values under facts. Read ``cases``, ``substitution``, ``division``, ``binders``, ``bits``."""
