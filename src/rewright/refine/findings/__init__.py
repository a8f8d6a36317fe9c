"""What is reported of a refutation and of a failed proof: :mod:`rewright.blame` with relations and proofs.

``explain`` makes findings of the places where programs part, ``cuts`` says what the ranks should hold there,
``proved_repairs`` keeps the edits that are proved, and ``rounds`` looks for the next failure behind a first one.
"""
