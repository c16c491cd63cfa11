"""Rows that are few and long have several blocks each, and the bits of any plan."""

import numpy as np
import pytest

import geon
from geon.transformers.pycuda.kernels.split_row_reduction import LONG, holds
from geon.transformers.pycuda.launches.launch_ir import WANTED, Choice, Grids, Parts
from geon.transformers.pycuda.runtime import host
from geon.transformers.pycuda.runtime.pinned_buffers import bytes_of_result

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
R, C = geon.Axis("R"), geon.Axis("C")
SHAPES = [(3, LONG - 1), (3, LONG), (3, LONG + 1), (1, LONG + 2), (2, 3 * LONG + 4), (40, 7)]


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


def launched(f):
    """The launches that have as many blocks as there are parts of rows."""
    steps = list(f.stages().compiled.module.steps)
    steps = [s for step in steps for s in (step.steps if isinstance(step, Choice) else [step])]
    grids = [s.grid.grids if isinstance(s.grid, Grids) else [s.grid] for s in steps]
    return [grid for each in grids for grid in each if grid.parts is not None]


@pytest.mark.parametrize("name", graphs(geon.placeholder([R, C])))
@pytest.mark.parametrize("known", [False, True])
def test_rows_are_those_of_numpy(known, name):
    with geon.make_transformer("cuda-on-host") as cuda, geon.NumPyTransformer() as numpy:
        for shape in SHAPES:
            axes = [geon.Axis(a.name, n) for a, n in zip((R, C), shape, strict=True)]
            x = geon.placeholder(axes if known else [R, C], name="x")
            f, g = (each.computation(graphs(x)[name], x) for each in (cuda, numpy))
            assert bool(launched(f)) == (not known or (shape[0] > 1 and shape[1] > LONG))
            apart = cuda.computation(graphs(x)[name], x, plan=False)
            given = numbers(shape)
            found = [listed(each(given)) for each in (f, g, apart)]
            for a, b, c in zip(*found, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
                assert a.tobytes() == c.tobytes()


def test_rows_are_cut_where_they_are_few():
    for rows in (WANTED // 2 - 1, WANTED // 2, WANTED // 2 + 1):
        parts = Parts(LONG + 1, rows, WANTED, LONG)
        cut = all(size >= 0 for size in holds(parts))
        assert cut == (rows <= WANTED // 2) == (parts.number({}) > 1)
    for count in (LONG - 1, LONG, LONG + 1, 2 * LONG, 2 * LONG + 1):
        parts = Parts(count, 2, WANTED, LONG)
        assert parts.number({}) == -(-count // LONG)
        assert all(size >= 0 for size in holds(parts)) == (count > LONG)


def test_no_races():
    x = geon.placeholder([R, C], name="x")
    with geon.make_transformer("cuda-on-host", checks="races") as transformer:
        for graph in graphs(x).values():
            transformer.computation(graph, x)(numbers((2, LONG + 3)))


def test_peak_has_the_parts():
    x = geon.placeholder([R, C], name="x")
    with geon.make_transformer("cuda-on-host") as transformer:
        f = transformer.computation(geon.sum(x, C), x)
        few = f.peak_bytes({"R": 4, "C": LONG})
        assert f.peak_bytes({"R": 4, "C": 3 * LONG}) - few == 256  # 4 rows of 3 parts of 8 bytes
        many = f.peak_bytes({"R": WANTED, "C": 3 * LONG})
        assert many - few == bytes_of_result(4 * WANTED) - bytes_of_result(4 * 4)  # and no parts
