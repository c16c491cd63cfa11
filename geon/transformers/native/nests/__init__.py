"""Emit loop nests as C: tasks, loops, vector lanes and reductions."""
