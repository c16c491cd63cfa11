"""Symbolic graphs: tensors without memory, derivatives, passes, and compilation with an arena.

- ``graph``: ``SymbolicGraph``, symbols and aliases, loops and branches
- ``derivatives``: gradients and optimisers as nodes
- ``passes``: simplification, recomputation, replicas
- ``compiling``: the concrete graph and its memory
- ``files``: graphs with bound tensors in files
"""
