"""Native nests with elementary functions of whole registers, over random programs of rows."""

import numpy as np
import pytest

import geon
from geon import Axis
from geon.op_graph.values.dtypes import kind
from geon.transformers.loops.rules.cpu import schedule
from geon.transformers.loops.tree import CachePrefetch, Role, Tree, VectorWidth, loops_of, walk
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.native.trees.lane_lines import LaneLine, independent, lane_loops
from geon.transformers.native.vectors.vector_functions import function_itemsize
from tests.loops.test_native_trees import nest_of
from tests.native.together import Together
from tests.tiers import scaled

toolchain = find_toolchain()
native_only = pytest.mark.skipif(
    toolchain is None or toolchain.vector_bytes < 32, reason="functions of registers need AVX2"
)
WIDTH = VectorWidth(64, 4, halves=False)
FUNCTIONS = (
    geon.exp,
    geon.sigmoid,
    geon.softplus,
    geon.sin,
    geon.tanh,
    lambda x: geon.mod(x, 0.75),
    lambda x: geon.floordivide(x, 0.75),
)
LENGTHS = (1, 15, 16, 17, 64, 65, 79, 80, 128, 131, 530)
BOUNDS = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-10}


class Rows:
    """Results of rows that call functions; ``lengths`` are those of a call."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.dtype = str(self.one(["float32", "float32", "float64", "float16"]))
        self.lengths = {"N": int(self.one([1, 2, 5, 9, 20])), "C": int(self.one(LENGTHS))}
        sizes = {n: None if self.random.random() < 0.3 else k for n, k in self.lengths.items()}
        self.n, self.c = (Axis(name, size) for name, size in sizes.items())
        self.leaves = [self.leaf([self.n, self.c]), self.leaf([self.c]), self.leaf([self.n])]
        x, column, row = self.leaves
        values = [x, x * column, x + row]
        for _ in range(int(self.random.integers(2, 7))):
            values.append(self.grown(values))
        self.results = [self.result(values[-1]), self.result(values[-2])]

    def one(self, options):
        return options[int(self.random.integers(len(options)))]

    def leaf(self, axes):
        return geon.placeholder(axes, self.dtype)

    def grown(self, values):
        """A value from others, of numbers that stay small."""
        x, y = self.one(values), self.one(values)
        place = geon.cast(geon.iota(self.c), self.dtype) / 512
        ways = (
            lambda: self.one(FUNCTIONS)(x),
            lambda: self.one(FUNCTIONS)(x),
            lambda: geon.maximum(x, y) * 0.5,
            lambda: geon.where(x < y, x, 0.25),
            lambda: geon.where(place < 0.1, self.leaves[0], -1),
            lambda: (x - y) * place,
            lambda: geon.cast(geon.cast(x, "float32") * 0.5, self.dtype),
            lambda: geon.flip(self.leaves[0], self.c) * 0.5 + y,
            lambda: geon.mean(self.leaves[0] * 0.25, self.c) + x,
            lambda: x - geon.max(self.leaves[0], self.c),
            lambda: geon.cast(geon.cast(x * 4, "int32"), self.dtype) * 0.25,
        )
        return geon.clip(self.one(ways)(), -3, 3)

    def result(self, x):
        """A value, or a reduction of it."""
        ways = (
            lambda: x,
            lambda: geon.sum(x, self.c),
            lambda: geon.max(x, self.c),
            lambda: geon.any(x > 2.5, self.c),
            lambda: geon.softmax(x, self.c),
            lambda: geon.logsumexp(x, self.c),
            lambda: x > 0.5,
            lambda: geon.sum(geon.cast(x, "float64")),
        )
        return self.one(ways)()

    def arrays(self):
        """Arrays for the leaves."""
        shapes = [[self.lengths[axis.name] for axis in leaf.axes] for leaf in self.leaves]
        return [self.random.normal(size=shape).astype(self.dtype) for shape in shapes]


@native_only
def test_random_rows_have_the_values_of_numpy():
    """And the same bits on one thread and on three; many of them run from trees."""
    together, cases = Together(divided=True), []
    for seed in range(scaled(120)):
        program, made = Rows(seed), []
        for threads in (1, 3):
            f = together.transformer(threads).computation(program.results, *program.leaves)
            together.add(f)
            made.append(f)
        cases.append((seed, program, made))
    together.compile()
    calls = 0
    for seed, program, (f, g) in cases:
        arrays, plain = program.arrays(), geon.NumPyTransformer()
        with np.errstate(all="ignore"):
            wanted = plain.computation(program.results, *program.leaves)(*arrays)
        calls += any(function_itemsize(nest, toolchain.vector_bytes) for nest in nests(f))
        for ours, again, right in zip(f(*arrays), g(*arrays), wanted, strict=True):
            assert ours.tobytes() == again.tobytes(), seed
            if kind(ours.dtype) != "f":
                same = np.mean(ours == right)  # comparisons of values that are nearly equal
                assert same >= 0.9, seed
                continue
            bound = max(BOUNDS[program.dtype], BOUNDS[str(ours.dtype)])
            jumps = np.abs(ours.astype("float64") - right) > bound * np.abs(right).max(initial=1)
            assert jumps.mean() <= 0.02, (seed, ours, right)  # a floor jumps
    assert calls >= scaled(120) // 4, calls
    assert not together.missed


def nests(f):
    """The nests of a computation."""
    works = [kernel.work for kernel in f.plan.schedule.kernels]
    return [work for work in works if hasattr(work, "passes")]


def softmax_tree(columns) -> Tree:
    """The tree of a softmax."""
    n, c = Axis("N"), Axis("C", columns)
    x = geon.placeholder([n, c])
    return schedule(nest_of(geon.softmax(x, c), x), WIDTH, fetches=True)


def test_whole_registers_run_rows_that_halves_of_registers_would_fill():
    lanes = [loop.size for loop in loops_of(softmax_tree(1000).body) if loop.role is Role.VECTOR]
    assert lanes.count(16) >= lanes.count(8) > 0


def test_values_that_later_passes_need_are_arrays_of_rows():
    for columns in (1000, 1 << 13, None):
        (array,) = [each for each in softmax_tree(columns).buffers if each.of_rows]
        assert array.size == (geon.Axis("C").expression if columns is None else columns)


def test_only_passes_with_functions_prefetch():
    tree = softmax_tree(1024)
    fetches = [each for each, _ in walk(tree.body) if isinstance(each, CachePrefetch)]
    assert [each.stores for each in fetches] == [False, True]
    n, c = Axis("N"), Axis("C", 1024)
    x = geon.placeholder([n, c])
    centred = schedule(nest_of(x - geon.mean(x, c), x), WIDTH, fetches=True)
    assert not any(isinstance(each, CachePrefetch) for each, _ in walk(centred.body))


def test_lanes_that_need_nothing_of_each_other_have_loops_of_their_own():
    """Results are stored last: they may share memory with what other loops load."""
    lines = [
        LaneLine("t1[each] = x0[each];", 16, "t1", "double"),
        LaneLine("y0[each] = t1[each];", 16, "y0"),
        LaneLine("t2[each] = x1[each] != 0;", 16, "t2", "_Bool"),
        LaneLine("t3[each] = t1[each] * 2;", 16, "t3", "double"),
        LaneLine("b1[0 + each] = t2[each];", 16, "b1", "_Bool"),
        LaneLine("t5[each] = x2[each];", 16, "t5", "double"),
    ]
    names = [[str(line).split("[")[0] for line in group] for group in independent(lines)]
    assert names == [["t1", "t3", "t5"], ["t2", "b1"], ["y0"]]
    again = LaneLine("t4[each] = y0[each];", 16, "t4", "float")
    assert independent([*lines, again]) == [[*lines, again]]
    changed = LaneLine("t1[each] = t3[each];", 16, "t1", "double")
    assert independent([*lines, changed]) == [[*lines, changed]]
    assert sum("for (" in line for line in lane_loops([*lines, "end"])) == 3
