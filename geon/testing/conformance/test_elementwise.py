"""Every elementwise primitive, for every dtype, compared with its reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import geon
from geon.op_graph.building.elementwise_build import Elementwise
from geon.op_graph.op_graph import Leaf, Tensor
from geon.op_graph.values.dtypes import DTYPES, FLOATS, as_dtype, kind
from geon.testing import assert_agrees
from geon.testing.samples import OPERAND_AXES, ROWS, shape_of

Array = np.ndarray[Any, Any]
P = geon.Axis("P")
SPECIAL_VALUES = (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, np.inf, -np.inf, np.nan)
# lgamma and polygamma are accurate to a few units in the last place of their larger terms.
NARROW = {"lgamma": ("float32", "float64")}


def taken(row: Elementwise) -> list[str]:
    """Return the dtypes that a primitive supports."""
    found = [name for name in DTYPES if name in NARROW.get(row.name, DTYPES)]
    if row.rule == "integer":
        return [name for name in found if kind(as_dtype(name)) == "i"]
    return [n for n in found if kind(as_dtype(n)) != "f"] if row.rule == "bits" else found


def operand_dtype(row: Elementwise, k: int, dtype: str) -> str:
    """Return the dtype of operand ``k`` if the primitive is tested with ``dtype``."""
    return "bool" if row.rule == "select" and k == 0 else dtype


def in_domain(random: np.random.Generator, interval: tuple[float, float], like: Leaf) -> Array:
    """Return numbers of a primitive's domain over the axes of a leaf; none below 0 if unsigned."""
    shape = shape_of(like.axes)
    low, high = interval
    if kind(like.dtype) == "b":
        return random.integers(0, 2, size=shape).astype(bool)
    if kind(like.dtype) == "i":
        first = 0 if like.dtype.kind == "u" else int(np.floor(low))
        return random.integers(first, int(np.ceil(high)) + 1, size=shape).astype(like.dtype)
    return random.uniform(low, high, size=shape).astype(like.dtype)


def special(dtype: str) -> Array:
    """Return special values of a dtype, where functions change, end or fail."""
    made = as_dtype(dtype)
    if kind(made) == "f":
        return np.array(SPECIAL_VALUES).astype(made)
    if kind(made) == "b":
        return np.array([False, True])
    info = np.iinfo(made)
    # The smallest integer is excluded: it has no negative.
    ends = {0, 1, 2, 3, info.max} | ({-1, -2, 1 - info.max} if info.min else set())
    return np.array(sorted(ends), made)


def compared(
    transformer: geon.Transformer,
    row: Elementwise,
    dtypes: list[str],
    make: Callable[[int, str], tuple[Leaf, Array]],
) -> None:
    """Compare the primitive for each of the dtypes, in one computation."""
    results: list[Tensor] = []
    feeds: dict[Leaf, Array] = {}
    for dtype in dtypes:
        operands = dict(make(k, operand_dtype(row, k, dtype)) for k in range(row.arity))
        results.append(row.apply(*operands))
        feeds |= operands
    assert_agrees(transformer, results, feeds, floor=1.0)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_values_over_unequal_axes(transformer: geon.Transformer, row: Elementwise) -> None:
    random = np.random.default_rng(1)

    def make(k: int, dtype: str) -> tuple[Leaf, Array]:
        leaf = geon.placeholder(OPERAND_AXES[k], dtype)
        return leaf, in_domain(random, row.domain[k], leaf)

    compared(transformer, row, taken(row), make)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_special_value_with_every_other(
    transformer: geon.Transformer, row: Elementwise
) -> None:
    def make(k: int, dtype: str) -> tuple[Leaf, Array]:
        array = special(dtype)
        return geon.placeholder([geon.Axis("PQR"[k], len(array))], dtype), array

    dtypes = [name for name in taken(row) if name not in ("float16", "bfloat16")]
    compared(transformer, row, dtypes, make)


@pytest.mark.parametrize("source", DTYPES)
def test_casts_to_every_dtype(transformer: geon.Transformer, source: str) -> None:
    x = geon.placeholder([P], source)
    numbers: list[Any] = [0, 1, 2, 100]
    if kind(x.dtype) == "f":
        numbers = [*SPECIAL_VALUES, 1e3, -1e3, 70000.0, 1e10, -1e10, 3.7, -3.7]
    elif x.dtype.kind != "b":
        numbers += [np.iinfo(x.dtype).min, np.iinfo(x.dtype).max]
    with np.errstate(all="ignore"):
        array = np.array([np.asarray(n).astype(x.dtype) for n in numbers])
    results = [geon.cast(x, target) for target in DTYPES]
    assert_agrees(transformer, results, {x: array}, exact=True)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_chain_rounds_after_every_op(transformer: geon.Transformer, dtype: str) -> None:
    x = geon.placeholder([P], dtype)
    array = np.linspace(-2, 2, 17).astype(x.dtype)
    assert_agrees(transformer, [(x * 3 + 1) / (x * x + 1) - x, -x * 0.1], {x: array}, floor=1.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_chooses_bits(transformer: geon.Transformer, dtype: str) -> None:
    x, y = geon.placeholder([P], dtype), geon.placeholder([P], dtype)
    arrays = {x: np.array([0, 1, 2, 3]).astype(x.dtype), y: np.array([3, 1, 0, 2]).astype(x.dtype)}
    results = [geon.where(geon.less(x, y), x, y), geon.where(geon.less(x, y), y, x)]
    assert_agrees(transformer, results, arrays, exact=True)
