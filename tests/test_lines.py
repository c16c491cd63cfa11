"""Messages name every line that made an op, the newest first, and every name it was given."""

import os
import re

import numpy as np
import pytest

import geon
from geon.op_graph.nodes import MAX_SITES, made_at
from tests.places import here

C = geon.Axis("C", 3)


def lines_of(text):
    """The lines of this file in a text, in its order."""
    return re.findall(r"tests/(test_lines\.py:\d+)", text)


def test_the_newest_line_comes_first(transformer):
    x = geon.placeholder(C)
    y, first = geon.log(x, name="a"), here()
    again, second = geon.log(x), here()
    third_time, third = geon.log(x, name="b"), here()
    assert y is again is third_time
    f = transformer.computation(geon.sum(y), x, check="nan")
    with pytest.raises(geon.NonFiniteError) as caught:
        f([1, 0, 1])
    assert lines_of(str(caught.value)) == [line.split("/")[-1] for line in (third, second, first)]
    assert "b, a(C:3) (log) made at" in str(caught.value)


def test_a_line_that_makes_it_again_is_the_newest(transformer):
    x = geon.placeholder(C)

    def make():
        return geon.log(x)

    y = make()
    between, line = geon.log(x), here()
    assert make() is y is between
    first, second = lines_of(made_at(y))
    assert line.endswith(second) and not line.endswith(first)
    with pytest.raises(geon.NonFiniteError) as caught:
        transformer.computation(y, x, check="nan")([0, 1, 1])
    assert lines_of(str(caught.value)) == [first, second]
    assert y.file_info.endswith(first) and y.sites[0] == y.file_info


def test_the_first_and_the_newest_lines_are_kept():
    x = geon.placeholder(C)
    source = "\n".join(["made.append(geon.exp(x))"] * 30)
    made = []
    exec(compile(source, "many.py", "exec"), {"geon": geon, "x": x, "made": made})
    kept = [30 - k for k in range(MAX_SITES)]
    assert made_at(made[0]) == ", ".join(f"many.py:{n}" for n in [*kept, 1])
    assert made[0].sites == [f"many.py:{n}" for n in [1, *kept[::-1]]]


def test_unordered_assignments_made_on_several_lines():
    v, place = geon.Variable(C, initial_value=0, name="v"), here()
    one, first = geon.assign(v, 1), here()
    again, second = geon.assign(v, 1), here()
    two, third = geon.assign(v, 2), here()
    assert one is again
    with pytest.raises(geon.OrderError) as caught:
        geon.NumPyTransformer().computation([one, two])
    expected = [line.split("/")[-1] for line in (place, second, first, third)]
    assert lines_of(str(caught.value)) == expected


def test_the_lines_are_those_from_before_the_computation_was_made(transformer):
    x = geon.placeholder(C)
    y, first = geon.log(x, name="mine"), here()
    f = transformer.computation(y, x, check="nan")
    later, second = geon.log(x, name="theirs"), here()
    assert later is y
    with pytest.raises(geon.NonFiniteError) as caught:
        f([0, 1, 1])
    assert "mine(C:3)" in str(caught.value) and "theirs" not in str(caught.value)
    assert first in str(caught.value) and second not in str(caught.value)


def test_the_pass_is_that_of_any_line_of_the_users(transformer):
    """An op of the user's that a derivative needs too is one of the forward pass."""
    x = geon.placeholder(C)
    y = geon.sum(geon.log(x))
    gradient = geon.deriv(y, x)
    own, line = geon.divide(1.0, x), here()
    assert np.isfinite(transformer.computation([gradient, own], x)([1, 2, 3])[0]).all()
    with pytest.raises(geon.NonFiniteError) as caught:
        transformer.computation(own, x, check="nan")([0, 1, 1])
    assert line in str(caught.value) and "forward pass" in str(caught.value)


def test_every_name_is_shown_and_finds_the_op():
    x = geon.placeholder(C, name="x")
    y = geon.tanh(x, name="first")
    for name in ("second", "first", "third"):
        geon.tanh(x, name=name)
    assert y.name == "third" and str(y) == "third, first, second(C:3)"
    assert all(geon.find(name, y) is y for name in ("first", "second", "third"))
    with pytest.raises(geon.AxisError, match="third, first, second"):
        y + geon.placeholder(geon.Axis("D", 2), name="d")
    x.name = "z"
    assert str(x) == "z(C:3)"


def test_many_names_are_cut_short():
    x = geon.placeholder(C)
    for number in range(40):
        y = geon.tanh(x, name=f"name{number}")
    assert str(y) == "name39, name38, name37, name36(C:3)"
    assert geon.find("name0", y) is y


def test_messages_name_the_line_of_the_call_not_of_the_first_maker(tmp_path):
    """Equal constants and ops are one, which somebody else may have made first."""
    A, T = geon.Axis("A", 3), geon.Axis("T")
    first = geon.Random(0).normal([A])  # its mean is the same 0.0
    seq = geon.placeholder([T, A], name="seq")
    with pytest.raises(geon.AxisError) as caught:
        geon.scan(lambda c, v: (c + v, None), 0.0, seq, over="T")
    line = caught.traceback[0].lineno + 1
    assert f"carries begins as 0.0 float32 (made at {place(line)}) and step" in str(caught.value)
    assert str(geon.constant(0.5)) == "0.5" and str(geon.constant(2)) == "2" and first is not None

    once = geon.tanh(seq)
    with pytest.raises(geon.AxisError) as caught:
        geon.tanh(seq) + geon.placeholder([geon.Axis("A", 4)], name="other")
    here = caught.traceback[0].lineno + 1
    assert f"tanh(T, A:3) made at {place(here)}, first made at {place(here - 2)}" in str(
        caught.value
    )
    assert once.lineno == here - 2 and place(here - 2) in repr(once)


def place(line):
    """How messages write a line of this file."""
    return f"{os.path.relpath(__file__)}:{line}"
