"""The Triton kernels that Inductor generates for a program, as a launcher that a proof reads. Read ``launcher``."""

from rewright.kernel.inductor.launcher import inductor as inductor
