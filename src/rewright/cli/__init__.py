"""The ``rewright`` command: what people type, and the status that it ends with. Read ``main``, then ``commands``.

``programs`` and ``userfile`` find what an argument names; ``equivalence``, ``optimize``, ``env``, ``rules``, ``show``
and ``audit`` are one command each. Errors become one line and an exit status in ``main`` alone.
"""
