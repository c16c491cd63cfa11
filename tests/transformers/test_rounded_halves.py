"""A float32 that is cast to a half and back has the bits of these two casts, wherever it is."""

import ml_dtypes
import numpy as np
import pytest

import geon

HALVES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
LANES = 64


def samples(half):
    """Every value of a half and every middle between two, what lies beside these, and any bits."""
    values = np.arange(1 << 16, dtype=np.uint16).view(HALVES[half]).astype(np.float32)
    near = np.arange(-1, 2, dtype=np.int64)[:, None]
    bits, middle = values.view(np.uint32).astype(np.int64), 0x1000 if half == "float16" else 0x8000
    random = np.random.default_rng(6).integers(0, 1 << 32, 1 << 15)
    found = np.concatenate([(bits + near).ravel(), (bits + middle + near).ravel(), random])
    return (found & 0xFFFFFFFF).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("half", list(HALVES))
def test_a_cast_to_a_half_and_back(transformer, half):
    """In rows and across them; beside the half itself, which is stored too."""
    data = samples(half).reshape(LANES, -1)
    a, b = geon.Axis("A", LANES), geon.Axis("B", data.shape[1])
    x = geon.placeholder([a, b])
    narrow = geon.cast(x, half)
    back = geon.cast(narrow, "float32")
    across = geon.reorder(geon.cast(geon.cast(x, half), "float32"), [b, a])
    f = transformer.computation([narrow, back, across, geon.max(geon.absolute(back), a)], x)
    with np.errstate(all="ignore"):
        stored, found, turned, largest = f(data)
        rounded = data.astype(HALVES[half])
        wanted = rounded.astype(np.float32)
    numbers = ~np.isnan(data)
    assert stored.view(np.uint16)[numbers].tobytes() == rounded.view(np.uint16)[numbers].tobytes()
    assert found[numbers].tobytes() == wanted[numbers].tobytes()
    assert np.isnan(found[~numbers]).all()
    assert turned.tobytes() == np.ascontiguousarray(found.T).tobytes()
    np.testing.assert_array_equal(largest, np.abs(wanted).max(0))


@pytest.mark.parametrize("half", list(HALVES))
def test_each_op_of_a_chain_rounds(transformer, half):
    n = geon.Axis("N", 1000)
    x = geon.placeholder([n], dtype=half)
    data = np.random.default_rng(7).normal(size=1000).astype(HALVES[half])
    found, total = transformer.computation([(x * x - 0.3) * 0.7, geon.sum(x * x - 0.3)], x)(data)
    lower, factor = np.asarray(0.3, HALVES[half]), np.asarray(0.7, HALVES[half])
    wanted = data * data - lower
    np.testing.assert_array_equal(found, wanted * factor)
    np.testing.assert_allclose(
        float(total), wanted.astype(np.float64).sum(), rtol=2 * float(ml_dtypes.finfo(half).eps)
    )
