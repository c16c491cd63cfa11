"""Launch steps, device interface, and naming in emitted CUDA."""
