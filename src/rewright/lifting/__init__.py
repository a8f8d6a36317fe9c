"""Programs as windows of terms: a tensor of any rank is a view of what the sequential program computes.

Read ``terms/value``, then ``transfer`` and ``programs``. Slices, coefficients and partial sums are lifted outwards, so
that equal tensors are one value: ``moves``, ``arithmetic`` and ``masks`` are the laws by operator, ``recognition``
those that see one form in another, ``layers`` what repeats. The whole idea is in ``docs/explanation/engine.md``.
"""
