"""Certificates, and the checker that verifies them without any engine. Read ``checker``, then ``certificate``.

What a certificate claims of every node it says in the language of ``rewright.claims``. ``ledger`` keeps what has been
verified; ``lemma`` proves one step; ``theory`` and ``meaning`` say what terms and tensors mean. ``conditions`` are the
obligations that are left as assumptions, and ``rewriting`` verifies the rewrites that were made in front of the proof.
"""
