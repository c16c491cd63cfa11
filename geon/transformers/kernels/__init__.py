"""Kernels as data: scalar code, loop nests and contractions, independent of the target."""
