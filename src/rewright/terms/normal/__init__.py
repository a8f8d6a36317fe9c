"""One normal form for the elements of tensors: guarded polynomials over sums, maxima and functions, with symbolic sizes."""
