"""Stages 3 to 5 for every target: rewrite rules, layout, fusion, kernel order and memory."""
