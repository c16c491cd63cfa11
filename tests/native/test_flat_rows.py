"""Short rows of open length whose elements are one loop: the results of NumPy."""

import functools

import numpy as np
import pytest

import geon
from geon.transformers.kernels.nests.short_row_variants import (
    MAX_COLLAPSED_ROW_BYTES,
    MIN_COLLAPSED_ROWS,
)

N, M = geon.Axis("N"), geon.Axis("M")


def patterns(x, row, turn):
    """What is the same in all rows, and truths that are the same in one."""
    return [x + turn, geon.maximum(x, turn) * 2, geon.broadcast(row > 1, x.axes)]


def repeated(x, row, turn):
    """What a row has, with little and with more that is done with it."""
    rational = 1 / (1 + x * row) + geon.sqrt(x * turn) / (turn + x + 1)
    return [x * row, geon.outer(geon.equal, row, turn), rational, geon.exp(x - row) + turn]


def slopes(x, row, turn):
    """A derivative that chooses: it is of some of the elements of each row."""
    y = geon.sum(1 / (1 + x[:, 1:2])) + geon.sum(geon.square(x[:, 0:2:2]))
    return [geon.deriv(y + geon.sum(geon.tanh(x)), x)]


def padded(x, row, turn):
    """Elements beside a border, by themselves and with what each row has."""
    y = geon.pad(x, {M: (1, 2)}, value=3)
    return [geon.tanh(y) / (2 + y) + geon.exp(-y) + geon.sigmoid(y), y * row]


def apart(x, row, turn):
    """Rows that do not adjoin in what is read, and turned ones."""
    y, z = x[:, 1:], geon.flip(x, M)
    return [geon.exp(y) / (1 + y), geon.exp(z) / (1 + z) + row, turn * 2]


def flattened(x, row, turn):
    """Rows that come of a flatten of turned columns."""
    y = geon.flatten(geon.reorder(x, [M, N]), [M, N], geon.Axis("F"))
    return [geon.tanh(geon.cast(y, "float64")), y]


GRAPHS = {
    patterns: ["float32", "int8"],
    repeated: ["float32", "float64"],
    slopes: ["float32"],
    padded: ["float32"],
    apart: ["float64"],
    flattened: ["float32", "int8"],
}
CASES = [(graph, dtype) for graph, dtypes in GRAPHS.items() for dtype in dtypes]


@functools.cache
def computations(graph, dtype):
    """The same by NumPy, by native on 1, 2 and 3 threads, and without a plan; what they take."""
    given = [geon.placeholder(axes, dtype=dtype) for axes in ([N, M], [N], [M])]
    results = graph(*given)
    below = {leaf for each in results for leaf in geon.op_graph.op_graph.post_order([each])}
    takes = [leaf in below for leaf in given]
    used = [leaf for leaf, taken in zip(given, takes, strict=True) if taken]
    natives = [
        geon.NativeTransformer(threads=threads).computation(results, *used) for threads in (1, 2, 3)
    ]
    natives.append(geon.NativeTransformer(threads=1).computation(results, *used, plan=False))
    return geon.NumPyTransformer().computation(results, *used), natives, takes


def lengths(dtype):
    """Lengths of a row around those at which another way is taken."""
    end = MAX_COLLAPSED_ROW_BYTES // np.dtype(dtype).itemsize
    return sorted({2, 3, 5, 8, *(end + k for k in (-1, 0, 1))})


@pytest.mark.parametrize(("graph", "dtype"), CASES)
def test_flat_rows_give_what_numpy_gives(graph, dtype):
    """Of few rows, of some that fill no tile, and of many tiles."""
    numpy, natives, takes = computations(graph, dtype)
    generator = np.random.default_rng(3)
    for length in lengths(dtype):
        for rows in (1, MIN_COLLAPSED_ROWS - 1, MIN_COLLAPSED_ROWS, 1031):
            shapes = [(rows, length), (rows,), (length,)]
            shapes = [shape for shape, taken in zip(shapes, takes, strict=True) if taken]
            data = [generator.choice(7, size=shape).astype(dtype) / 5 for shape in shapes]
            data = [(each * 5 if dtype == "int8" else each).astype(dtype) for each in data]
            first = [each.copy() for each in natives[0](*data)]
            for found, want in zip(first, numpy(*data), strict=True):
                np.testing.assert_allclose(found, want, 3e-6 if dtype == "float32" else 1e-13)
            for other in natives[1:]:
                for found, again in zip(first, other(*data), strict=True):
                    assert found.tobytes() == again.tobytes()


