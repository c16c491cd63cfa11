"""The table of operators of PyTorch: one row for a name and an overload."""

from __future__ import annotations

from functools import cache

from ..positional.programs import TableRow, table_of

FAMILIES = (
    "elementwise", "making", "movement", "indexing", "reductions", "products", "normalisation",
    "convolution", "recurrent", "control", "complex_numbers",
)  # fmt: skip


@cache
def operator_table() -> dict[str, TableRow]:
    """Return the rows of all families by name: ``add.Tensor``, and ``relu`` for a default.

    A row takes the arguments of the operator's schema. Tensors are values of ``positional``, lists
    of them are lists, symbolic integers are length expressions, inner graphs are functions. A
    parameter ``result`` takes what the program declares for the first result, and ``results`` for
    all.
    """
    return table_of(f"{__package__}.operators", FAMILIES)
