"""The table of operators of PyTorch: one row for a name and an overload."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ..positional.values import Size

FAMILIES = (
    "elementwise", "making", "movement", "indexing", "reductions", "products", "normalisation",
    "convolution", "recurrent",
)  # fmt: skip


@dataclass(frozen=True)
class Declared:
    """The dtype and the shape that the program states for a result."""

    dtype: np.dtype[Any]
    shape: tuple[Size, ...]


@dataclass(frozen=True)
class OperatorRow:
    """An operator: ``build`` takes the arguments of its schema and returns its results.

    Tensors are values of ``positional``, lists of them are lists, symbolic integers are length
    expressions. A parameter ``result`` takes what the program declares for the (first) result.
    Operators with several results return a tuple.
    """

    name: str
    build: Callable[..., Any]
    takes_result: bool


@cache
def operator_table() -> dict[str, OperatorRow]:
    """Return the rows of all families by name: ``add.Tensor``, and ``relu`` for a default."""
    table: dict[str, OperatorRow] = {}
    for family in FAMILIES:
        rows: Mapping[str, Callable[..., Any]] = import_module(
            f".operators.{family}", __package__
        ).ROWS
        for name, build in rows.items():
            takes_result = "result" in inspect.signature(build).parameters
            table[name] = OperatorRow(name, build, takes_result)
    return table
