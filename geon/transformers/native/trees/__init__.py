"""Emit loop trees as C: statements of any vector width, and tasks."""
