"""Stage 6: emit a plan as a C module, its translation units and the record that a call needs."""
