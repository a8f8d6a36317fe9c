"""PyTorch beside what was captured of it: call by call, and the program as a whole."""
