"""Products at lengths around those of tiles, chunks and parts, however operands lie."""

import itertools

import numpy as np
import pytest

import geon
from geon.transformers.pycuda.launches import launch_ir
from geon.transformers.pycuda.products import contractions, product_tiles
from geon.transformers.pycuda.runtime.host import find_compiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler")
DTYPES = {"float32": 2e-6, "float64": 1e-12, "float16": 1e-3, "bfloat16": 8e-3, "int64": 0}
AXES = {name: geon.Axis(name) for name in "BNCM"}
ORDERS = [(left, right) for left in ("NC", "CN") for right in ("CM", "MC")]
ORDERS += [("BNC", "BCM"), ("NBC", "MBC")]
LENGTHS = [
    {"N": n, "C": c, "M": m, "B": 2}
    for n, c, m in (
        (1, 1, 1),
        (0, 3, 2),
        (3, 0, 2),
        (9, 8, 7),
        (16, 16, 8),
        (
            product_tiles.NARROW_TILE_SIDE - 1,
            product_tiles.DEFAULT_TILE_DEPTH,
            product_tiles.NARROW_TILE_SIDE + 1,
        ),
        (
            product_tiles.TALL_TILE_ROWS,
            2 * product_tiles.DEFAULT_TILE_DEPTH,
            product_tiles.WIDE_TILE_COLUMNS,
        ),
        (
            product_tiles.TALL_TILE_ROWS + 1,
            3 * product_tiles.DEFAULT_TILE_DEPTH + 1,
            product_tiles.WIDE_TILE_COLUMNS + 1,
        ),
        (8, launch_ir.MIN_PART_TURNS, 24),
        (8, launch_ir.MIN_PART_TURNS + 1, 24),
        (33, 2 * launch_ir.MIN_PART_TURNS + 8, 65),
        (5, contractions.MAX_SERIAL_TERMS * 24 + 5, 11),
    )
]


def operands(dtype, left, right):
    """Both operands as placeholders, with axes in these orders."""
    return [
        geon.placeholder([AXES[name] for name in order], dtype, name=f"p{k}")
        for k, order in enumerate((left, right))
    ]


def numbers(x, lengths, seed):
    """Small numbers for a placeholder, as it lies."""
    shape = [lengths[axis.name] for axis in x.axes]
    found = np.random.default_rng(seed).normal(size=shape)
    return (found * 3).astype(x.dtype) if x.dtype.kind == "i" else found.astype(x.dtype)


def made(x, y):
    """A product with something done to it, over C."""
    return geon.relu(geon.dot(x, y, over=[AXES["C"]]) + 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("left", "right"), ORDERS)
