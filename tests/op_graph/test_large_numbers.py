"""Integers at the ends of what dtypes hold: taken as they are, or refused with place and cure."""

import numpy as np
import pytest

import geon
from tests.places import here

C = geon.Axis("C", 2)
FLOATS = ("bfloat16", "float32", "float64")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1, 2**127])
def test_a_float_takes_every_integer_that_it_reaches(transformer, dtype, number):
    x = geon.placeholder([C], dtype)
    results = [x + number, x < number, geon.constant(number, dtype=dtype)]
    found = transformer.computation(results, x)([0, 0])
    wanted = np.float64(np.asarray(float(number)).astype(x.dtype))
    np.testing.assert_array_equal(np.float64(found[0]), [wanted] * 2)
    np.testing.assert_array_equal(found[1], [number > 0] * 2)
    assert np.float64(found[2]) == wanted


LISTS = ([2**63 + 1, 1], [2**64, 1], [-1, 2**63], [2**70, 1.5], [-(2**70), 0])


@pytest.mark.parametrize("numbers", LISTS, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_list_is_taken_by_every_float(transformer, dtype, numbers):
    x, v = geon.placeholder([C], dtype), geon.Variable([C], dtype=dtype)
    first = geon.Variable([C], dtype=dtype, initial_value=numbers)
    transformer.set(v, numbers)
    results = [geon.constant(numbers, [C], dtype), x, v, first]
    wanted = np.float64(np.asarray(numbers, np.float64).astype(x.dtype))
    for found in transformer.computation(results, x)(numbers):
        np.testing.assert_array_equal(np.float64(found), wanted)


def test_a_list_of_integers_is_exact_in_uint64(transformer):
    numbers = [2**63 + 1, 1]
    x, v = geon.placeholder([C], "uint64"), geon.Variable([C], dtype="uint64")
    transformer.set(v, numbers)
    results = [geon.constant(numbers, [C], "uint64"), x, v]
    for found in transformer.computation(results, x)(numbers):
        assert found.dtype == np.uint64 and found.tolist() == numbers


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64"])
@pytest.mark.parametrize("numbers", [[2**64], [-(2**63) - 1]], ids=str)
def test_what_no_integer_dtype_holds_is_refused_with_its_cure(dtype, numbers):
    one = geon.Axis("A", 1)
    with pytest.raises(
        geon.DTypeError, match="no integer dtype holds -?[0-9]+ of .*'float64'"
    ) as e:
        geon.constant(numbers, [one], dtype)
    assert f"{here(-1)}: no integer" in str(e.value)
    with pytest.raises(geon.DTypeError, match="no integer dtype holds") as e:
        geon.Variable([one], dtype=dtype, initial_value=numbers)
    assert f"{here(-1)}: no integer" in str(e.value)
    x = geon.placeholder([one], dtype)
    with pytest.raises(geon.FeedError, match="clip them, or make it a float"):
        geon.NumPyTransformer().computation(x + 0, x)(numbers)


@pytest.mark.parametrize(
    ("value", "dtype", "cure"),
    [
        (300, "int8", "give a wider dtype"),
        (2**64, "int64", "no integer dtype holds it: give a float"),
        (2**64, None, "no integer dtype holds it: give a float"),
        (0.5, "int32", "geon.cast it"),
        (1e39, "float32", "give a wider dtype"),
        (2**2000, "float64", "scale it"),
        ([300, 1], "int8", "such as int64"),
        ([2**2000, 1], "float32", "scale it"),
        ([[1], [1, 2]], None, "one length"),
        ([1e39, 1], "float32", "give a wider dtype"),
        ([1.5, 1], "int8", "round it"),
        ([1, 2], "int3", "geon has no dtype"),
    ],
)
def test_what_a_constant_refuses_has_place_and_cure(value, dtype, cure):
    with pytest.raises(geon.DTypeError) as error:
        geon.constant(value, None if not isinstance(value, list) else [C], dtype)
    text = str(error.value)
    assert text.startswith("constant at ") and f"{here(-2)}: " in text and cure in text
    assert "other operand" not in text and len(text) < 400
