"""Values of statements are replaced when they are first read, by one substitution for all."""

import numpy as np

import geon
from geon import Axis
from geon.op_graph.axes.affine import AffineIndex, Quotient, Remainder, variable
from geon.op_graph.rows.elementwise import add, multiply
from geon.op_graph.values.dtypes import FLOAT32
from geon.transformers.kernels.ir.nest import Keep, Nest, Store
from geon.transformers.kernels.ir.scalar_code import Kept, Load, ScalarBuilder, walk
from geon.transformers.kernels.structural_key import structure
from geon.transformers.loops.access import accesses, uses
from geon.transformers.loops.rules.cpu import schedule
from geon.transformers.loops.substitution import BufferLayout, DeferredSubstitution, Substitution
from geon.transformers.loops.tree import VectorWidth, Write, values_of
from geon.transformers.loops.tree import walk as walk_statements
from geon.transformers.native.trees import tree_choice as native_choice
from geon.transformers.pycuda.kernels import tree_choice as cuda_choice
from tests.golden.emitting import Cuda, Native

NAMES = ("i", "j", "k")
LAYERS = 3


def random_index(random):
    """An index over some variables, maybe with a quotient and a remainder."""
    terms = [(name, int(random.integers(1, 5))) for name in NAMES if random.integers(2)]
    index = AffineIndex(terms, int(random.integers(3)))
    kind = random.integers(4)
    if kind == 0:
        return variable(Quotient(index, 4)) * 3 + variable(str(random.choice(NAMES)))
    return variable(Remainder(index, 6)) + 2 if kind == 1 else index


def random_write(code, random):
    """A statement that loads from an operand and two buffers, and stores to all of them."""
    loads = [code(Load, 0, random_index(random), FLOAT32)]
    loads += [code(Kept, number, random_index(random), FLOAT32) for number in (0, 1)]
    value = code.apply(add, code.apply(multiply, *loads[:2]), loads[2])
    stores = [Store(1, random_index(random), value, FLOAT32)]
    stores += [Keep(number, random_index(random), value) for number in (0, 1)]
    return Write(tuple(stores))


def random_change(random):
    """Variables, buffers and layouts to replace."""
    env = {name: random_index(random) for name in NAMES if random.integers(2)}
    layouts = {}
    for number in range(4):
        if random.integers(2):
            layouts[number] = BufferLayout(int(random.integers(1, 4)), random_index(random))
    return env, {0: int(random.integers(4))}, layouts


def test_several_substitutions_that_are_deferred_are_those_one_after_another():
    for seed in range(300):
        random = np.random.default_rng(seed)
        code = ScalarBuilder()
        eager = late = random_write(code, random)
        for _ in range(int(random.integers(1, 5))):
            change = random_change(random)
            eager = Substitution(code, *change).statement(eager)
            late = DeferredSubstitution(code, *change).statement(late)
            if random.integers(3) == 0:
                values_of(late)
        assert uses((late,)) == uses((eager,))
        assert accesses((late,)) == accesses((eager,))
        for one, other in zip(late.stores, eager.stores, strict=True):
            assert type(one) is type(other)
            assert one.offset == other.offset
            assert one.value is other.value  # equal nodes of one builder are one


def columns_of(depth):
    """The nest of sums of columns whose elements take ``depth`` operations."""
    n, c = Axis("N", 4000), Axis("C", 64)
    x = geon.placeholder([n, c])
    value = x
    for number in range(depth):
        value = geon.maximum(value * (number + 0.5) + x, number)
    (kernel,) = Native().computation(geon.sum(value, n), x).plan.schedule.kernels
    return kernel.work


def test_rules_build_scalar_code_at_most_twice(monkeypatch):
    nest = columns_of(40)
    (reduction,) = nest.passes[0].reductions
    nodes = len(list(walk(*reduction.elements)))
    built = []
    real = ScalarBuilder.__call__
    monkeypatch.setattr(
        ScalarBuilder, "__call__", lambda self, *key: built.append(key) or real(self, *key)
    )
    tree = schedule(nest, VectorWidth(64, 4))
    assert len(built) <= 2 * nodes  # thirty transformations, of which each changes all indices
    folds = [each for each, _ in walk_statements(tree.body) if nodes <= len(walked(each))]
    assert folds  # the elements are there


def walked(statement):
    """The nodes of a statement's values."""
    return list(walk(*values_of(statement)))


def layers():
    """A sum of equal layers: their kernels have equal structure."""
    n, c = Axis("N", 48), Axis("C", 64)
    x = geon.placeholder([n, c])
    value, weights = x, []
    for _ in range(LAYERS):
        weights.append(geon.variable([c, c.prime], initial_value=0.1))
        product = geon.rename(geon.dot(value, weights[-1], over=c), {c.prime: c})
        value = geon.softmax(product, c) + geon.mean(product, n)
    return geon.sum(value), x


def test_kernels_of_equal_structure_are_scheduled_once(monkeypatch):
    result, x = layers()
    for choice, transformer in ((native_choice, Native()), (cuda_choice, Cuda(own=False))):
        scheduled = []
        real = choice.schedule

        def spy(nest, *options, real=real, scheduled=scheduled, **others):
            scheduled.append((structure(nest), options, tuple(others.items())))
            return real(nest, *options, **others)

        monkeypatch.setattr(choice, "schedule", spy)
        f = transformer.computation(result, x)
        nests = [k.work for k in f.plan.schedule.kernels if isinstance(k.work, Nest)]
        assert f.source
        assert len({structure(nest) for nest in nests}) < len(nests)
        assert scheduled
        assert len(set(scheduled)) == len(scheduled)
