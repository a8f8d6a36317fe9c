"""``rewright init``: the two programs and a test of them, begun from what a repository has. Start at ``command``.

``reading`` looks at the source without running it, ``guessing`` has values for parameters, and ``templates`` has a text
for each kind of repository.
"""
