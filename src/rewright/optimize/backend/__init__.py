"""``torch.compile(model, backend="rewright")``, for inference and training. Read ``entry``, then ``graphs``.

``entry`` has AOTAutograd make forward and backward graphs of what Dynamo found; ``graphs`` gives each of them kernels
when it is called first, for each of a few tuples of sizes; ``plain`` makes a graph for given sizes, ``kernels`` and
``returned`` run one; ``others`` are what runs where there are no kernels: Inductor's code, and else PyTorch's own.
"""

from rewright.optimize.backend.entry import backend

__all__ = ["backend"]
