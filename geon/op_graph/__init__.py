"""The op graph: axes, ops, derivatives, rewriting. Imports nothing else of geon but its errors."""
