"""Networks as programs: operators read and write variables in scopes.

- ``registry``: prototypes of operators, ``register_operator``
- ``program``: ``Program``, ``Block``, ``Operator``, ``Var``, ``Parameter`` and the guards
- ``creators``, ``layers``, ``control_flow``: what adds operators to a program
- ``backward``, ``gradients``: gradient operators, imported for training only
- ``scope``: ``Scope`` and ``Variable``
- ``values``, ``evaluation``: values of variables, and operators evaluated on geon tensors
- ``operators``: the tables of operators
"""
