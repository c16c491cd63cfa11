"""Stage 3 of compilation: rewrites to primitives that the target has."""
