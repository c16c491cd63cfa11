"""Statements of loop nests as C text, without the loops."""
