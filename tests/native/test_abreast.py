"""Loops whose vectors are computed some abreast: the same bits of elements, and sums are right."""

import numpy as np
import pytest

import geon
from geon.transformers.loops.rules.interleaved_loops import (
    INTERLEAVED_VECTORS,
    MIN_LOOP_BLOCKS,
)
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.sizes.limits import AVX2_BYTES

toolchain = find_toolchain()
width = 0 if toolchain is None else toolchain.vector_bytes
pytestmark = [
    pytest.mark.skipif(width < AVX2_BYTES, reason="vectors are too narrow"),
    pytest.mark.optimized,  # bounds hold for the order of sums that optimised loops have
]
BLOCK = INTERLEAVED_VECTORS * width // 4  # turns of float32 that are taken at once
LEAST = MIN_LOOP_BLOCKS * BLOCK
ENDS = (1, BLOCK, LEAST, LEAST + BLOCK, 40 * BLOCK)
LENGTHS = sorted({end + k for end in ENDS for k in (-1, 0, 1)} - {0})
PLAIN = BLOCK // 2  # elements of a row that is too short


def chain(x):
    """Functions of functions, of which each step waits for the one before."""
    return geon.log(1.5 + geon.square(geon.tanh(x))) * geon.log1p(geon.absolute(x))


def data(size, dtype):
    return np.random.default_rng(size).normal(size=size).astype(dtype)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_elements_have_the_bits_of_those_one_after_another(dtype, is_open):
    """By themselves and in rows, on one thread and two, with a plan and without."""
    many, part = geon.Axis("many"), geon.Axis("part", PLAIN)
    short = geon.placeholder([many, part], dtype=dtype)
    with geon.NativeTransformer(threads=1) as one, geon.NativeTransformer(threads=2) as two:
        # A sum beside the function keeps loops over rows apart from those along them.
        single = one.computation([chain(short), geon.sum(short, part)], short)
        assert "abreast |=" not in single.source
        n, m = geon.Axis("N"), geon.Axis("M")
        for length in LENGTHS:
            m = m if is_open else m.with_length(length)
            x, row = geon.placeholder([n, m], dtype=dtype), geon.placeholder([n], dtype=dtype)
            results = [chain(x), chain(x) * row]
            found = [made.computation(results, x, row) for made in (one, two)]
            found.append(two.computation(results, x, row, plan=False))
            for rows in (1, 3, 4099 // length + 1):
                array = data(rows * length, dtype).reshape(rows, length)
                factor = data(rows, dtype)
                padded = np.resize(array, (-(-array.size // PLAIN), PLAIN))
                wanted = single(padded)[0].reshape(-1)[: array.size].reshape(array.shape)
                for f in found:
                    first, second = f(array, factor)
                    assert first.tobytes() == wanted.tobytes()
                    assert second.tobytes() == (wanted * factor[:, None]).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_are_right_and_the_same_on_all_threads(dtype):
    """Equal terms are the worst for a sum in blocks; extremes are those of the elements."""
    n, m = geon.Axis("N"), geon.Axis("M")
    x = geon.placeholder([n, m], dtype=dtype)
    with geon.NativeTransformer(threads=1) as one, geon.NativeTransformer(threads=2) as two:
        results = [geon.sum(chain(x), m), geon.max(chain(x), m), geon.sum(chain(x))]
        found = [made.computation(results, x) for made in (one, two)]
        found.append(two.computation(results, x, plan=False))
        element = one.computation(chain(x), x)
        for length in (*LENGTHS, 1023, 8192, 100_003):
            for array in (data(3 * length, dtype), np.full(3 * length, 0.7, dtype)):
                array = array.reshape(3, length)
                each = element(array).astype("float64")
                for f in found:
                    along, most, total = f(array)
                    np.testing.assert_allclose(along, each.sum(1), rtol=1e-6)
                    np.testing.assert_array_equal(most, each.max(1).astype(dtype))
                    np.testing.assert_allclose(total, each.sum(), rtol=1e-6)
                    first = found[0](array)
                    assert [a.tobytes() for a in first] == [along.tobytes(), most.tobytes(),
                                                            total.tobytes()]  # fmt: skip


def test_sums_of_narrow_integers_do_not_overflow():
    """Blocks of these hold as many terms as 32 bits do."""
    m = geon.Axis("M", 300_000)
    x = geon.placeholder([m])
    near = geon.cast(65535 * geon.tanh(geon.absolute(x) + 20), "uint16")
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation([geon.sum(near), geon.any(geon.tanh(x) > 1)], x)
        assert f(data(m.length, "float32"))[0] == 65535 * m.length


def test_what_is_long_and_waits_is_computed_abreast():
    """Not what is short, has no chain of steps or reads apart, sums of float32, nor columns."""
    with geon.NativeTransformer(threads=1) as transformer:

        def is_abreast(made, *given):
            return "abreast |= count++" in transformer.computation(made, *given).source

        for length, expected in ((LEAST - 1, False), (LEAST, True), (None, True)):
            n, m = geon.Axis("N", 64), geon.Axis("M", length)
            x, y = geon.placeholder([n, m]), geon.placeholder([m, n])
            row = geon.placeholder([n])
            assert is_abreast(geon.tanh(x) * row, x, row) is expected
            assert not is_abreast(geon.sum(geon.tanh(x), m), x)
            assert not is_abreast(x * 2 + row, x, row)
            assert not is_abreast(geon.sum(geon.tanh(x), n), x)
            # Short rows of an open length are computed from copies, which are adjacent.
            apart = length is None
            assert is_abreast(geon.flip(geon.tanh(x), m) * row, x, row) is apart
            assert is_abreast(geon.tanh(geon.reorder(y, [n, m])) * row, y, row) is apart
        for length, expected in ((LEAST // 2 - 1, False), (LEAST // 2, True)):
            n, m = geon.Axis("N", 64), geon.Axis("M", length)
            x = geon.placeholder([n, m], dtype="float64")
            assert is_abreast(geon.sum(geon.tanh(x), m), x) is expected