def asked(results, *given):
    """What is asked of the lengths before the only nest takes its rows as one; None of one that
    never does.
    """
    f = geon.NativeTransformer(threads=1).computation(results, *given)
    (work,) = [kernel.work for kernel in f.stages().plan.schedule.kernels]
    return None if work.short is None else work.shortness


def test_rows_that_fill_a_few_vectors_are_loops_of_their_own():
    """A call collapses shorter ones, unless all that it reads is as adjacent as what it stores."""
    x, row, turn = [geon.placeholder(axes) for axes in ([N, M], [N], [M])]
    columns = geon.placeholder([M, N])
    most = MAX_COLLAPSED_ROW_BYTES // 4 - M.expression
    assert most in asked([x + turn], x, turn)
    assert most in asked([x * row], x, row)
    assert most in asked([geon.reorder(columns, [N, M]) + row], columns, row)
    assert MAX_COLLAPSED_ROW_BYTES // 8 - M.expression in asked(
        [geon.cast(x, "float64") + turn], x, turn
    )
    assert asked([x + 1], x) is None  # one loop as it is


def test_rows_that_come_of_a_flatten_are_walked_as_one():
    turned = geon.placeholder([M, N], dtype="int8")
    y = geon.flatten(geon.reorder(turned, [N, M]), [N, M], geon.Axis("F"))
    most = MAX_COLLAPSED_ROW_BYTES // 4
    assert most - M.expression in asked([geon.tanh(geon.cast(y, "float32"))], turned)


