"""A proof as a certificate. Read ``writer``, then ``claims``: what the engine claims, in the checker's language."""
