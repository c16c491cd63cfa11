"""Cost model: work of kernels and their predicted time on a machine."""
