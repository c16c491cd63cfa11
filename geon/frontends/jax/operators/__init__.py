"""Rows of primitives, one module for a family; ``table.FAMILIES`` lists them."""
