"""Stage 6: a plan as a C module, its units and its record."""
