"""Large tiles of halves, at sizes at which tests can have them: however operands lie and end."""

import itertools

import numpy as np
import pytest

import geon
from geon.transformers.pycuda.products import large_products, product_forms, product_tiles
from geon.transformers.pycuda.runtime import host
from geon.transformers.pycuda.runtime.nvrtc import by_nvcc, find_nvcc

from .devices import in_stages, transformer_on
from .test_products import AXES, ORDERS, made, numbers, operands

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
ROWS, COLUMNS, STEP = (
    product_tiles.STAGED_ROWS,
    product_tiles.STAGED_COLUMNS,
    product_tiles.STAGED_DEPTH,
)
NEAR = {"float16": 1e-3, "bfloat16": 8e-3}
LENGTHS = [
    {"N": n, "C": c, "M": m, "B": 2}
    for n, c, m in (
        (1, 1, 1),
        (9, 8, 7),
        (ROWS, STEP, COLUMNS),
        (ROWS - 1, STEP - 8, COLUMNS - 1),
        (ROWS + 8, 3 * STEP + 8, COLUMNS + 8),
        (2 * ROWS + 1, 5 * STEP + 1, COLUMNS + 1),
    )
]
BANDS = [
    {"N": (large_products.BAND_TILE_ROWS + more) * ROWS - 3, "C": 8, "M": COLUMNS + 8, "B": 2}
    for more in (-1, 0, 1)
]


@pytest.fixture
def small(monkeypatch):
    """Large tiles for products of any size."""
    monkeypatch.setattr(product_forms, "MIN_LARGE_TILES", 1)
    monkeypatch.setattr(product_forms, "MIN_STAGED", product_forms.LargeBounds(1, 1, 1))


@pytest.fixture
def cuda(small):
    """A transformer whose programs nobody else has compiled with other limits."""
    with transformer_on(host.HostDevice()) as made:
        yield made


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize(("left", "right"), ORDERS)
def test_operands_as_they_lie(dtype, left, right, cuda):
    x, y = operands(dtype, left, right)
    result = made(x, y)
    f = cuda.computation(result, x, y)
    assert "geon_multiply_in_steps" in f.source
    path = f"{left},{right}->{''.join(result.axes.names)}"
    for seed, lengths in enumerate(LENGTHS):
        given = [numbers(each, lengths, seed) for each in (x, y)]
        a, b = (each.astype(np.float64) for each in given)
        expected = np.maximum(np.einsum(path, a, b) + 1, 0)
        size = np.einsum(path, np.abs(a), np.abs(b)) + 1
        found = f(*given)
        assert found.shape == expected.shape and found.dtype == result.dtype
        wrong = np.abs(found.astype(np.float64) - expected)
        assert (wrong <= NEAR[dtype] * size).all(), (lengths, wrong.max())


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_stages_are_as_many_as_there_is_room_for(stages, small):
    """Two to four, of fewer steps, as many and more; and tiles in bands of rows."""
    device = in_stages(stages)
    x, y = operands("bfloat16", "NC", "CM")
    with transformer_on(device) as cuda:
        f = cuda.computation(geon.dot(x, y, over=[AXES["C"]]), x, y)
        for steps in range(1, 7):
            close(f, [x, y], {"N": 9, "C": STEP * steps, "M": 7})
        for lengths in BANDS:
            close(f, [x, y], lengths)


def close(f, inputs, lengths):
    """A product of halves is what it is in float64, but for rounding."""
    given = [numbers(each, lengths, 0) for each in inputs]
    a, b = (each.astype(np.float64) for each in given)
    wrong = np.abs(f(*given).astype(np.float64) - a @ b)
    assert (wrong <= NEAR["bfloat16"] * (np.abs(a) @ np.abs(b)) + 1e-30).all(), lengths


def test_axes_of_operands_may_be_several(cuda):
    """Rows over two axes, summed over two, whose lines do not adjoin in memory."""
    axes = {"P": 3, "Q": 5, "R": 6, "S": 16, "M": 40}
    p, q, r, s, m = (geon.Axis(*pair) for pair in axes.items())
    x = geon.placeholder([p, r, q, s], "bfloat16", name="x")
    y = geon.placeholder([r, s, m], "bfloat16", name="y")
    f = cuda.computation(geon.dot(x, y, over=[r, s]), x, y)
    assert "geon_multiply_in_steps" in f.source
    given = [numbers(each, axes, 3) for each in (x, y)]
    expected = np.einsum("prqs,rsm->pqm", *[each.astype(np.float64) for each in given])
    found = f(*given).astype(np.float64)
    assert np.abs(found - expected).max() <= 8e-3 * np.abs(expected).max()


