"""A part of the numeric suite for a process with the address sanitizer; see test_sanitized.py.

Everything is compiled with checks of memory and arithmetic, many computations in one unit, and
runs on three threads. The first error ends the process.
"""

import numpy as np
import pytest

import geon
from geon.testing import assert_agrees
from geon.testing.samples import SAMPLES
from tests import window_cases
from tests.loops.programs import Program
from tests.native.jammed_rows import TAKEN, JammedRows
from tests.native.test_random_native import compare, drawn
from tests.native.together import Together, results_of
from tests.native.vectored_nests import VectoredNest
from tests.native.wide_convolutions import WideConvolution
from tests.random_borders import Borders
from tests.random_pools import Pooling

N, M = geon.Axis("N"), geon.Axis("M")
C, D = geon.Axis("C", 5), geon.Axis("D", 33)
LENGTHS = [(0, 1), (1, 0), (0, 0), (1, 1), (2, 17), (16, 64), (65, 3), (130, 48)]


def samples_of(half):
    """Every second sample of the conformance suite: results and feeds for all of its dtypes."""
    for sample in [sample for group in SAMPLES.values() for sample in group][half::2]:
        results, feeds = [], {}
        for dtype in sample.dtypes:
            built, arrays = sample.results(dtype)
            results += built
            feeds |= arrays
        yield results, feeds


@pytest.mark.parametrize("half", [0, 1])
def test_samples_of_every_row(half):
    together = Together(divided=True, sanitize=True)
    transformer = together.transformer(threads=3)
    cases = list(samples_of(half))
    for results, feeds in cases:
        together.add(transformer.computation(results, *feeds))
    together.compile()
    for results, feeds in cases:
        assert_agrees(transformer, results, feeds)
    assert not together.missed


def test_random_graphs():
    compare(drawn(7, each=3), Together(divided=True, sanitize=True), "sanitized")


def test_random_pools_and_loops():
    """Programs of the tests of loop trees, and pools beside borders that no turns divide.

    Cases 6 and 7 of ``pooling_case`` once stored outside of their results.
    """
    together = Together(divided=True, sanitize=True)
    transformer = together.transformer(threads=3)
    cases = []
    for number in (6, 7):
        case, random = window_cases.pooling_case(number)
        results, leaves = window_cases.pooling_graph(case)
        arrays = window_cases.pooling_arrays(case, random)
        cases.append((results, dict(zip(leaves, arrays, strict=True)), 1.0))
    for number in range(3):
        pooling = Pooling(number)
        cases.append((pooling.results, pooling.feeds(), None))
    for seed in range(24):
        program = Program(seed)
        cases.append((program.results, program.feeds(), None))
    x, y = geon.placeholder([N, C]), geon.placeholder([C, M])  # a product: `DIVIDED` is of those
    cases.append(([geon.dot(x, y)], {x: np.ones((9, 5), "f4"), y: np.ones((5, 7), "f4")}, None))
    for results, feeds, _ in cases:
        together.add(transformer.computation(results, *feeds))
    together.compile()
    for results, feeds, floor in cases:
        assert_agrees(transformer, results, feeds, floor=floor)
    assert not together.missed


def test_random_borders():
    """Windows, joins, slices, scans and sorts, of lengths around those that kernels are cut at."""
    together = Together(divided=True, sanitize=True)
    transformer = together.transformer(threads=3)
    cases = [Borders(number) for number in range(20)]
    for case in cases:
        together.add(transformer.computation(case.results, *case.leaves))
    together.compile()
    for case in cases:
        assert_agrees(transformer, case.results, case.feeds())
    assert not together.missed


def test_random_wide_convolutions():
    """What tiles read of windows in place, and copies of what is beyond borders."""
    together = Together(divided=True, sanitize=True)
    transformer = together.transformer(threads=3)
    cases = [WideConvolution(seed) for seed in range(100, 112)]
    made = [transformer.computation(case.results, *case.feeds()) for case in cases]
    for f in made:
        together.add(f)
    together.compile()
    for case, f in zip(cases, made, strict=True):
        case.check(f(*case.feeds().values()))
    assert not together.missed


def test_random_rows_that_are_taken_together():
    """Vectors that begin anywhere, and what is left of rows and of their number."""
    cases = [JammedRows(seed) for seed in range(400, 424)]
    assert sum(results_of(cases, 3, TAKEN, sanitize=True)[1]) > 4


def test_nests_of_vectors():
    """Vectors of columns and of rows, whose last ones end where memory may."""
    cases = [VectoredNest(seed) for seed in range(900, 930)]
    assert sum(results_of(cases, 3, "GEON_AT(f", sanitize=True)[1]) > 15


# Open lengths -----------------------------------------------------------------------------------


def graphs():
    """Computations over open lengths: their results, and the placeholders they read."""
    x, y = geon.placeholder([N, C]), geon.placeholder([C, M])
    z, wide = geon.placeholder([N, M]), geon.placeholder([N, D, M])
    half, at = geon.placeholder([N, M], "bfloat16"), geon.placeholder([N], "int64")
    last = geon.tensor_size(geon.iota(M))
    longer, position = geon.pad(z, {M: (0, 1)}), geon.clip(at, 0, last)
    product = geon.dot(x, y)
    stream = geon.Random(3)
    taller = geon.pad(z, {N: (1, 0)})
    yield [geon.tanh(product + geon.sum(y, C)), geon.dot(x, x, over=N)], [x, y]
    yield geon.deriv(geon.sum(geon.tanh(product) ** 2), [x, y]), [x, y]
    yield [geon.dot(wide, geon.rename(wide, {D: "E"}), over=M)], [wide]
    yield [geon.softmax(longer, normalization_axes=M), z - geon.sum(z, M)], [z]
    yield [geon.softmax(taller, normalization_axes=N), geon.sum(z, N), geon.prod(z)], [z]
    yield [geon.reorder(wide, [M, D, N]) * 2, geon.reorder(z, [M, N])], [wide, z]
    yield [geon.reorder(geon.flip(z, N), [M, N]), geon.reorder(geon.flip(z, M), [M, N])], [z]
    yield [geon.concat([z, taller[::-1]], N), geon.flip(z[:, ::3], M), geon.flatten(longer)], [z]
    yield [geon.pad(geon.gather(longer, position, M), {N: (2, 5)})], [z, at]
    yield [geon.scatter(longer, position, geon.sum(z, M), M)], [z, at]
    yield [geon.sort(z, M), geon.argsort(z, N), geon.cumsum(wide, D)], [z, wide]
    yield [geon.argmax(longer, M), geon.max(taller, N), *geon.top_k(longer, 1, M)], [z]
    yield [geon.exp(half) + half, geon.sum(half, M), geon.cast(half, "float16")], [half]
    yield [stream.normal([N, M]) + z, stream.bits([M])], [z]


@pytest.fixture(scope="module")
def open_lengths():
    """The computations, compiled in one unit."""
    together = Together(divided=True, sanitize=True)
    transformer = together.transformer(threads=3)
    made = list(graphs())
    for results, inputs in made:
        together.add(transformer.computation(results, *inputs))
    together.compile()
    yield transformer, made
    assert not together.missed


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_open_lengths(open_lengths, lengths):
    transformer, made = open_lengths
    sizes = {"N": lengths[0], "M": lengths[1]}
    random = np.random.default_rng(0)
    for results, inputs in made:
        feeds = {}
        for leaf in inputs:
            shape = [sizes.get(axis.name, axis.length) for axis in leaf.axes]
            feeds[leaf] = random.normal(size=shape).astype(leaf.dtype)
        assert_agrees(transformer, results, feeds)
