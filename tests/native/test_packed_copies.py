"""Packed copies of what stays as it is: made once, made again when a variable was written."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import geon
from geon.transformers.native.toolchain.compilers import find_toolchain

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

N, K, H = geon.Axis("N"), geon.Axis("K", 70), geon.Axis("H", 100)
RANDOM = np.random.default_rng(1)
X = RANDOM.standard_normal((50, 70)).astype(np.float32)
W = RANDOM.standard_normal((70, 100)).astype(np.float32)


@pytest.fixture(params=[1, 3], ids="{} threads".format)
def transformer(request):
    with geon.make_transformer("native", threads=request.param) as made:
        yield made


@pytest.fixture
def weights(transformer):
    """A variable, set."""
    w = geon.Variable([K, H], name="w")
    transformer.set(w, W)
    return w


def layer(transformer, weight):
    x = geon.placeholder([N, K])
    return transformer.computation(geon.relu(geon.dot(x, weight)), x)


def packed_bytes(f):
    """The bytes of the weights in panels, which are two vectors of float32 wide."""
    panel = 2 * f.plan.vector_bytes // 4
    return -(-100 // panel) * panel * 70 * 4


def near(got, wanted):
    np.testing.assert_allclose(got, np.maximum(wanted, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 11, 12, 33, 50, 480, 481, 4096, 4097])
def test_any_number_of_rows_with_one_program(transformer, weights, rows):
    f = layer(transformer, weights)
    x = RANDOM.standard_normal((rows, 70)).astype(np.float32)
    for _ in range(3):
        near(f(x), x @ W)
    works = sum(b.bytes({"N": rows}, transformer.threads) for b in f.plan.buffers)
    copy = f.peak_bytes({N: rows}) - rows * 400 - works
    assert all(buffer.scratch for buffer in f.plan.buffers)
    assert copy == (packed_bytes(f) if 12 <= rows <= 4096 else 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_high_and_low_tiles_cover_and_some_that_none_do(transformer, dtype):
    x = geon.placeholder([N, K], dtype)
    w = geon.Variable([K, H], dtype=dtype)
    f = transformer.computation(geon.dot(x, w), x)
    transformer.set(w, W.astype(dtype))
    data = RANDOM.standard_normal((62, 70)).astype(dtype)
    wanted = data @ W.astype(dtype)
    for rows in range(1, 63):
        np.testing.assert_allclose(f(data[:rows]), wanted[:rows], rtol=1e-4, atol=1e-4)


def test_all_numbers_of_rows_share_one_copy(transformer, weights):
    f = layer(transformer, weights)
    for rows in (40, 41, 300, 40, 7, 41):
        x = RANDOM.standard_normal((rows, 70)).astype(np.float32)
        near(f(x), x @ W)
    program = f.stages().compiled
    held = [copies.memory.nbytes for copies in program.copies.values()]
    lines = -(-packed_bytes(f) // 64)
    assert sorted(held) == [0, lines * 64]


def test_a_variable_that_is_set_is_packed_again(transformer, weights):
    f = layer(transformer, weights)
    near(f(X), X @ W)
    for factor in (2, 3):
        transformer.set(weights, factor * W)
        near(f(X), factor * X @ W)


def test_training_between_two_calls(transformer, weights):
    f = layer(transformer, weights)
    train = transformer.computation(geon.assign(weights, weights * 2))
    both = transformer.computation(
        geon.sequential([geon.assign(weights, weights + 1), geon.sum(weights)])
    )
    near(f(X), X @ W)
    train()
    near(f(X), X @ (2 * W))
    both()
    near(f(X), X @ (2 * W + 1))


def test_a_restored_variable(transformer, weights, tmp_path):
    f = layer(transformer, weights)
    transformer.save(tmp_path / "w.safetensors")
    transformer.set(weights, -W)
    near(f(X), X @ -W)
    transformer.restore(tmp_path / "w.safetensors")
    near(f(X), X @ W)


def test_a_computation_that_writes_the_variable_keeps_none(transformer, weights):
    x = geon.placeholder([N, K])
    y = geon.dot(x, weights)
    f = transformer.computation(geon.sequential([geon.assign(weights, weights * 2), y]), x)
    assert not f.plan.kept
    np.testing.assert_allclose(f(X), X @ (2 * W), rtol=1e-4, atol=1e-4)


def test_constants_and_what_is_computed_of_them(transformer, weights):
    x = geon.placeholder([N, K])
    other = geon.constant(W[::-1].copy(), [K, H])
    f = transformer.computation(
        [geon.dot(x, other), geon.dot(x, geon.tanh(weights)), geon.dot(x, other + weights)], x
    )
    for factor in (1, 2):
        transformer.set(weights, factor * W)
        wanted = [X @ W[::-1], X @ np.tanh(factor * W), X @ (W[::-1] + factor * W)]
        for got, right in zip(f(X), wanted, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-3)
    assert sorted(kept.constant for kept in f.plan.kept.values())[-1]


@pytest.mark.parametrize("order", ["khb", "bhk", "kbh"])
def test_batches_and_transposed_weights(transformer, order):
    axes = {"k": K, "h": H, "b": geon.Axis("B", 3)}
    w = geon.Variable([axes[name] for name in order], dtype="float64")
    values = RANDOM.standard_normal([{"k": 70, "h": 100, "b": 3}[name] for name in order])
    x = geon.placeholder([axes["b"], N, K], dtype="float64")
    data = RANDOM.standard_normal((3, 60, 70))
    y = geon.dot(x, w, over=[K])
    f = transformer.computation(geon.reorder(y, [axes["b"], N, H]), x)
    transformer.set(w, values)
    for _ in range(2):
        np.testing.assert_allclose(
            f(data), np.einsum(f"bnk,{order}->bnh", data, values), rtol=1e-10, atol=1e-10
        )


def test_long_sums_in_several_blocks(transformer):
    k, h = geon.Axis("K", 900), geon.Axis("H", 300)
    w, x = geon.Variable([k, h]), geon.placeholder([N, k])
    values = RANDOM.standard_normal((900, 300)).astype(np.float32)
    data = RANDOM.standard_normal((130, 900)).astype(np.float32)
    f = transformer.computation(geon.dot(x, w), x)
    transformer.set(w, values)
    for _ in range(2):
        np.testing.assert_allclose(f(data), data @ values, rtol=1e-3, atol=1e-3)


def test_packing_changes_no_bit(transformer, weights):
    x, other = geon.placeholder([N, K]), geon.placeholder([K, H])
    kept = transformer.computation(geon.dot(x, weights), x)
    fresh = transformer.computation(geon.dot(x, other), x, other)
    assert kept.plan.kept and not fresh.plan.kept
    assert kept(X).tobytes() == kept(X).tobytes() == fresh(X, W).tobytes()


def test_a_c_function_works_without_the_table(transformer, weights):
    f = layer(transformer, weights)
    c = f.c_function
    assert [p.kind for p in c.pointers][-1] == "kept"
    table = c.table(X)
    for pointer in (table.pointers[len(c.pointers) - 1], None):
        table.pointers[len(c.pointers) - 1] = ctypes.c_void_p(pointer)
        assert table.run() == 0
        near(table.results[0], X @ W)


@pytest.mark.parametrize("channels", [16, 64])
def test_a_product_that_changes_sides_keeps_no_copy_of_the_other_operand(transformer, channels):
    """Windows whose packing would turn them are the right operand, and differ in each call.

    That is so for 64 channels, for which the plan has no copy.
    """
    c, h, w = geon.Axis("C", channels), geon.Axis("Y", 18), geon.Axis("X", 18)
    r, s, out = geon.Axis("R", 3), geon.Axis("S", 3), geon.Axis("O", 70)
    weight = geon.Variable([c, r, s, out], name="weight")
    values = RANDOM.standard_normal((channels, 3, 3, 70)).astype(np.float32)
    transformer.set(weight, values)
    x = geon.placeholder([c, h, w])
    windows = geon.window(x, {h: geon.Window(r), w: geon.Window(s)})
    f = transformer.computation(geon.dot(windows, weight, over=[c, r, s]), x)
    assert bool(f.plan.kept) == (channels == 16)
    for _ in range(3):
        given = RANDOM.standard_normal((channels, 18, 18)).astype(np.float32)
        shown = np.lib.stride_tricks.sliding_window_view(given, (3, 3), axis=(1, 2))
        want = np.einsum("chwrs,crso->hwo", shown, values)
        np.testing.assert_allclose(f(given), want, rtol=1e-3, atol=1e-3)


def thrice(step, x):
    """A step taken three times, by a while loop and by a scan."""
    limit = 3 * geon.sum(x)
    by_while = geon.while_loop(lambda c: geon.sum(c) <= limit, step, x, 3)
    by_scan, _ = geon.scan(lambda c, _: (step(c), None), x, over=geon.Axis("T", 3))
    return by_while, by_scan


@pytest.mark.parametrize("rows", [None, 50])
def test_products_by_a_constant_in_bodies_take_no_copy_of_another_product(transformer, rows):
    kept, (n, k) = geon.Variable([K, H], name="w"), (geon.Axis("N", rows), geon.Axis("I", 64))
    transformer.set(kept, W)
    x, other = geon.placeholder([n, k]), geon.placeholder([N, K])
    everywhere = geon.broadcast(1 / 64, [k, geon.Axis("J", 64)])

    def step(c):
        return geon.rename(geon.dot(c, everywhere), {"J": k})

    branch = geon.cond(geon.sum(x) > 0, lambda: step(x), lambda: x)
    results = [branch, *thrice(step, x), geon.relu(geon.dot(other, kept))]
    given = RANDOM.integers(1, 9, size=(50, 64)).astype(np.float32)
    f = transformer.computation(results, x, other)
    for _ in range(2):
        *found, product = f(given, X)
        for each in found:
            near(each, np.repeat(given.mean(1, keepdims=True), 64, axis=1))
        near(product, X @ W)
