"""Terms and the values over them: what a tensor of any program is a window of. Read ``value``, then ``store``.

``store`` holds hash-consed terms, total functions of their indices; ``value`` is a tensor as a sum of windows into
terms; ``index`` and ``regions`` are the affine indices and the boxes that these are made of; ``algebra`` brings sums of
windows into one form. ``facts`` and ``windows`` keep what look-ups say of integer terms, ``trace`` what was read.
"""
