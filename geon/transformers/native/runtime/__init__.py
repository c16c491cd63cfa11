"""Calls of compiled programs, and the memory that they work in."""
