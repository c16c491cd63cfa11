"""Kernels as data: scalar code, loop nests and contractions; nothing of one target, and no text."""
