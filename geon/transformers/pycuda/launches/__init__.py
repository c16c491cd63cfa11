"""Launches, devices, and names of emitted CUDA."""
