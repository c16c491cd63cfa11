"""Prototypes, attributes with checks, operators in one statement, generated creators."""

import inspect

import numpy as np
import pytest

import geon
from geon.frontends.program import layers, registry
from geon.frontends.program.creators import op
from geon.frontends.program.registry import (
    Attribute,
    AttributeValueError,
    OperatorError,
    RegistryError,
    at_least,
    greater_than,
    in_range,
    one_of,
    operator_info,
    operator_types,
    register_operator,
)

from .program_cases import new_program

register_operator(
    "test_scaled",
    lambda X, Shift, *, factor, mode: X * factor + (0 if Shift is None else Shift),
    ["X the numbers", "Shift? added"],
    attributes=[
        Attribute("factor", "float", comment="the multiplier", check=greater_than(0)),
        Attribute("mode", "string", "plain", check=one_of("plain", "odd")),
    ],
    comment="A multiple of X.",
)


def test_an_operator_is_registered_in_one_statement():
    with new_program() as run:
        x = layers.data("x", [2])
        x.stop_gradient = False
        y = op.test_scaled(x, factor=3, Out="y")
        assert y.name == "y" and y.shape == (-1, 2)
        z = op.test_scaled(X="y", Shift=x, factor=2.0)
    np.testing.assert_array_equal(run({"x": [[1, 2]]}, ["y", z]), [[[3, 6]], [[7, 14]]])


def test_creators_have_signatures_and_docstrings():
    assert list(inspect.signature(op.test_scaled).parameters) == [
        "X", "Shift", "factor", "mode", "Out"
    ]  # fmt: skip
    text = op.test_scaled.__doc__
    for part in ("A multiple of X.", "X: the numbers", "Shift (dispensable): added",
                 "factor (float, greater than 0; required): the multiplier",
                 "mode (string, one of 'plain', 'odd'; default 'plain')"):  # fmt: skip
        assert part in text
    assert "test_scaled" in dir(op) and "test_scaled_grad" not in operator_types()
    with pytest.raises(AttributeError, match="did you mean test_scaled"):
        op.test_scalde  # noqa: B018
    assert layers.test_scaled is op.test_scaled


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, AttributeValueError, r"needs the attribute factor \(float\); give factor="),
        (
            {"factor": "3"},
            AttributeValueError,
            "factor='3' is refused; give float that is greater than 0",
        ),
        (
            {"factor": -1},
            AttributeValueError,
            "factor=-1 is refused; give float that is greater than 0",
        ),
        (
            {"factor": 1, "mode": "even"},
            AttributeValueError,
            "give string that is one of 'plain', 'odd'",
        ),
        ({"factor": True}, AttributeValueError, "factor=True is refused"),
        ({"factor": 1, "color": 3}, geon.ArgumentError, "unexpected keyword argument 'color'"),
    ],
)
def test_wrong_attributes_name_the_operator_the_value_and_the_line(arguments, error, message):
    with new_program():
        x = layers.data("x", [2])
        with pytest.raises(error, match=message) as caught:
            op.test_scaled(x, **arguments)
        assert f"test_scaled at {__file__.rpartition('/')[2]}" in str(caught.value).replace(
            "tests/frontends/program/", ""
        )


def test_wrong_slots_are_refused():
    with new_program() as run:
        x = layers.data("x", [2])
        block = run.main.global_block()
        for inputs, message in (
            ({}, "needs the input X"),
            ({"X": x, "Z": x}, "has no input 'Z'; its inputs are X, Shift"),
            ({"X": [x, x]}, "input X of test_scaled holds one variable, and was given 2"),
            ({"X": 3.5}, "3.5 is no variable; give a variable or its name"),
        ):
            with pytest.raises(geon.ArgumentError, match=message):
                block.append_op("test_scaled", inputs, {"Out": "y"}, {"factor": 1.0})
        with pytest.raises(geon.ArgumentError, match="no output 'Result'"):
            block.append_op("test_scaled", {"X": x}, {"Result": "y"}, {"factor": 1.0})
        with pytest.raises(RegistryError, match="'test_scald' is not registered; did you mean"):
            block.append_op("test_scald")
        assert "y" not in block.variables and not block.ops


def test_wrong_registrations_are_refused():
    with pytest.raises(RegistryError, match="exists"):
        register_operator("test_scaled", geon.tanh)
    with pytest.raises(RegistryError, match="two slots or attributes have the name 'X'"):
        register_operator("test_twice", geon.tanh, ["X", "X"])
    with pytest.raises(AttributeValueError, match="has the type 'complex'; the types are int"):
        Attribute("a", "complex")


def test_the_rank_of_a_slot_is_stated_with_it():
    with pytest.raises(
        geon.ArgumentError, match="slot 'X' has the rank 'two'; write '2', or '2\\+'"
    ):
        register_operator("test_ranked", geon.tanh, ["X@two"])
    register_operator("test_ranked", geon.tanh, ["X@2+ a matrix"], replace=True)
    assert "X (2+ dimensions): a matrix" in layers.test_ranked.__doc__
    with new_program():
        vector = layers.data("vector", [3], append_batch_size=False)
        with pytest.raises(geon.AxisError, match="test_ranked at .*: X has the rank 1; give it at"):
            layers.test_ranked(vector)
        assert layers.test_ranked(layers.data("matrix", [3])).shape == (-1, 3)


def test_errors_of_functions_name_the_operator_its_inputs_and_lines():
    def broken(X):
        raise KeyError("lost")

    register_operator("test_broken", broken)
    register_operator("test_pair", lambda X: X, outputs=["A", "B"])
    with new_program():
        x = layers.data("x", [2])
        with pytest.raises(
            OperatorError, match=r"test_broken at .*registry.py:\d+: its function raised KeyError"
        ) as e:
            op.test_broken(x)
        assert "X is x: (-1, 2) float32, data, declared at" in str(e.value)
        with pytest.raises(geon.ArgumentError, match="returns a tuple of 2 values, for A, B"):
            op.test_pair(x)


def test_checks_and_plain_values():
    ints = Attribute("n", "ints", None, check=in_range(1, 3))
    assert ints.checked([np.int64(1), 3], "f") == (1, 3) and ints.checked(None, "f") is None
    for value in ([0], 2, [1.5], [True]):
        with pytest.raises(AttributeValueError):
            ints.checked(value, "f")
    assert at_least(2).accepts(2) and not at_least(2).accepts(1)
    assert operator_info("test_scaled").type == "test_scaled"
    assert registry.Slot("X").name == "X"
