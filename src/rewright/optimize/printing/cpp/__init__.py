"""C++ with OpenMP: renderer writes statements, functions scalars, and runtime is what every file begins with."""
