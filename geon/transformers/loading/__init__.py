"""Lazy imports, optional C extensions, lookup of transformers by name, environment variables."""
