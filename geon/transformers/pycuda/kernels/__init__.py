"""CUDA text of loop nests, reductions, sorts and scatters."""
