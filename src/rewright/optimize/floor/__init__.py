"""Never slower than what the user would have had: what runs is what was faster on this machine. Read ``measuring``.

``parts`` are the kernels of a plan, each with the same tensors by torch; ``peers`` are the whole program by eager
PyTorch and by Inductor; ``measuring`` times them in turns and keeps the faster of each.
"""
