"""Elementary functions as C text."""
