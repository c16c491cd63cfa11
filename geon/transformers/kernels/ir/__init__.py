"""Kernel IR: loop nests and scalar code."""
