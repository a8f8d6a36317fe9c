"""Wrong kernels: one change at a time in the kernels of ``tests/kernel/programs.py``, and what the verdicts say."""
