"""Programs from outside as graphs: PyTorch, JAX, HLO, and files. Read ``capture``, then ``torch/capture``.

``torch`` traces modules with fake tensors and lowers ATen calls by the table in ``aten``; ``jax`` traces and reads the
module that JAX lowers to, by ``hlo``; ``graph_json`` reads graphs that others captured. ``validation`` runs what was
captured beside the program that it came from.
"""
