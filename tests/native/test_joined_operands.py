"""Operands of products that are joined of parts: each part is read where it alone is meant."""

import re

import numpy as np
import pytest

import geon

D, F = geon.Axis("D", 24), geon.Axis("F", 40)
N, M = geon.Axis("N"), geon.Axis("M")


def parts_of(y, given, kind):
    """Parts of ``y``, each times what is given of it: their sum, whose slope is joined of these."""
    if kind == "stacked":
        parts = [y[{"P": k}] for k in range(len(given))]
    else:
        parts = [y[{"P": slice(0, 1)}], y[{"P": slice(1, 2)}], y[{"P": slice(2, None)}]]
    return sum(geon.sum(part * other) for part, other in zip(parts, given, strict=True))


@pytest.mark.parametrize("kind", ["stacked", "sliced"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_of_parts_are_those_of_numpy(kind, turned, dtype):
    """What one part has does not reach others: NaN and infinities stay where they are."""
    pieces = geon.Axis("P", 3 if kind == "stacked" else 5)
    x = geon.placeholder([N, M, D], dtype=dtype)
    w = geon.placeholder([D, pieces, F], dtype=dtype)
    order = [M, N, F] if turned else [N, M, F]
    widths = [()] * 3 if kind == "stacked" else [geon.Axis("P", n) for n in (1, 1, 3)]
    given = [
        geon.placeholder([*order, axis] if axis else order, dtype=dtype, name=f"part{k}")
        for k, axis in enumerate(widths)
    ]
    slopes = geon.deriv(parts_of(geon.dot(x, w), given, kind), [x, w])
    generator = np.random.default_rng(5)
    for threads in (1, 2):
        with geon.NativeTransformer(threads=threads) as transformer:
            f = transformer.computation(slopes, x, w, *given)
            assert kind == "sliced" or has_loops_of_parts(f.source)
            for n, m in [(1, 1), (3, 5), (17, 33), (70, 9)]:
                a = generator.integers(-5, 6, size=(n, m, 24)).astype(dtype)
                b = generator.integers(-5, 6, size=(24, pieces.length, 40)).astype(dtype)
                shape = (m, n, 40) if turned else (n, m, 40)
                sizes = [shape if not axis else (*shape, axis.length) for axis in widths]
                c = [generator.integers(-5, 6, size=size).astype(dtype) for size in sizes]
                c[1][-1, 0, 3], c[2][0, -1, 5], c[0][0, 0, 0] = np.nan, np.inf, -0.0
                for found, right in zip(f(a, b, *c), of_numpy(a, b, c, turned), strict=True):
                    np.testing.assert_array_equal(found, right)


def has_loops_of_parts(text):
    """Whether an operand is packed by several loops, of which a truth chooses one."""
    functions = re.findall(r"_(?:left|panels|lines)\(\n.*?\n}\n", text, re.DOTALL)
    return any(each.count("#pragma omp simd") > 1 for each in functions)


def of_numpy(a, b, c, turned):
    """Both slopes: of what is multiplied, by each part of the other factor."""
    wide = [part if part.ndim == 4 else part[..., None] for part in c]
    joined = np.concatenate(wide, axis=-1)
    joined = joined.swapaxes(0, 1) if turned else joined
    with np.errstate(invalid="ignore"):
        of_x = np.einsum("nmfp,dpf->nmd", joined, b)
        of_w = np.einsum("nmfp,nmd->dpf", joined, a)
    return of_x, of_w


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_up_to_four_parts_have_loops_of_their_own(count):
    pieces = geon.Axis("P", count)
    x, w = geon.placeholder([N, M, D]), geon.placeholder([D, pieces, F])
    given = [geon.placeholder([N, M, F], name=f"part{k}") for k in range(count)]
    y = geon.dot(x, w)
    cost = sum(geon.sum(y[{"P": k}] * part) for k, part in enumerate(given))
    generator = np.random.default_rng(6)
    a, b = (
        generator.integers(-5, 6, size=size).astype(np.float32)
        for size in ((9, 33, 24), (24, count, 40))
    )
    c = [generator.integers(-5, 6, size=(9, 33, 40)).astype(np.float32) for _ in given]
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(geon.deriv(cost, [x, w]), x, w, *given)
        assert has_loops_of_parts(f.source) == (2 <= count <= 4)
        for found, right in zip(f(a, b, *c), of_numpy(a, b, c, False), strict=True):
            np.testing.assert_array_equal(found, right)
