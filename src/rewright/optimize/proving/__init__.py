"""That a plan is the program, that a rewritten plan is the plan, and what has no proof. Start at ``proofs``."""
