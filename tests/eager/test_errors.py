"""Messages: those of the symbolic call at the user's line, and those of deferred computation."""

import re

import numpy as np
import pytest

import geon
from geon import eager

N, C = geon.Axis("N"), geon.Axis("C", 3)


@pytest.fixture(autouse=True)
def numpy_transformer():
    with eager.use("numpy"):
        yield


def x_of(n=2):
    return eager.array(np.ones((n, 3), np.float32), [N, C], name="x")


@pytest.mark.parametrize("f", [
    lambda x: x + geon.placeholder([geon.Axis("D", 4)]), lambda x: geon.sum(x, "Q"),
    lambda x: geon.sum(x, axis=C), lambda x: x[{C: 5}], lambda x: geon.cast(x, "float99"),
    lambda x: x & x, lambda x: geon.deriv(x, x), lambda x: geon.dot(x, None),
])  # fmt: skip
def test_messages_are_those_of_symbolic_calls(f):
    def message(x):
        with pytest.raises(geon.GeonError) as caught:
            f(x)
        shown = re.sub(r"test_errors.py:\d+", "LINE", str(caught.value))
        return type(caught.value), re.sub(r"\(N(:2)?, C:3\)", "(N, C:3)", shown)

    assert message(x_of()) == message(geon.placeholder([N, C], name="x"))


def test_two_lengths_of_an_open_axis_name_both_arrays_and_their_lines():
    with pytest.raises(geon.AxisError) as caught:
        x_of(2) + x_of(4)
    text = str(caught.value)
    assert "axis 'N' has length 2 in x(N:2, C:3) and 4 in x(N:4, C:3)" in text
    assert text.count("test_errors.py:") == 3
    assert float(geon.sum(x_of(2)) + geon.sum(x_of(4))) == 18  # scalars of both may meet


def test_a_deferred_error_names_the_line_that_built_and_the_line_that_asked():
    table = eager.array(np.ones((3, 2), np.float32), [C, geon.Axis("H", 2)])

    def look_up(places):
        return geon.gather(table, eager.array(places, [N]), C) * 2.0

    line = look_up.__code__.co_firstlineno + 1
    good, bad = look_up([0, 1]), look_up([0, 7])
    with pytest.raises(geon.IndexRangeError) as caught:
        np.asarray(bad)
    text = str(caught.value)
    assert "0 to 7" in text and f"the value of gather at tests/eager/test_errors.py:{line}" in text
    assert text.endswith(f"test_errors.py:{line_of('np.asarray(bad)')}")
    np.testing.assert_array_equal(good, np.full((2, 2), 2))  # a bad array does not stop others


def line_of(text="np.asarray(bad)"):
    lines = open(__file__).read().splitlines()
    (found,) = [k for k, line in enumerate(lines, 1) if line.strip() == text]
    return found


def test_what_is_no_value_is_refused():
    with pytest.raises(geon.SymbolicError, match="the placeholder p.* has no value"):
        x_of() + geon.placeholder([N, C], name="p")
    with pytest.raises(geon.SymbolicError, match="has 6 elements and has no truth value"):
        bool(x_of())
    with pytest.raises(geon.AssignError, match="geon.update"):
        x_of()[{C: 0}] = 1.0
    with pytest.raises(geon.AxisError, match="does not fit the axes"):
        eager.array([1.0, 2.0], [C])
    with pytest.raises(geon.AxisError, match="needs axes"):
        eager.array([1.0, 2.0])
    with pytest.raises(geon.ArgumentError, match="is no array of geon.eager"):
        eager.grad(geon.placeholder(), geon.placeholder())
    with pytest.raises(geon.AxisError, match="no array gives the length of the open axis D"):
        geon.broadcast(x_of(), [N, C, geon.Axis("D")])
