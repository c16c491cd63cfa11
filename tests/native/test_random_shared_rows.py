"""Random programs of several results that share rows: the values of NumPy, and the same bits with a
plan and without, on any threads.
"""

import pytest

import geon
from tests.native.together import Together
from tests.random_shared_rows import Maker
from tests.tiers import units

missing = geon.NativeTransformer.unavailable()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

UNITS = units(12)  # more with --hypothesis-profile=long
PROGRAMS = 10  # in each unit
WAYS = ((2, True), (1, True), (1, False))  # how many threads, and whether memory is planned


@pytest.mark.parametrize("unit", UNITS)
def test_random_programs_over_shared_rows(unit):
    together, cases = Together(divided=True), []
    for number in range(PROGRAMS * unit, PROGRAMS * (unit + 1)):
        program, made = Maker(number).program(), []
        for threads, plan in WAYS:
            transformer = together.transformer(threads)
            f = transformer.computation(program.results, *program.placeholders, plan=plan)
            together.add(f)
            made.append(f)
        cases.append((number, program, made))
    together.compile()
    for number, program, made in cases:
        for call in range(program.count):
            wanted = program.wanted(call)
            found, *others = [program.values(f, call) for f in made]
            program.compare(found, wanted, f"program {number}, call {call}")
            for other in others:
                assert [a.tobytes() for a in found] == [a.tobytes() for a in other], number
    assert not together.missed
