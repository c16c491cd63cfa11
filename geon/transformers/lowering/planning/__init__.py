"""Stages 4 and 5 after fusion: order of kernels, buffers, in-place results, verification."""
