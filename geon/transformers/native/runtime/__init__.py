"""Call compiled programs, and manage the memory of their results and arenas."""
