"""Tests that need no compiler and end within five seconds: build, derive, NumPy, dump."""
