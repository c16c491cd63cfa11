"""Rows that are few and long have several blocks each, and the bits of any plan."""

import numpy as np
import pytest

import geon
from geon.transformers.pycuda.kernels.split_reductions import (
    COLUMN_TEAM,
    ELEMENTS_PER_BLOCK,
    division_of,
)
from geon.transformers.pycuda.launches.launch_ir import (
    FULL_DEVICE_BLOCKS,
    MIN_PART_TURNS,
    Grids,
    LaunchVariants,
)
from geon.transformers.pycuda.runtime import host
from geon.transformers.pycuda.runtime.pinned_buffers import bytes_of_result
from tests.golden.emitting import Cuda

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
R, C = geon.Axis("R"), geon.Axis("C")
SHAPES = [
    (3, ELEMENTS_PER_BLOCK - 1),
    (3, ELEMENTS_PER_BLOCK),
    (3, ELEMENTS_PER_BLOCK + 1),
    (1, ELEMENTS_PER_BLOCK + 2),
    (2, 3 * ELEMENTS_PER_BLOCK + 4),
    (40, 7),
]


def graphs(x):
    column = x.axes[1]
    most = geon.max(x, reduction_axes=column)
    return {
        "sums": [geon.mean(geon.square(x), column) * 2 + most, geon.any(x > 3, column)],
        "total": geon.sum(geon.cast(x, "int32"), column),
    }


def numbers(shape):
    found = np.random.default_rng(shape[1]).normal(size=shape).astype(np.float32)
    found.reshape(-1)[::5] = np.round(found.reshape(-1)[::5])
    return found


def listed(results):
    """The results, also where there is one."""
    return results if isinstance(results, (list, tuple)) else [results]


def launched(f, rows):
    """The launches that have as many blocks as there are parts of rows."""
    steps = list(f.stages().compiled.module.steps)
    steps = [
        s for step in steps for s in (step.steps if isinstance(step, LaunchVariants) else [step])
    ]
    grids = [s.grid.grids if isinstance(s.grid, Grids) else [s.grid] for s in steps]
    return [grid for each in grids for grid in each if in_parts(grid, rows)]


def in_parts(grid, rows):
    """Whether a grid has several blocks for each row."""
    return grid.parts is not None or (isinstance(grid.units, int) and grid.blocks({}) > rows)


@pytest.mark.parametrize("name", graphs(geon.placeholder([R, C])))
@pytest.mark.parametrize("known", [False, True])
def test_rows_are_those_of_numpy(known, name):
    with geon.make_transformer("cuda-on-host") as cuda, geon.NumPyTransformer() as numpy:
        for shape in SHAPES:
            axes = [geon.Axis(a.name, n) for a, n in zip((R, C), shape, strict=True)]
            x = geon.placeholder(axes if known else [R, C], name="x")
            f, g = (each.computation(graphs(x)[name], x) for each in (cuda, numpy))
            assert bool(launched(f, shape[0])) == (not known or shape[1] > ELEMENTS_PER_BLOCK)
            apart = cuda.computation(graphs(x)[name], x, plan=False)
            given = numbers(shape)
            found = [listed(each(given)) for each in (f, g, apart)]
            for a, b, c in zip(*found, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
                assert a.tobytes() == c.tobytes()


def sums_of(rows, count):
    """The nest of the sums of rows."""
    x = geon.placeholder([geon.Axis("R", rows), geon.Axis("C", count)])
    (kernel,) = Cuda().computation(geon.sum(x, "C"), x).plan.schedule.kernels
    return kernel.work


def test_rows_are_cut_where_they_are_few():
    for rows in (FULL_DEVICE_BLOCKS // 2 - 1, FULL_DEVICE_BLOCKS // 2, FULL_DEVICE_BLOCKS // 2 + 1):
        division = division_of(sums_of(rows, ELEMENTS_PER_BLOCK + 1))
        assert (division is not None) == (rows <= FULL_DEVICE_BLOCKS // 2)
        assert division is None or division.counts == [FULL_DEVICE_BLOCKS // rows]
    for count in (
        ELEMENTS_PER_BLOCK - 1,
        ELEMENTS_PER_BLOCK,
        ELEMENTS_PER_BLOCK + 1,
        2 * ELEMENTS_PER_BLOCK,
        2 * ELEMENTS_PER_BLOCK + 1,
    ):
        division = division_of(sums_of(2, count))
        assert (division is not None) == (count > ELEMENTS_PER_BLOCK)
        assert division is None or division.counts == [-(-count // ELEMENTS_PER_BLOCK)]


@pytest.mark.parametrize("columns", [32, 64])
def test_columns_are_cut_where_they_are_few(columns):
    """Products of integers sum along columns of a nest; one part is no launch of its own."""
    rows, terms = (geon.Axis(name, n) for name, n in (("R", 256), ("C", MIN_PART_TURNS + 1)))
    x = geon.placeholder([terms, rows], "int32", name="x")
    y = geon.placeholder([geon.Axis("M", columns), terms], "int32", name="y")
    f = Cuda().computation(geon.dot(x, y, over=[terms]), x, y)
    (kernel,) = f.plan.schedule.kernels
    cut = columns * rows.length // COLUMN_TEAM.beside <= FULL_DEVICE_BLOCKS // 2
    assert (division_of(kernel.work) is not None) == cut
    assert f.source.count("__global__") == 1 + cut


def test_no_races():
    x = geon.placeholder([R, C], name="x")
    with geon.make_transformer("cuda-on-host", checks="races") as transformer:
        for graph in graphs(x).values():
            transformer.computation(graph, x)(numbers((2, ELEMENTS_PER_BLOCK + 3)))


def test_peak_has_the_parts():
    x = geon.placeholder([R, C], name="x")
    with geon.make_transformer("cuda-on-host") as transformer:
        f = transformer.computation(geon.sum(x, C), x)
        few = f.peak_bytes({"R": 4, "C": ELEMENTS_PER_BLOCK})
        assert (
            f.peak_bytes({"R": 4, "C": 3 * ELEMENTS_PER_BLOCK}) - few == 256
        )  # 4 rows of 3 parts of 8 bytes
        many = f.peak_bytes({"R": FULL_DEVICE_BLOCKS, "C": 3 * ELEMENTS_PER_BLOCK})
        assert many - few == bytes_of_result(4 * FULL_DEVICE_BLOCKS) - bytes_of_result(
            4 * 4
        )  # and no parts
