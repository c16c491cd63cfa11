"""Stages 3 to 5, for every target: rules, layout, fusion, order, memory."""
