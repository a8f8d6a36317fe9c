"""What is known of the values of a program before anybody runs it. Read ``values`` first.

``values`` walks a program once and keeps what every node's elements may be, from the operators' own transfer functions
(:mod:`rewright.ops.facts`); ``rows`` and ``support`` add what one node alone cannot know: that an element is compared
with its own row's maximum, and that a mask leaves something of every row. ``meetings`` says which nodes of which ranks
meet in a collective.
"""
