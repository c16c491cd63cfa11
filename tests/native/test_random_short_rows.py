"""Random programs over open and short axes: the values of NumPy, the same bits on any threads, and
nothing written beside results.
"""

import numpy as np
import pytest

import geon
from geon.op_graph.op_graph import post_order
from geon.op_graph.values.dtypes import kind
from tests.native.together import Together
from tests.random_short_rows import Maker
from tests.tiers import units

missing = geon.NativeTransformer.unavailable()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

UNITS = units(12)  # more with --hypothesis-profile=long
PROGRAMS = 14  # in each unit
GUARD = 256  # bytes before and after a result
MARK = 0xA5


def guarded(like):
    """An array to write into, and the bytes around and in it."""
    memory = np.full(like.nbytes + 2 * GUARD, MARK, np.uint8)
    inside = memory[GUARD : GUARD + like.nbytes].view(like.dtype).reshape(like.shape)
    return inside, memory


def hold(found, wanted, narrowest, say):
    if kind(wanted.dtype) != "f":
        np.testing.assert_array_equal(found, wanted, say)
        return
    a, b = found.astype("float64"), wanted.astype("float64")
    within = {2: 2e-2, 4: 1e-4, 8: 1e-10}[narrowest]
    most = np.abs(b[np.isfinite(b)]).max(initial=1)
    np.testing.assert_allclose(a, b, within, within * most, err_msg=say)


def run(f, arrays):
    """What a computation gives, or the kind of its error."""
    try:
        return f(*arrays)
    except geon.GeonError as error:
        return type(error)


@pytest.mark.parametrize("unit", UNITS)
def test_random_programs_over_short_rows(unit):
    check(range(PROGRAMS * unit, PROGRAMS * (unit + 1)))


def test_a_choice_of_a_vector_that_is_read_from_memory():
    """In program 159 both of its operands are vectors, of which gcc refused one for its type."""
    check([159])


def check(numbers):
    """Raise where one of these programs differs from NumPy's, or between threads and plans."""
    together, cases = Together(divided=True), []
    for number in numbers:
        program = Maker(number).program()
        made = []
        for threads, plan in ((2, True), (1, False)):
            transformer = together.transformer(threads)
            f = transformer.computation(program.results, *program.placeholders, plan=plan)
            together.add(f)
            made.append(f)
        cases.append((number, program, made))
    together.compile()
    for number, program, (f, g) in cases:
        floats = [op.dtype for op in post_order(program.results) if kind(op.dtype) == "f"]
        narrowest = min((dtype.itemsize for dtype in floats), default=8)
        numpy = geon.NumPyTransformer().computation(program.results, *program.placeholders)
        for call, lengths in enumerate(program.calls):
            arrays, say = program.feeds(call), f"program {number}, {lengths}"
            with np.errstate(all="ignore"):
                wanted = run(numpy, arrays)
            found, plain = run(f, arrays), run(g, arrays)
            if isinstance(wanted, type):
                assert found is plain is wanted, say
                continue
            outs = [guarded(each) for each in found]
            again = f(*arrays, out=[inside for inside, _ in outs])
            for a, b, c, d, (_, memory) in zip(wanted, found, plain, again, outs, strict=True):
                hold(b, a, narrowest, say)
                assert b.tobytes() == c.tobytes() == d.tobytes(), say
                assert (memory[:GUARD] == MARK).all() and (memory[-GUARD:] == MARK).all(), say
    assert not together.missed
