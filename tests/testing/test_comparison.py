"""What counts as equal but for rounding."""

import numpy as np
import pytest

from geon.testing import assert_close, close


def test_rounding_is_no_difference():
    x = np.array([1.0, -3.0, 1e-6], np.float32)
    assert close(x * np.float32(1 + 1e-6), x).all()
    assert not close(x * np.float32(1.001), x)[:2].any()


def test_the_floor_is_the_largest_element_unless_given():
    expected = np.array([100.0, 0.0])
    assert close([100.0, 1e-10], expected).all()
    assert not close([100.0, 1e-10], expected, floor=0.0)[1]


def test_values_that_are_not_finite():
    x = np.array([np.nan, np.inf, -np.inf, 1])
    assert close(x, x).all()
    assert not close([1, -np.inf, 0, np.nan], x).any()
    assert not close(np.float32(3e38), np.float32(np.inf)).any()


def test_integers_are_equal_or_not():
    assert list(close([1, 2**62], np.array([1, 2**62 + 1]))) == [True, False]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_tolerances_follow_the_dtype(dtype):
    rough = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "float64": 1e-12}[dtype]
    assert close([1 + rough], np.array([1.0]), dtype).all()
    assert not close([1 + 100 * rough], np.array([1.0]), dtype).any()


def test_messages():
    with pytest.raises(
        AssertionError, match=r"the sum is .*5.0.* at \(1,\), expected .*2.0.*1 of 2"
    ):
        assert_close(np.array([1.0, 5.0]), np.array([1.0, 2.0]), what="the sum")
    with pytest.raises(AssertionError, match="shape"):
        assert_close(np.zeros(2), np.zeros(3))
    assert_close(np.zeros(2), -np.zeros(2))
    with pytest.raises(AssertionError):
        assert_close(np.zeros(2), -np.zeros(2), exact=True)
    with pytest.raises(ValueError, match="shapes"):
        close(np.zeros(2), np.zeros(3))
