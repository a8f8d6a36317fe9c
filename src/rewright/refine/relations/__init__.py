"""How the ranks hold inputs and outputs: given, inferred, as equations. Read ``known``, then ``inputs``."""
