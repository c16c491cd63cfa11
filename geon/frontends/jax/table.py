"""The table of primitives of JAX: one row for a name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

FAMILIES = (
    "elementwise", "movement", "indexing", "reductions", "products", "control", "random",
)  # fmt: skip


@dataclass(frozen=True)
class PrimitiveRow:
    """A primitive: ``build`` returns the results for its operands and parameters.

    Operands are values of ``positional``, in order. Parameters of the equation are keywords, of
    which ``build`` names those that it needs. Symbolic dimensions in them are length expressions. A
    parameter ``builder`` takes the function that builds an inner jaxpr; ``results`` takes what the
    equation declares for its results. A tuple has one value for each result.
    """

    name: str
    build: Callable[..., Any]
    takes: frozenset[str]


@cache
def primitive_table() -> dict[str, PrimitiveRow]:
    """Return the rows of all families by the name of the primitive."""
    table: dict[str, PrimitiveRow] = {}
    for family in FAMILIES:
        rows: Mapping[str, Callable[..., Any]] = import_module(
            f".operators.{family}", __package__
        ).ROWS
        for name, build in rows.items():
            parameters = inspect.signature(build).parameters.values()
            named = frozenset([p.name for p in parameters if p.kind is p.KEYWORD_ONLY])
            table[name] = PrimitiveRow(name, build, named)
    return table