@pytest.mark.parametrize("length", [2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33])
def test_known_lengths_give_what_numpy_gives(length):
    """What a row has, what a column has, and both."""
    n, m = geon.Axis("N"), geon.Axis("M", length)
    inputs, results = [], []
    dtypes = ["int8", "int16", "float32", "float64"]
    for dtype in dtypes:
        x, row, turn = [geon.placeholder(axes, dtype=dtype) for axes in ([n, m], [n], [m])]
        inputs += [x, row, turn]
        results += [x * row, x + turn, geon.outer(geon.multiply, row, turn)]
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(results, *inputs)
        for rows in (1, 31, 32, 33, 1000):
            given, wanted = [], []
            for dtype in dtypes:
                x = (np.arange(rows * length) % 7).reshape(rows, length).astype(dtype)
                row, turn = (np.arange(rows) % 5).astype(dtype), np.arange(length).astype(dtype)
                given += [x, row, turn]
                wanted += [x * row[:, None], x + turn, row[:, None] * turn]
            for got, want in zip(f(*given), wanted, strict=True):
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("length", [None, 3, 8])
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
def test_what_is_the_same_in_a_group_of_rows_is_made_once_for_each(length, dtype):
    """Values, and choices by an outer row's place beside that in a row."""
    n, k = geon.Axis("N"), geon.Axis("K", length)
    for rows in (None, MIN_COLLAPSED_ROWS - 1, MIN_COLLAPSED_ROWS, 256):
        m = geon.Axis("M", rows)
        x, y = (geon.placeholder(axes, dtype=dtype) for axes in ([n, m, k], [n, k]))
        end = geon.concat(
            [y[:, 1:], geon.broadcast(geon.cast(7, dtype), [n, geon.Axis("K", 1)])], k
        )
        with geon.NativeTransformer(threads=2) as transformer:
            f = transformer.computation([x * y, x + geon.rename(end, {end.axes[1]: k})], x, y)
            for many in [rows] if rows else [1, MIN_COLLAPSED_ROWS - 1, MIN_COLLAPSED_ROWS, 1000]:
                for size in (
                    [length]
                    if length
                    else [1, 2, 3, 5, 8, MAX_COLLAPSED_ROW_BYTES // 4, MAX_COLLAPSED_ROW_BYTES + 1]
                ):
                    a = (np.arange(3 * many * size) % 11).reshape(3, many, size).astype(dtype)
                    b = (np.arange(3 * size) % 5 + 1).reshape(3, size).astype(dtype)
                    shifted = np.concatenate([b[:, 1:], np.full((3, 1), 7, dtype)], 1)
                    product, total = f(a, b)
                    np.testing.assert_array_equal(product, a * b[:, None])
                    np.testing.assert_array_equal(total, a + shifted[:, None])


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64"])
@pytest.mark.parametrize("order", ["BAC", "CBA", "ACB"])
def test_open_short_rows_that_lie_apart_are_brought_beside_each_other(dtype, order):
    """Up to as many elements as are worth it, and one more; known lengths go as they did."""
    axes = {name: geon.Axis(name) for name in "ABC"}
    x = geon.placeholder(list(axes.values()), dtype=dtype)
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(geon.reorder(x, [axes[n] for n in order]) * 2, x)
        most = MAX_COLLAPSED_ROW_BYTES // x.dtype.itemsize
        if order == "BAC":
            assert f"+ {most} >= 0" in f.source
        for c in (1, 2, 3, most, most + 1, 17):
            for a, b in ((1, 70), (31, 5), (33, 65), (200, 3)):
                data = (np.arange(a * b * c) % 23).reshape(a, b, c).astype(dtype)
                expected = data.transpose(["ABC".index(n) for n in order]) * 2
                np.testing.assert_array_equal(f(data), expected)


@pytest.mark.parametrize("dtype", ["int8", "int16", "float64"])
@pytest.mark.parametrize("many", [33, 48, 64, 65])
def test_what_lies_behind_few_known_rows_of_open_length_stays(dtype, many):
    """A block of rows may have fewer than there are, however few these are."""
    a, b, c = geon.Axis("A"), geon.Axis("B", many), geon.Axis("C", 5)
    x = geon.placeholder([c, a, b], dtype=dtype)
    y = geon.placeholder([c, b], dtype=dtype)
    with geon.NativeTransformer(threads=2) as transformer:
        turned = geon.reorder(x, [c, b, a])
        f = transformer.computation([geon.flatten(turned, [b, a]), turned + turned], x)
        g = transformer.computation(turned * y, x, y)
        for length in (1, 2, 3, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65):
            data = (np.arange(5 * many * length) % 23).reshape(5, length, many).astype(dtype)
            scale = (np.arange(5 * many) % 3).reshape(5, many).astype(dtype)
            expected = data.transpose(0, 2, 1)
            room, size = 4096, data.nbytes
            memory = [np.full(2 * room + size, 0xAB, np.uint8) for _ in range(3)]
            inside = [each[room : room + size].view(dtype) for each in memory]
            outs = [
                inside[0].reshape(5, -1),
                *(each.reshape(expected.shape) for each in inside[1:]),
            ]
            f(data, out=outs[:2])
            g(data, scale, out=outs[2])
            wanted = [expected.reshape(5, -1), expected * 2, expected * scale[:, :, None]]
            for each, out, want in zip(memory, outs, wanted, strict=True):
                np.testing.assert_array_equal(out, want)
                assert (each[:room] == 0xAB).all() and (each[-room:] == 0xAB).all()


def test_elements_that_are_repeated_an_open_number_of_times_are_vectors():
    """Also where the first of them depends on a quotient, as rows of tasks have it."""
    n, a, b = geon.Axis("N"), geon.Axis("A"), geon.Axis("B", 3)
    x, z = geon.placeholder([n]), geon.placeholder([a])
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation(geon.broadcast(x, [b, n, a]), x, z)
        assert "_spread(" in f.source
        for rows in (1, 31, 32, 129, 1000):
            data = np.arange(rows, dtype=np.float32)
            for times in (1, 2, 3, 8, 15, 16, 17):
                found = f(data, np.zeros(times, np.float32))
                right = np.broadcast_to(data[None, :, None], (3, rows, times))
                np.testing.assert_array_equal(found, right)


def test_joined_rows_of_open_length_have_pieces_for_all_lengths():
    n, m = geon.Axis("N", 400), geon.Axis("M")
    x, v = geon.placeholder([n, m]), geon.placeholder([n])
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation(geon.concat([x, geon.broadcast(v, [n, m])], n), x, v)
        (kernel,) = f.stages().plan.schedule.kernels
        assert kernel.work.pieces and kernel.work.short is None
        for length in (1, 2, 5, 16, 17):
            data = np.random.default_rng(length).random((400, length), np.float32)
            row = np.arange(400, dtype=np.float32)
            right = np.concatenate([data, np.repeat(row[:, None], length, 1)])
            np.testing.assert_array_equal(f(data, row), right)
