"""Emit explicit vectors, transposes, non-temporal stores and unroll-and-jam in C."""
