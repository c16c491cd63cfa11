"""Graphs as text: dumps, fingerprints, and display in notebooks."""
