"""Helpers for builders of positional programs: casts, declared results, derivatives, tables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, repeat
from typing import Any

import numpy as np

import geon

from ...errors import ArgumentError, DTypeError
from ...op_graph.axes.lengths import may_equal
from ...op_graph.values.dtypes import ALL_DTYPES
from . import folding
from .elementwise import elementwise
from .values import HostArray, PositionalArray, Size, Value, array, as_array, host


def cast(value: Value, dtype: Any) -> Value:
    """Return ``value`` in a dtype, unchanged if it has it."""
    wanted = np.dtype(dtype)
    if value.dtype == wanted:
        return value
    if wanted.name not in ALL_DTYPES:
        raise DTypeError(f"a cast from {value.dtype} to {wanted}: geon has no tensors of {wanted}")
    folded = folding.cast(value, wanted) if isinstance(value, HostArray) else None
    return elementwise(lambda t: geon.cast(t, wanted), value) if folded is None else folded


def value_of(operand: Any, dtype: Any) -> Value:
    """Return a value, a number or a length as a value of a dtype."""
    return cast(operand if isinstance(operand, Value) else host(operand), dtype)


def number_of(length: Size, dtype: Any) -> geon.Tensor:
    """Return a length as a scalar tensor."""
    return geon.cast(as_array(host(length, "int64")).tensor, dtype)


def conform(value: Value, shape: Sequence[Size], dtype: Any) -> Value:
    """Return ``value`` in the dtype that a program states; raise ``ArgumentError`` for its shape.

    Lengths that may be equal pass.
    """
    fits = len(shape) == len(value.shape) and all(
        may_equal(stated, length) for stated, length in zip(shape, value.shape, strict=True)
    )
    if not fits:
        raise ArgumentError(
            f"the result is {value}; the program says ({', '.join(map(str, shape))})"
        )
    return cast(value, dtype)


@dataclass(frozen=True)
class Declared:
    """The dtype and the shape that a program states for a result."""

    dtype: np.dtype[Any]
    shape: tuple[Size, ...]


def conforming(results: Iterable[Any], declared: Iterable[Declared | None]) -> tuple[Any, ...]:
    """Return results as a program states them; of some it states nothing."""
    pairs = zip(results, chain(declared, repeat(None)), strict=False)
    return tuple(
        [
            conform(v, d.shape, d.dtype) if isinstance(v, Value) and d is not None else v
            for v, d in pairs
        ]
    )


def backward(
    forward: Callable[..., Value], operands: Sequence[Value], seed: Value
) -> list[PositionalArray]:
    """Return the derivatives of ``sum(seed * forward(*operands))`` with respect to each operand."""
    given = [_variable(operand) for operand in operands]
    result = as_array(forward(*given))
    weights = as_array(seed)
    pairs = zip(weights.dims, result.dims, strict=True)
    names: dict[Any, Any] = {d.name: r.name for d, r in pairs if d is not None and r is not None}
    tensor = weights.tensor.rename({old: new for old, new in names.items() if old != new})
    found = geon.vjp(result.tensor, [each.tensor for each in given], tensor)
    return [array(d, each.dims) for d, each in zip(found, given, strict=True)]


def _variable(operand: Value) -> PositionalArray:
    """Return an operand as a tensor that is no constant, with respect to which one can derive."""
    given = as_array(operand)
    return PositionalArray(geon.cast(given.tensor, given.dtype) * 1, given.dims)


def named_results(whole: Any) -> Iterator[tuple[str, Any]]:
    """Yield the results of a program by name: keys and fields, else ``output`` with a number."""
    if isinstance(whole, Mapping):
        yield from ((str(key), value) for key, value in whole.items())
    elif isinstance(whole, tuple) and hasattr(whole, "_fields"):
        yield from zip(whole._fields, whole, strict=True)
    elif isinstance(whole, (list, tuple)):
        yield from ((f"output_{number}", value) for number, value in enumerate(whole))
    else:
        yield "output", whole


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
