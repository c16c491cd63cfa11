"""Random programs of several results that share rows, as CUDA: the values of NumPy, and no thread
writes what another one uses without a barrier between them.
"""

import pytest

import geon
from geon.transformers.pycuda.runtime import host
from tests.random_shared_rows import Maker
from tests.tiers import scaled

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")

PROGRAMS = scaled(10)  # 10, and more with --hypothesis-profile=long


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_random_programs_over_shared_rows(number):
    program = Maker(1000 + number).program()
    with geon.make_transformer("cuda-on-host", checks="races") as transformer:
        f = transformer.computation(program.results, *program.placeholders)
        for call in range(program.count):
            program.compare(program.values(f, call), program.wanted(call), f"call {call}")
