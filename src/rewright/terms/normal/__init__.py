"""One normal form for elements of tensors: guarded polynomials over sums, maxima and functions, sizes symbolic."""
