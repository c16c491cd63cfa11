"""Imported ONNX models beside ONNX Runtime: ``python -m benchmarks.onnx_models``."""