def test_there_are_no_races(small):
    with geon.make_transformer("cuda-on-host", checks="races") as cuda:
        x, y = operands("float16", "NC", "CM")
        f = cuda.computation(made(x, y), x, y)
        f(*[numbers(each, LENGTHS[4], 0) for each in (x, y)])


@pytest.mark.parametrize("dtype", NEAR)
def test_lengths_choose(dtype):
    """Small products have small tiles, whether lengths are known or not."""
    x, y = operands(dtype, "NC", "CM")
    with geon.make_transformer("cuda-on-host") as cuda:
        source = cuda.computation(made(x, y), x, y).source
        assert "geon_multiply_in_steps" in source and "geon_multiply_matrices<geon_" in source
        for side, large in ((512, False), (2048, True)):
            n, c, m = (geon.Axis(name, side) for name in "NCM")
            pair = geon.placeholder([n, c], dtype), geon.placeholder([c, m], dtype)
            source = cuda.computation(geon.dot(*pair), *pair).source
            assert ("geon_multiply_in_steps" in source) == large
            assert ("geon_multiply_matrices<geon_" in source) != large


@pytest.mark.parametrize(
    ("n", "m", "large"),
    [
        (product_forms.MIN_STAGED.rows, product_forms.MIN_STAGED.columns, True),
        (product_forms.MIN_STAGED.rows - 1, product_forms.MIN_STAGED.columns, False),
        (product_forms.MIN_STAGED.rows, product_forms.MIN_STAGED.columns - 1, False),
    ],
)
def test_a_batch_of_small_matrices_has_small_tiles(n, m, large):
    b, c = geon.Axis("B", 192), geon.Axis("C", product_forms.MIN_STAGED.terms)
    n, m = geon.Axis("N", n), geon.Axis("M", m)
    pair = geon.placeholder([b, n, c], "float16"), geon.placeholder([b, c, m], "float16")
    with geon.make_transformer("cuda-on-host") as cuda:
        source = cuda.computation(geon.dot(*pair, over=[c]), *pair).source
        assert ("geon_multiply_in_steps<" in source) == large


@pytest.mark.parametrize(
    ("n", "c", "m", "large"),
    [
        (product_forms.MIN_LARGE_TILES * ROWS, product_forms.MIN_STAGED.terms, COLUMNS, True),
        (product_forms.MIN_LARGE_TILES * ROWS, product_forms.MIN_STAGED.terms - 1, COLUMNS, False),
        (
            (product_forms.MIN_LARGE_TILES - 1) * ROWS,
            product_forms.MIN_STAGED.terms,
            COLUMNS,
            False,
        ),
        (
            (product_forms.MIN_LARGE_TILES - 1) * ROWS + 1,
            product_forms.MIN_STAGED.terms,
            COLUMNS,
            True,
        ),
        (
            product_forms.MIN_LARGE_TILES // 2 * ROWS,
            product_forms.MIN_STAGED.terms,
            COLUMNS + 1,
            True,
        ),
    ],
)
def test_from_where_on_tiles_are_large(n, c, m, large):
    n, c, m = (geon.Axis(*each) for each in zip("NCM", (n, c, m), strict=True))
    pair = geon.placeholder([n, c], "float16"), geon.placeholder([c, m], "float16")
    with geon.make_transformer("cuda-on-host") as cuda:
        source = cuda.computation(geon.dot(*pair), *pair).source
        assert ("geon_multiply_in_steps<" in source) == large


@pytest.mark.slow
@pytest.mark.skipif(find_nvcc() is None, reason="there is no nvcc")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_large_tiles_compile(architecture, small):
    """Also as groups of warps multiply, which no device of tests does."""
    with geon.make_transformer("cuda-on-host") as cuda:
        for dtype, (left, right) in itertools.product(NEAR, ORDERS[:4]):
            x, y = operands(dtype, left, right)
            source = cuda.computation(geon.dot(x, y, over=[AXES["C"]]), x, y).source
            assert by_nvcc(source, architecture).startswith(b"\x7fELF")
