"""Primitives and the functions that apply them: leaves, elementwise, movement, reductions."""
