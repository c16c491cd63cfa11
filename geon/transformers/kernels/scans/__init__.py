"""Scans as one kernel: sequential loops, and packing of their scalars into vectors."""
