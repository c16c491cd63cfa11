"""Operators against values by NumPy and SciPy, and their gradients against differences."""

import numpy as np
import pytest

from geon.frontends.program.operator_checks import check_gradient, check_output
from geon.frontends.program.registry import operator_info, operator_types
from tests.frontends.program.operator_table import CASES

# Operators without a row: draws, which test_program_executor.py checks, and those with blocks.
OTHERS = {
    "uniform_random", "gaussian_random", "truncated_gaussian_random", "dropout",
    "uniform_random_batch_size_like", "gaussian_random_batch_size_like",
    "truncated_gaussian_random_batch_size_like", "k0e", "k1e", "airy_ai", "airy_aip", "airy_bi",
    "airy_bip",
    "while", "conditional_block", "if_else", "recurrent", "write_to_array", "read_from_array",
    "array_length", "bitwise_not",
}  # fmt: skip


@pytest.mark.parametrize("type", sorted(CASES))
def test_an_operator(type):
    case = CASES[type]
    check_output(type, case.inputs, case.attributes, case.expected, rtol=1e-6)
    floats = [n for n, v in case.inputs.items() if np.asarray(v[0]).dtype.kind == "f"]
    if operator_info(type).differentiable and floats and case.slots != ():
        check_gradient(type, case.inputs, case.attributes, case.slots, tolerance=case.tolerance)


def test_all_operators_have_a_row():
    types = {type for type in operator_types() if not type.startswith("test_")}  # of other tests
    assert types - set(CASES) - OTHERS == set()
    assert len(set(CASES) & set(operator_types())) >= 120
