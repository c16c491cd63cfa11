"""Operators against values by NumPy and SciPy, and their gradients against differences."""

import numpy as np
import pytest

import geon
from geon.frontends import program as fluid
from geon.frontends.program import layers
from geon.frontends.program.operator_checks import check_gradient, check_output
from geon.frontends.program.registry import (
    Attribute,
    OperatorError,
    operator_info,
    operator_types,
    register_operator,
)
from tests.frontends.program.operator_table import ANALYSIS, CASES

from .program_cases import new_program

# Operators without a row: draws, which test_program_executor.py checks, and those with blocks.
OTHERS = {
    "uniform_random", "gaussian_random", "truncated_gaussian_random", "dropout",
    "uniform_random_batch_size_like", "gaussian_random_batch_size_like",
    "truncated_gaussian_random_batch_size_like",
    "while", "conditional_block", "if_else", "recurrent", "write_to_array", "read_from_array",
    "array_length",
}  # fmt: skip


@pytest.mark.parametrize("type", sorted(CASES))
def test_an_operator(type):
    case = CASES[type]
    check_output(type, case.inputs, case.attributes, case.expected, rtol=1e-6)
    floats = [n for n, v in case.inputs.items() if np.asarray(v[0]).dtype.kind in "fc"]
    if operator_info(type).differentiable and floats and case.slots != ():
        check_gradient(type, case.inputs, case.attributes, case.slots, tolerance=case.tolerance)


@pytest.mark.parametrize("type", sorted(ANALYSIS))
def test_an_operator_on_open_lengths(type):
    case = ANALYSIS[type]
    with new_program() as run:
        for slot, array in case.inputs.items():
            layers.data(slot, [-1] * array.ndim, array.dtype, append_batch_size=False)
        outputs = {slot.name: slot.name for slot in operator_info(type).proto.outputs}
        run.main.global_block().append_op(
            type, {s: s for s in case.inputs}, outputs, case.attributes
        )
    found = run(case.inputs, list(case.expected))
    for name, array in zip(case.expected, found, strict=True):
        np.testing.assert_allclose(array, case.expected[name], rtol=1e-6, atol=1e-6, err_msg=name)


def test_all_operators_have_a_row():
    types = {type for type in operator_types() if not type.startswith("test_")}  # of other tests
    assert types - set(CASES) - OTHERS == set()
    assert len(set(CASES) & set(operator_types())) >= 120


WRONG = [  # operator, shapes by slot, attributes, message
    (
        "conv2d",
        {"Input": [3, 8, 8], "Filter": [4, 3, 3, 3]},
        {},
        "Input has the rank 3; give it 4 dimensions",
    ),
    ("inverse", {"X": [3]}, {}, "X has the rank 1; give it at least 2 dimensions"),
    ("solve", {"X": [2, 3, 3], "Y": [3, 3]}, {}, "have 3 and 2 dimensions; give equal"),
    ("cdist", {"X": [2, 3], "Y": [2, 4]}, {}, r"dimension 1 of .* has the length 4, and .* has 3"),
    ("pad", {"X": [2, 3]}, {"paddings": [1, 1]}, r"paddings=\[1, 1\] has 2 numbers; give 4"),
    ("slice", {"Input": [4]}, {"axes": [0], "starts": [0], "ends": [2, 3]}, "ends=.* give 1"),
    ("pool2d", {"X": [1, 1, 4, 4]}, {"strides": [1, 1, 1]}, "strides=.* has 3 numbers; give 2"),
    ("expand_v2", {"X": [2, 3]}, {"shape": [3]}, "has no length for each dimension"),
    ("reshape", {"X": [2, 3]}, {"shape": [0, 3, 0]}, "position 2"),
    ("fill_constant", {}, {"shape": [1], "dtype": "floaty"}, "dtype='floaty' is refused; give"),
    ("fill_constant_batch_size_like", {"Input": [2]}, {"shape": [1], "input_dim_idx": 3}, "3"),
    ("concat", {"X": []}, {}, "input X of concat is an empty list; give a variable"),
    ("read_from_array", {"X": [3], "Index": [1]}, {}, "is no array of tensors; make one with"),
]


@pytest.mark.parametrize("type, shapes, attributes, message", WRONG)
def test_wrong_inputs_are_named_at_the_line_of_the_user(type, shapes, attributes, message):
    with new_program() as run:
        block = run.main.global_block()
        given = {
            slot: block.create_var(slot, shape, is_data=True) if shape else []
            for slot, shape in shapes.items()
        }
        with pytest.raises(geon.GeonError, match=message) as caught:
            getattr(fluid.op, type)(**given, **attributes)
    assert f"{type} at " in str(caught.value) and "test_program_operators.py:" in str(caught.value)
    assert "its function raised" not in str(caught.value)


def test_an_error_of_a_function_says_what_it_was_given():
    register_operator(
        "test_failing",
        lambda x, *, at: {}[at],
        attributes=[Attribute("at", "int", 3)],
        replace=True,
    )
    with new_program():
        x = layers.data("x", [2])
        with pytest.raises(
            OperatorError, match="its function raised KeyError: 3; .*at=3\n.*X is x"
        ):
            layers.test_failing(x)
