"""Stages 4 and 5 after fusion: kernel order, buffers, in-place results, verification."""
