"""Models and encoders of classical machine learning (ai.onnx.ml)."""
