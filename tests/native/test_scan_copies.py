"""Loops of small recurrences over rows whose elements are copied into arrays over rows."""

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax
from geon.transformers.native.emit.form_table import for_vectors
from geon.transformers.native.emit.module_text import make_module

missing = geon.NativeTransformer.unavailable()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

ROWS = (1, 2, 3, 5, 16, 17, 64, 70)  # fewer than a vector, whole ones, and more than are taken


def gradient_of(layer, length, dtype):
    """Return the outputs and the slope of the inputs of a layer, as a function of its input."""
    x = geon.placeholder([ax.N, ax.T, geon.Axis("C", 3)], dtype)
    y = layer(geon.Axis("H", length), neon.Constant(0.3))(x)
    loss = geon.sum(geon.square(y))
    return x, [y, geon.deriv(loss, x)]


def test_rows_have_the_same_bits_whatever_their_number_is():
    """Padded lanes are no row, and a row by itself has what it has beside others."""
    failures, random = [], np.random.default_rng(3)
    for layer, length, dtype in (
        (neon.LSTM, 4, "float32"),
        (neon.Recurrent, 7, "float32"),
        (neon.Recurrent, 5, "float64"),
    ):
        x, results = gradient_of(layer, length, dtype)
        f = geon.NativeTransformer().computation(results, x)
        plain = geon.NumPyTransformer().computation(results, x)
        values = random.standard_normal((max(ROWS), 6, 3)).astype(dtype)
        texts = make_module(for_vectors(f.plan, 64), f.linking, annotate=False).units
        if not any("_squares(&" in text for text in texts):
            failures.append((layer, length, "no copies"))
        whole = f(values)
        tolerance = 1e-4 if dtype == "float32" else 1e-10
        for found, wanted in zip(whole, plain(values), strict=True):
            if not np.allclose(found, wanted, rtol=tolerance, atol=tolerance):
                failures.append((layer, length, "other values"))
        for rows in ROWS:
            for found, all_rows in zip(f(values[:rows]), whole, strict=True):
                if not np.array_equal(found, np.asarray(all_rows)[:rows]):
                    failures.append((layer, length, rows))
        for found in f(values[:, :0]):
            if np.asarray(found).size:
                failures.append((layer, length, "no turn"))
    assert not failures
