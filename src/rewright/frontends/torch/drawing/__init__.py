"""Random numbers of PyTorch programs: functions of a generator's state, and of nothing else.

Read ``generators`` first: it gives every state of a generator a name, so that numbers drawn from one state are one
tensor. ``operators`` defines what draws (dropout, ``normal_``, ``multinomial``) by four operators that nothing else
defines. ``replaying`` runs a program with given numbers, ``distributed`` is what DTensor does with generators of a GPU.
"""
