"""Rules that schedule loop trees, for CPUs and for GPUs."""
