"""The table of primitives of JAX: one row for a name."""

from __future__ import annotations

from functools import cache

from ..positional.programs import TableRow, table_of

FAMILIES = (
    "elementwise", "movement", "indexing", "reductions", "products", "control", "random",
)  # fmt: skip


@cache
def primitive_table() -> dict[str, TableRow]:
    """Return the rows of all families by the name of the primitive.

    A row takes the operands of an equation, values of ``positional``, in order. Its keyword
    parameters are parameters of the equation, with symbolic dimensions as length expressions;
    ``builder`` takes the function that builds an inner jaxpr, ``parameters`` all parameters, and
    ``results`` the shapes and dtypes that the equation declares.
    """
    return table_of(f"{__package__}.operators", FAMILIES)
