"""Write compiled computations as C that needs no Python: header, source, values, compile command."""
