"""Conversion of a computation's options, results, variables and open lengths for calls."""
