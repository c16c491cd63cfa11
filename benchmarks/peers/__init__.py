"""geon beside JAX, PyTorch, ONNX Runtime, PyTensor, tinygrad and NumPy on the same work."""
