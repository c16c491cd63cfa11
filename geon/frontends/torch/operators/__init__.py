"""Rows of operators, one module for a family; ``table.FAMILIES`` lists them."""
