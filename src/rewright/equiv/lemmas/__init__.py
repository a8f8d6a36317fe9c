"""Equations between small parts of two programs: found from values, proved, and kept as rules. Read ``sweep`` first."""
