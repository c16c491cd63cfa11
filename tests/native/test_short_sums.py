"""Products over a few summed indices: sums of their terms in loops where these take less time."""

import numpy as np
import pytest

import geon
from geon.transformers.kernels.ir.nest import Nest

# By letters: left, right, lengths, and whether loops compute it.
CASES = {
    "few rows, long columns": ("NK", "KM", {"N": 3, "M": 9001, "K": 2}, True),
    "columns apart, few rows": ("NK", "MK", {"N": 8, "M": 4001, "K": 4}, True),
    "columns apart, more rows": ("NK", "MK", {"N": 9, "M": 4001, "K": 4}, False),
    "one column": ("NK", "KM", {"N": 17001, "M": 1, "K": 3}, True),
    "few columns": ("NK", "KM", {"N": 9001, "M": 3, "K": 3}, True),
    "few columns of turned rows": ("KN", "KM", {"N": 9001, "M": 3, "K": 3}, False),
    "columns of a vector": ("NK", "KM", {"N": 9001, "M": 8, "K": 3}, False),
    "many small products": ("BNK", "BKM", {"B": 1500, "N": 4, "M": 4, "K": 4}, True),
    "two summed axes": ("NKL", "KLM", {"N": 150, "M": 200, "K": 2, "L": 2}, True),
    "a longer sum": ("NK", "KM", {"N": 150, "M": 200, "K": 5}, False),
    "little": ("NK", "KM", {"N": 20, "M": 40, "K": 2}, False),
}


def whole(generator, axes, lengths):
    """Small integers, of which every sum is exact in float32."""
    shape = [lengths[name] for name in axes]
    return generator.integers(-8, 9, size=shape).astype(np.float32)


def product(name, opened=""):
    """The product of a case, and what it is of."""
    left, right, lengths, _ = CASES[name]
    axes = {n: geon.Axis(n) if n in opened else geon.Axis(n, lengths[n]) for n in lengths}
    x, y = (geon.placeholder([axes[n] for n in each]) for each in (left, right))
    return geon.dot(x, y, over=[axes[n] for n in left if n in right and n != "B"]), x, y


def test_short_sums_are_loops_where_these_take_less_time():
    with geon.NativeTransformer(threads=1) as transformer:
        for name, (*_, loops) in CASES.items():
            (kernel,) = transformer.computation(*product(name)).plan.schedule.kernels
            assert isinstance(kernel.work, Nest) == loops, name


def test_what_is_checked_is_named_as_it_was_written():
    made, x, y = product("few columns")
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation(made, x, y, check="nan")
        with pytest.raises(geon.NonFiniteError, match=r"^dot\("):
            f(np.full((9001, 3), 3e38), np.full((3, 3), 10.0))


def test_short_sums_are_right():
    generator = np.random.default_rng(1)
    made = [(name, product(name)) for name in CASES]
    made += [(name, product(name, "N")) for name in ("few columns", "two summed axes")]
    fed, wanted = [], []
    for name, (result, *_) in made:
        left, right, lengths, _ = CASES[name]
        a, b = (whole(generator, each, lengths) for each in (left, right))
        kept = "".join(axis.name for axis in result.axes)
        wanted.append(np.einsum(f"{left},{right}->{kept}", a, b))
        fed += [a, b]
    with geon.NativeTransformer(threads=2) as transformer:
        for fixed in (slice(0, len(CASES)), slice(len(CASES), -1), slice(len(made) - 1, None)):
            chosen = made[fixed]
            placeholders = [each for _, (_, *two) in chosen for each in two]
            f = transformer.computation([result for _, (result, *_) in chosen], *placeholders)
            given = fed[2 * fixed.start : 2 * (fixed.start + len(chosen))]
            for found, right in zip(f(*given), wanted[fixed], strict=True):
                np.testing.assert_array_equal(found, right)


def test_what_is_around_a_short_sum_is_computed_with_it():
    n, k, m = geon.Axis("N", 5000), geon.Axis("K", 2), geon.Axis("M", 64)
    x, w, b = geon.placeholder([n, k]), geon.placeholder([k, m]), geon.placeholder([m])
    made = geon.mean(geon.square(geon.dot(x, w) + b), m)
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation(made, x, w, b)
        generator = np.random.default_rng(2)
        a, c, d = (generator.standard_normal(s, np.float32) for s in ((5000, 2), (2, 64), (64,)))
        wanted = np.square(a.astype(float) @ c + d).mean(1)
        np.testing.assert_allclose(f(a, c, d), wanted, rtol=2e-6)
        assert len(f.plan.schedule.kernels) == 1
