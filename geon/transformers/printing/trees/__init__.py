"""Emit loop trees in languages of the C family: statements, scalar code and private buffers."""
