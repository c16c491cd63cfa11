"""Loop nests, reductions, sorts and scatters as CUDA text."""
