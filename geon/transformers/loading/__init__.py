"""Lazy imports, optional C extensions, transformers by name, and the environment."""
