"""What a kernel means: a graph of what all instances of a launch leave in memory.

Read ``values`` first, then ``reader``. ``operations`` says what each operation of TTIR means, and ``iteration`` what
loops do. ``addresses`` turns pointers into elements of tensors, ``memories`` keeps what loads read and stores leave,
and ``folds`` has the identities by which loops and reductions are one.
"""
