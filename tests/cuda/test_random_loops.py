"""Random programs of the tests of loop trees, as CUDA: values, and no races between threads."""

import pytest

import geon
from geon.testing import assert_agrees
from geon.transformers.pycuda.runtime import host
from tests.loops.programs import Program
from tests.tiers import units

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")


@pytest.mark.parametrize("seed", units(24))
def test_random_programs_have_no_races(seed):
    program = Program(seed)
    with geon.make_transformer("cuda-on-host", checks="races") as transformer:
        assert_agrees(transformer, program.results, program.feeds())
