"""The ONNX exporter: a table with one row per primitive, and the graph that the rows write."""
