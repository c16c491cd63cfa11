"""Printing of kernels as source text of the C family."""
