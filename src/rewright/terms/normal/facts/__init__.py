"""What is known on a path of a proof. Read ``guards``, then ``context``, which asks the others."""
