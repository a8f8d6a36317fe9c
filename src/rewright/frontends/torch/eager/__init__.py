"""Operators of the IR by PyTorch's own calls, on its tensors and in the dtype of the program. Read ``operators``.

``contraction`` has matrix products and convolutions, ``indexed`` what reads and writes at computed places, ``windows``
sliding reductions. What torch has no call for runs in NumPy, and each such case says why.
"""
