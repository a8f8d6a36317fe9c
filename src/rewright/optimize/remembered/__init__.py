"""Programs that were optimised before, on disk: for the next process, and as packages. Read ``entry``, then ``cache``.

An entry is a folder: a manifest, the compiled kernels, their source, the explanation, and the certificate. The cache
finds one by what the program is and where it runs. A package is an entry with a small loader that needs PyTorch alone.
"""
