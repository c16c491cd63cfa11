"""Compiled programs in memory and on disk."""
