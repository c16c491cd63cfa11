"""The published node cases: a tenth of them in rotation, with ``--all`` all of them."""

import pytest

import geon
from tests.frontends.onnx import node_cases
from tests.frontends.onnx.failing_cases import FAILING, HALVES, NOISY, RANDOM

SHARES = 10


def test_cases_pass_or_are_listed(request):
    first = request.config.option.cases_seed % SHARES
    modules = node_cases.MODULES[first::SHARES]
    if request.config.option.all:
        modules = node_cases.MODULES
    found = node_cases.load(modules)
    assert len(found) > (1300 if request.config.option.all else 20)
    transformer = geon.NumPyTransformer()
    wrong = [text for case in found if (text := node_cases.complaint(case, transformer))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_each_listed_pattern_has_a_case():
    names = {case.name.removeprefix("test_") for case in node_cases.load()}
    operators = {case.model.graph.node[0].op_type for case in node_cases.load()}
    unused = [
        pattern
        for pattern in FAILING
        if pattern not in operators
        and not any(node_cases.fnmatchcase(name, pattern) for name in names)
    ]
    assert not unused
    assert names >= {name.removeprefix("test_") for name in (*HALVES, *NOISY, *RANDOM)}
