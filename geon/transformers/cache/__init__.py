"""Caches of compiled programs, in memory and on disk."""