def test_operands_as_they_lie(dtype, left, right):
    x, y = operands(dtype, left, right)
    exact = dict.fromkeys(("float32", "float16", "bfloat16"), np.float64).get(dtype, x.dtype)
    with geon.make_transformer("cuda-on-host") as cuda:
        f = cuda.computation(made(x, y), x, y)
        for seed, lengths in enumerate(LENGTHS):
            given = [numbers(each, lengths, seed) for each in (x, y)]
            result = made(x, y)
            path = f"{left},{right}->{''.join(result.axes.names)}"
            a, b = (each.astype(exact) for each in given)
            expected = np.maximum(np.einsum(path, a, b) + 1, 0)
            size = np.einsum(path, np.abs(a), np.abs(b)) + 1
            found = f(*given)
            assert found.shape == expected.shape and found.dtype == result.dtype
            wrong = np.abs(found.astype(exact) - expected)
            assert (wrong <= DTYPES[dtype] * size).all(), (lengths, wrong.max())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_take_tensor_cores(dtype):
    x, y = operands(dtype, "NC", "CM")
    with geon.make_transformer("cuda-on-host") as cuda:
        for graph in (made(x, y), made(geon.relu(x), y)):
            assert f"geon_multiply_matrices<geon_{dtype}" in cuda.computation(graph, x, y).source
        z = operands("float32", "NC", "CM")[0]
        mixed = geon.dot(z, geon.cast(y, "float32"))
        assert "geon_multiply_tiles" in cuda.computation(mixed, z, y).source


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_what_is_not_finite_stays(dtype):
    x, y = operands(dtype, "NC", "CM")
    given = [numbers(each, {"N": 20, "C": 40, "M": 30}, 0) for each in (x, y)]
    given[0][3, 5], given[0][7, 39], given[1][2, 9] = np.nan, np.inf, -np.inf
    with geon.make_transformer("cuda-on-host") as cuda:
        found = cuda.computation(geon.dot(x, y), x, y)(*given).astype(np.float64)
    with np.errstate(invalid="ignore"):
        expected = given[0].astype(np.float64) @ given[1].astype(np.float64)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_long_sums_are_cut_in_one_order(dtype):
    x, y = operands(dtype, "NC", "CM")
    f_launches = []
    with geon.make_transformer("cuda-on-host") as cuda:
        f = cuda.computation(geon.dot(x, y), x, y)
        assert "geon_add_up" in f.source or dtype == "bfloat16"
        for n, c in itertools.product(
            (4, 130), (launch_ir.MIN_PART_TURNS, 40 * launch_ir.MIN_PART_TURNS + 3)
        ):
            given = [numbers(each, {"N": n, "C": c, "M": 4}, c) for each in (x, y)]
            found = f(*given)
            np.testing.assert_array_equal(found, f(*given))
            f_launches.append(f.peak_bytes({AXES["N"]: n, AXES["C"]: c, AXES["M"]: 4}))
    assert f_launches[1] > 4 * f_launches[0]  # parts have memory of their own


def test_a_long_sum_of_equal_terms_is_right():
    C = geon.Axis("C")
    x = geon.placeholder([geon.Axis("N"), C], name="x")
    y = geon.placeholder([C, geon.Axis("M")], name="y")
    with geon.make_transformer("cuda-on-host") as cuda:
        f = cuda.computation(geon.dot(x, y), x, y)
        for length in (1 << 16, (1 << 18) + 7):
            given = np.full((2, length), 0.1, np.float32), np.full((length, 2), 0.3, np.float32)
            exact = length * float(given[0][0, 0]) * float(given[1][0, 0])
            np.testing.assert_allclose(f(*given), exact, rtol=1e-6)


@pytest.mark.parametrize(("dtype", "tf32"), [("float32", False), ("float16", False),
                                             ("float32", True)])  # fmt: skip
def test_products_have_no_races(dtype, tf32):
    with geon.make_transformer("cuda-on-host", checks="races", tf32=tf32) as cuda:
        for left, right in ORDERS[1:5:3]:
            x, y = operands(dtype, left, right)
            f = cuda.computation(made(x, y), x, y)
            for lengths in (LENGTHS[5], LENGTHS[10]):
                f(*[numbers(each, lengths, 0) for each in (x, y)])


@pytest.mark.parametrize(("left", "right"), ORDERS)
def test_tf32_is_asked_for(left, right):
    x, y = operands("float32", left, right)
    with geon.make_transformer("cuda-on-host", tf32=True) as cuda:
        f = cuda.computation(made(x, y), x, y)
        assert "geon_multiply_matrices<geon_tf32" in f.source
        for seed, lengths in enumerate(LENGTHS):
            given = [numbers(each, lengths, seed) for each in (x, y)]
            path = f"{left},{right}->{''.join(made(x, y).axes.names)}"
            rounded = [rounded_to_tf32(each).astype(np.float64) for each in given]
            expected = np.maximum(np.einsum(path, *rounded) + 1, 0)
            size = np.einsum(path, *map(np.abs, rounded)) + 1
            assert (np.abs(f(*given) - expected) <= 2e-6 * size).all(), lengths
    with geon.make_transformer("cuda-on-host") as cuda:
        assert "geon_tf32," not in cuda.computation(made(x, y), x, y).source


def rounded_to_tf32(x):
    """Floats with 10 bits behind the point, ties away from 0."""
    return ((x.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32)
