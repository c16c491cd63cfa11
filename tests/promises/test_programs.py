"""What is said of programs: their lengths, lines, threads and kernels."""

import re

import numpy as np
import pytest
import xarray

import geon
from geon.transformers.kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from geon.transformers.native.toolchain.compilers import find_toolchain
from tests.places import here

N, A, B = geon.Axis("N"), geon.Axis("A"), geon.Axis("B", 8)
native_only = pytest.mark.parametrize("transformer_name", ["native"])
needs_compiler = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")


def test_lengths_bind_alone(transformer):
    """The program is that of every length, and no call of it has another."""
    x = geon.placeholder([N, B])
    f = transformer.computation(geon.softmax(x, N), x)
    bound = transformer.computation(geon.softmax(x, N), x, lengths={N: 3})
    data = np.arange(24, dtype=np.float32).reshape(3, 8)
    np.testing.assert_array_equal(f(data), bound(data))
    assert bound.linking.text == f.linking.text
    assert type(bound.peak_bytes()) is int
    for _ in range(2):
        with pytest.raises(geon.FeedError):
            bound(np.ones((4, 8)))
        assert f(np.ones((4, 8))).shape == (4, 8)
        bound(data)


def test_what_is_emitted_has_the_first_line_alone(transformer):
    x = geon.placeholder(N)
    y, first = geon.exp(x) * 2.5, here()
    before = transformer.computation(y, x)
    again, second = geon.exp(x) * 2.5, here()
    after = transformer.computation(again, x)
    assert again is y and first != second and y.file_info.endswith(first)
    assert after.source == before.source and after.explain("plan") == before.explain("plan")
    assert first in after.source and second not in after.source


@needs_compiler
@native_only
@pytest.mark.parametrize("part", [slice(1, None, 3), slice(None, None, -2), slice(0, -1, 5)])
def test_the_derivative_of_a_strided_slice_is_one_kernel(transformer, part):
    """It takes no memory but the result's, and reads no zeros."""
    x = geon.placeholder([B, A])
    y = geon.sum(geon.square(x[:, part]))
    f = transformer.computation(geon.deriv(y, x), x)
    assert len(f.plan.schedule.kernels) == 1 and f.plan.buffers == ()
    data = np.random.default_rng(0).normal(size=(8, 37)).astype(np.float32)
    expected = np.zeros_like(data)
    expected[:, part] = 2 * data[:, part]
    np.testing.assert_array_equal(f(data), expected)


def work_of(transformer, made, x):
    """What the C text says one element of a sum of few long rows takes: operations, rounded."""
    source = transformer.computation(geon.sum(made), x, specialize={A: 100_000}).source
    text = source.replace("work = ", "grain = geon_grain(size, ")  # of a loop over elements
    shown = r"size = (\d+)[,;]\s+(?:const int64_t )?grain = geon_grain\(size, (\d+)"
    ((parts, work),) = re.findall(shown, text)
    if int(parts) == 100_000:  # each element is a turn
        return int(work)
    block = MAX_SERIAL_TERMS * find_toolchain().vector_bytes // 4  # elements of a partial sum
    blocks = -(-100_000 // block)
    return round(int(work) / (block * -(-blocks // int(parts))))


@needs_compiler
@native_only
def test_how_a_sum_is_divided_follows_from_its_ops_and_not_from_the_text(transformer, monkeypatch):
    """An elementary function counts as eight, however long its name or its lines are."""
    x = geon.placeholder(A)
    plain = work_of(transformer, x * 3, x)
    for function in (geon.exp, geon.atanh, geon.log1p, geon.sigmoid):
        assert work_of(transformer, function(x), x) == plain - 1 + 8
    named = geon.multiply(x, 5.0, name="a_name_of_the_users_" * 9)
    assert work_of(transformer, named, x) == plain
    assert work_of(transformer, geon.exp(x) * 3 + geon.sin(x), x) == plain + 1 + 2 * 8


def test_the_number_of_threads_is_fixed(make):
    transformer = make()
    assert transformer.threads >= 1
    with pytest.raises(AttributeError):
        transformer.threads = 7
    if transformer.target.name == "native":
        assert geon.NativeTransformer(threads=3).threads == 3
    else:
        assert transformer.threads == 1


def test_what_xarray_does_with_a_tensor_on_the_right():
    """It leaves the operation to the tensor; a ``Dataset`` is no array on either side."""
    x = geon.placeholder(B, name="x")
    data = xarray.DataArray(np.ones(8), dims="B")
    assert (data * x).axes == (x * data).axes == x.axes
    for multiply in (lambda set_of: x * set_of, lambda set_of: set_of * x):
        with pytest.raises(geon.DTypeError, match="Dataset, which is no array"):
            multiply(xarray.Dataset({"b": data}))


@pytest.mark.parametrize("value", [[[1.0], [1.0, 2.0]], [1.0, [2.0]], [[], [1]]])
def test_a_ragged_list_is_no_array(value):
    with pytest.raises(geon.DTypeError, match="no rectangular array of numbers"):
        geon.constant(value, [A, B])


@needs_compiler
@native_only
def test_the_arena_of_a_c_function_is_for_its_threads(make, monkeypatch):
    x = geon.placeholder([N, B])
    with geon.NativeTransformer(threads=2) as transformer:
        c = transformer.computation(geon.sort(x, N), x).c_function
        one, two = (c.arena({N: 5000}, threads=n) for n in (1, 2))
        assert (one.threads, two.threads) == (1, 2) and one.bytes < two.bytes
        assert c.arena({N: 5000}) == two
        data = np.random.default_rng(0).random((5000, 8), np.float32)
        table, used = c.table(data), []
        run = table.bound.program.run
        monkeypatch.setattr(
            table.bound.program,
            "run",
            lambda p, n, threads, *rest: used.append(threads) or run(p, n, threads, *rest),
        )
        assert table.run(threads=64) == table.run() == 0 and used == [2, 1]
        np.testing.assert_array_equal(table.results[0], np.sort(data, 0))
