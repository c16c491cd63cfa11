"""Large tiles of float32, at sizes at which tests can have them: however operands lie and end."""

import numpy as np
import pytest

import geon
from geon.transformers.pycuda.products import product_forms
from geon.transformers.pycuda.products.product_tiles import (
    DEFAULT_TILE_DEPTH,
    MAX_SERIAL_TERMS,
    NARROW_TILE_SIDE,
    TALL_TILE_ROWS,
    WIDE_TILE_COLUMNS,
    large_tiles,
)
from geon.transformers.pycuda.runtime import host

from .devices import transformer_on
from .test_products import AXES, ORDERS, made, numbers, operands

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
LONG = MAX_SERIAL_TERMS
LENGTHS = [
    {"N": n, "C": c, "M": m, "B": 2}
    for n, c, m in (
        (NARROW_TILE_SIDE + 1, 1, NARROW_TILE_SIDE + 1),
        (TALL_TILE_ROWS - 1, DEFAULT_TILE_DEPTH - 1, WIDE_TILE_COLUMNS - 1),
        (TALL_TILE_ROWS, DEFAULT_TILE_DEPTH, WIDE_TILE_COLUMNS),
        (TALL_TILE_ROWS + 1, DEFAULT_TILE_DEPTH + 1, WIDE_TILE_COLUMNS + 4),
        (TALL_TILE_ROWS + 4, 2 * DEFAULT_TILE_DEPTH + 4, WIDE_TILE_COLUMNS + 1),
        (2 * TALL_TILE_ROWS + 3, LONG, NARROW_TILE_SIDE + 3),
        (NARROW_TILE_SIDE + 2, LONG + 1, 2 * WIDE_TILE_COLUMNS + 1),
        (NARROW_TILE_SIDE + 4, 3 * LONG + DEFAULT_TILE_DEPTH, NARROW_TILE_SIDE + 4),
    )
]


@pytest.fixture
def few(monkeypatch):
    """Large tiles for products that have few of them, of short sums."""
    least = product_forms.MIN_WIDE._replace(terms=1)
    monkeypatch.setattr(product_forms, "MIN_LARGE_TILES", 1)
    monkeypatch.setattr(product_forms, "MIN_WIDE", least)


@pytest.fixture
def cuda(few):
    """A transformer whose programs nobody else has compiled with other limits."""
    with transformer_on(host.HostDevice()) as made:
        yield made


@pytest.mark.parametrize(("left", "right"), ORDERS)
def test_operands_as_they_lie(left, right, cuda):
    x, y = operands("float32", left, right)
    result = made(x, y)
    f = cuda.computation(result, x, y)
    assert "geon_add_rests" in f.source and "at ^= 1" in f.source
    path = f"{left},{right}->{''.join(result.axes.names)}"
    for seed, lengths in enumerate(LENGTHS):
        given = [numbers(each, lengths, seed) for each in (x, y)]
        a, b = (each.astype(np.float64) for each in given)
        expected = np.maximum(np.einsum(path, a, b) + 1, 0)
        size = np.einsum(path, np.abs(a), np.abs(b)) + 1
        found = f(*given)
        assert found.shape == expected.shape and found.dtype == np.float32
        assert (np.abs(found - expected) <= 2e-6 * size).all(), lengths


def test_an_operand_that_is_computed_has_small_ones(cuda):
    """A second text of what computes it would take as long to compile as it saves."""
    x, y = operands("float32", "NC", "CM")
    f = cuda.computation(geon.dot(geon.relu(x), y, over=[AXES["C"]]), x, y)
    assert "at ^= 1" not in f.source and "geon_fill_tile<" in f.source.partition("kernel_0")[2]
    for lengths in LENGTHS[1:6]:
        given = [numbers(each, lengths, 1) for each in (x, y)]
        a, b = (each.astype(np.float64) for each in given)
        a = np.maximum(a, 0)
        assert (np.abs(f(*given) - a @ b) <= 2e-6 * (np.abs(a) @ np.abs(b))).all(), lengths


def test_equal_terms_and_what_is_infinite(cuda):
    """Sums of many equal terms are right, and an infinite total stays one."""
    x, y = operands("float32", "NC", "CM")
    f = cuda.computation(geon.dot(x, y, over=[AXES["C"]]), x, y)
    n, c, m = NARROW_TILE_SIDE + 1, 64 * LONG + 5, NARROW_TILE_SIDE + 2
    given = np.full((n, c), 0.1, np.float32), np.ones((c, m), np.float32)
    np.testing.assert_allclose(f(*given), np.float64(np.float32(0.1)) * c, rtol=1e-6)
    given[0][0, 70], given[0][1, 3 * LONG], given[0][2, 0] = np.inf, -np.inf, np.nan
    given[0][3, 5], given[0][3, 900] = np.inf, -np.inf
    found = f(*given)
    assert (found[0] == np.inf).all() and (found[1] == -np.inf).all()
    assert np.isnan(found[2:4]).all() and np.isfinite(found[4:]).all()


def test_there_are_no_races(few):
    with geon.make_transformer("cuda-on-host", checks="races") as cuda:
        x, y = operands("float32", "NC", "CM")
        f = cuda.computation(made(x, y), x, y)
        f(*[numbers(each, LENGTHS[4], 0) for each in (x, y)])


@pytest.mark.parametrize(
    ("side", "deep", "batch", "wide"),
    [(512, 512, 1, False), (1024, 1024, 1, False), (2048, 2048, 1, True),
     (NARROW_TILE_SIDE + 1, 2 * LONG, 96, True), (NARROW_TILE_SIDE, 2 * LONG, 96, False),
     (NARROW_TILE_SIDE + 1, 2 * LONG - 1, 96, False), (NARROW_TILE_SIDE + 1, 2 * LONG, 95, False)],
)  # fmt: skip
def test_lengths_choose(side, deep, batch, wide):
    b, c = geon.Axis("B", batch), geon.Axis("C", deep)
    n, m = (geon.Axis(name, side) for name in "NM")
    pair = geon.placeholder([b, n, c]), geon.placeholder([b, c, m])
    with geon.make_transformer("cuda-on-host") as cuda:
        source = cuda.computation(geon.dot(*pair, over=[c]), *pair).source
    tiles = large_tiles("float32")
    assert tiles is not None
    assert (f"sums[{tiles.high}][{tiles.wide}]" in source) == wide
    assert ("sums[8][4]" in source or "sums[4][4]" in source) != wide


def test_only_float32_has_them():
    """Large tiles of halves are others."""
    assert large_tiles("float64") is None and not large_tiles("float32").staged
    assert large_tiles("float16").staged and large_tiles("bfloat16").staged
