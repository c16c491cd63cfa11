"""Tables of operators, one module for a family; importing the package registers them."""

from importlib import import_module

FAMILIES = ("basic",)

for family in FAMILIES:
    import_module(f"{__name__}.{family}")
