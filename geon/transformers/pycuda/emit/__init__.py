"""CUDA module emission: converts a plan to kernels' source text and the steps that launch them."""
