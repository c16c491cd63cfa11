"""Calls of the C library: sorting, prefix sums, scatter."""
