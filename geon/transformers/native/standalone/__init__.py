"""Write compiled computations as C without Python: header, sources, values, commands."""
