"""Tables of a program's operators: one row for a name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class TableRow:
    """An operator: ``build`` returns its result, or a tuple of them, for operands and options.

    ``takes`` are the keyword parameters that ``build`` names.
    """

    name: str
    build: Callable[..., Any]
    takes: frozenset[str]


def table_of(package: str, families: Iterable[str]) -> dict[str, TableRow]:
    """Return the rows by name of modules of a package; each has ``ROWS``, functions by name."""
    table: dict[str, TableRow] = {}
    for family in families:
        rows: Mapping[str, Callable[..., Any]] = import_module(f"{package}.{family}").ROWS
        for name, build in rows.items():
            parameters = inspect.signature(build).parameters.values()
            takes = frozenset([p.name for p in parameters if p.kind is p.KEYWORD_ONLY])
            table[name] = TableRow(name, build, takes)
    return table
