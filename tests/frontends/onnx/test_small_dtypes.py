"""Dtypes of less than 16 bits: rounding, saturation, and movement of their elements."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import geon
from geon.frontends import onnx as frontend
from geon.frontends.onnx import backend
from geon.frontends.positional.small_dtypes import FORMATS, FloatFormat, cast_small
from geon.frontends.positional.values import array
from tests.frontends.onnx.test_models import NODE, model, tensor

N = geon.Axis("N")
TRANSFORMERS = [geon.NumPyTransformer(), geon.NativeTransformer()]


def values(name):
    """Numbers of the dtype, all ties between them and their neighbours, and special values."""
    form = FORMATS[name]
    if not isinstance(form, FloatFormat):
        return np.arange(-40, 40).astype(np.float32)
    own = np.arange(256, dtype=np.uint8).view(name) if "8" in name else np.arange(16).astype(name)
    own = np.unique(own.astype(np.float64))
    own = own[np.isfinite(own) & (own >= 1e-30) & (own <= 1e30)]
    ties = (own[1:] + own[:-1]) / 2
    found = np.concatenate([own, ties, ties * (1 + 1e-6), ties * (1 - 1e-6), [0.0, 1e9, 1e-9]])
    return np.concatenate([found, -found, [np.nan, np.inf, -np.inf]]).astype(np.float32)


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=["numpy", "native"])
def test_casts_round_as_ml_dtypes(transformer):
    x = geon.placeholder([N], name="x")
    names = [name for name in FORMATS if "e8m0" not in name]
    results = [
        cast_small(array(x, x.axes), np.dtype(getattr(ml_dtypes, name)), saturate=False)
        for name in names
    ]
    f = transformer.computation([result.held.tensor for result in results], x)
    for number, (name, result) in enumerate(zip(names, results, strict=True)):
        given = values(name)
        with np.errstate(all="ignore"):
            expected = given.astype(result.dtype).astype(np.float32)
        found = f(given)[number].astype(np.float32)
        np.testing.assert_array_equal(found, expected, name)
        if name in ("float8_e4m3fn", "float8_e5m2"):
            signs = np.signbit([found, expected]) & ~np.isnan(expected)
            np.testing.assert_array_equal(*signs, name)


def test_powers_of_two_round_in_three_ways():
    x = geon.placeholder([N], name="x")
    dtype = np.dtype(ml_dtypes.float8_e8m0fnu)
    given = np.array([1.0, 1.2, 1.5, 3.1, 2.0**-126, 3e38, 0.0, np.nan], np.float32)
    expected = {
        "up": [1, 2, 2, 4, 2.0**-126, 2.0**127, 2.0**-127, np.nan],
        "down": [1, 1, 1, 2, 2.0**-126, 2.0**127, 2.0**-127, np.nan],
        "nearest": [1, 1, 2, 4, 2.0**-126, 2.0**127, 2.0**-127, np.nan],
    }
    for rounding, wanted in expected.items():
        held = cast_small(array(x, x.axes), dtype, True, rounding).held.tensor
        found = TRANSFORMERS[0].computation(held, x)(given)
        np.testing.assert_array_equal(found, np.array(wanted, np.float32), rounding)
    with pytest.raises(geon.DTypeError, match="rounding 'away' is not one of nearest"):
        cast_small(array(x, x.axes), dtype, True, "away")


def test_elements_are_moved_and_refused_as_numbers():
    kind = TensorProto.INT4
    moved = model(
        [NODE("Transpose", ["x"], ["t"]), NODE("Concat", ["t", "t"], ["y"], axis=0)],
        [tensor("x", ["N", 3], kind)],
        [tensor("y", None, kind)],
    )
    given = np.array([[1, -8, 7], [0, 3, -1]]).astype(ml_dtypes.int4)
    found = backend.prepare(moved, transformer=TRANSFORMERS[0]).run([given])[0]
    assert found.dtype == given.dtype
    np.testing.assert_array_equal(found, np.concatenate([given.T, given.T]))
    assert frontend.load(moved).outputs["y"].dtype == "int8"
    added = helper.make_model(
        helper.make_graph(
            [NODE("Add", ["x", "x"], ["y"])],
            "sum",
            [tensor("x", [3], kind)],
            [tensor("y", None, kind)],
        ),
        opset_imports=[helper.make_opsetid("", 21)],
    )
    with pytest.raises(frontend.ModelError, match="node 0 Add.*int4.*cast it first"):
        frontend.load(added)
