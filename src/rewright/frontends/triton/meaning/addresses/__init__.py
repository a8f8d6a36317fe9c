"""Which elements an access touches: indices of instances and lanes, and their digits along axes.

Read ``indices`` first, then ``places``. ``safety`` proves what has to hold of indices.
"""
