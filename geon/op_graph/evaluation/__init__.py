"""The naive interpreter, and which axes of a result are axes of an input."""
