"""Calls of CUDA programs, on a GPU or on the host."""
