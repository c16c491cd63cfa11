"""Tables of operators, one module for a family; importing the package registers them."""

from importlib import import_module

from .rows import register

FAMILIES = (
    "elementwise", "reductions", "movement", "products", "networks", "losses", "sources",
    "analysis", "sequences", "control", "recurrences", "updates",
)  # fmt: skip

for family in FAMILIES:
    register(import_module(f"{__name__}.{family}").ROWS)
