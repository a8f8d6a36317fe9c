"""The Triton kernels that Inductor generates for a program, as a launcher that a proof reads. Read ``launcher``."""
