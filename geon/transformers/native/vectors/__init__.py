"""Explicit vectors and unroll-and-jam in emitted C."""
