"""Scalar expressions and helper functions of the C family."""
