"""The same programs at small sizes: every axis that can be shorter is, consistently over all graphs.

Axes are grouped into components wherever their sizes depend on each other additively: equal, cut, joined, gathered,
sharded. One component has one scale: a large unit (such as the length of a shard) becomes a small one, and small
deviations from multiples of it (such as "one less") stay as they are. Where axes are merged and split by reshapes,
the scale of the product follows from its factors. Integers that index an axis, or are compared with such, scale as
positions along the axis do.
"""
