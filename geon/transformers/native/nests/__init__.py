"""Loop nests as C text."""
