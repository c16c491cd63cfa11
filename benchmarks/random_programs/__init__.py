"""Random large programs: how far their kernels are from what the machine can do, and JAX beside."""
