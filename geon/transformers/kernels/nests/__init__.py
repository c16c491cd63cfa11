"""Construction of loop nests from groups of ops."""
