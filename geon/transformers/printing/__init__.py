"""Kernels as text of the C family."""
