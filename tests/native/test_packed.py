"""Carries side by side in vectors: the bits are those of scalars, whatever the vectors' width."""

import numpy as np
import pytest

import geon
from geon.transformers.kernels.ir.scalar_code import Apply, children_of
from geon.transformers.kernels.scans.sequential_scan import OrderedLoop
from geon.transformers.kernels.scans.slp import Nodes, Packed, SlpPacker, Vector, steps
from geon.transformers.kernels.scans.slp_cost import choose_packing, instructions, time
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.native.vectors import scan_copies

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
T = geon.Axis("T")
WIDTHS = [16, 32, 64]


def floats(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape) + 1).normal(size=shape).astype(dtype)


def ring(count, dtype="float32"):
    """Neighbours on a ring, with their gradient."""
    force, start = geon.placeholder([T], dtype), geon.placeholder([geon.Axis("R", count)], dtype)

    def step(at, each):
        new = [at[k] + 0.01 * ((at[(k + 1) % count] - at[k - 2]) * at[k - 1] - at[k] + each)
               for k in range(count)]  # fmt: skip
        return new, new[0]

    last, seen = geon.scan(step, [start[k] for k in range(count)], force)
    total = sum(geon.square(each) for each in last)
    return [*last, seen, *geon.deriv(total, [force, start])], [force, start]


def products():
    """4×4 products, with their gradient."""
    a, b = geon.Axis("A", 4), geon.Axis("B", 4)
    m, start = geon.placeholder([T, a, a.prime]), geon.placeholder([a, b])

    def step(s, each):
        return geon.dot(each, geon.cast_axes(s, [a.prime, b])), None

    last, _ = geon.scan(step, start, m, over=T)
    return [last, geon.deriv(geon.sum(geon.square(last)), m)], [m, start]


def mixed():
    """Rows that are no operators of vectors, numbers that differ, integers, delays, a sum."""
    x, start = geon.placeholder([T], name="x"), geon.placeholder([geon.Axis("S", 9)], name="start")

    def step(c, e):
        *at, n, old = c
        new = [geon.tanh(at[k] * (0.1 * k - 0.3)) / (1.5 + k) - geon.maximum(at[k - 1], e)
               for k in range(9)]  # fmt: skip
        return [*new, n + 1, at[3]], (sum(new), old)

    (*last, n, old), seen = geon.scan(step, [*[start[k] for k in range(9)], 0, 0.0], x)
    total = sum(each * each for each in last)
    return [*last, n, old, *seen, *geon.deriv(total, [x, start])], [x, start]


def one_after_another():
    """Each reads the new value of the one before it."""
    x, start = geon.placeholder([T]), geon.placeholder([geon.Axis("S", 8)])

    def step(c, e):
        new = []
        for k in range(8):
            new.append(0.5 * c[k] + (new[-1] if new else e))
        return new, None

    last, _ = geon.scan(step, [start[k] for k in range(8)], x)
    return [*last, *geon.deriv(sum(last), [x, start])], [x, start]


def run(made, leaves, feeds, vector_bytes, monkeypatch):
    """Results of a program with vectors of so many bytes, none for 0, and what was packed."""
    found = []

    def chosen(work, _):
        found.append(choose_packing(work, vector_bytes) if vector_bytes else None)
        return found[-1]

    monkeypatch.setattr(scan_copies, "choose_packing", chosen)
    marked = geon.placeholder([], name="marked")  # another program for each width
    made = [*made, marked * float(vector_bytes)]
    f = geon.NativeTransformer(threads=1).computation(made, *leaves, marked)
    results = f(*feeds, np.float32(1))[:-1]
    return results, [each for each in found if each is not None]


@pytest.mark.parametrize("vector_bytes", WIDTHS)
@pytest.mark.parametrize(
    ("program", "packs"),
    [
        (lambda: ring(60), 2),
        (lambda: ring(61), 2),
        (lambda: ring(8, "float64"), None),
        (products, 2),
        (mixed, None),
        (one_after_another, None),
    ],
)
def test_the_bits_are_those_of_scalars(program, packs, vector_bytes, monkeypatch):
    made, leaves = program()
    for count in (0, 1, 6):
        shapes = [[count if axis == T else axis.length for axis in leaf.axes] for leaf in leaves]
        feeds = [floats(*shape, dtype=leaves[0].dtype) for shape in shapes]
        if count == 6:
            feeds[0][2] = np.inf
        wanted, none = run(made, leaves, feeds, 0, monkeypatch)
        found, some = run(made, leaves, feeds, vector_bytes, monkeypatch)
        assert not none and (packs is None or count or len(some) == packs)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(np.signbit(one), np.signbit(other))


def loops(made, leaves):
    f = geon.NativeTransformer(threads=1).computation(made, *leaves)
    return [k.work for k in f.plan.schedule.kernels if isinstance(k.work, OrderedLoop)]


@pytest.mark.parametrize("vector_bytes", WIDTHS)
@pytest.mark.parametrize("program", [lambda: ring(60), products])
def test_every_scalar_has_one_home_behind_what_it_needs(program, vector_bytes):
    for work in loops(*program()):
        made = choose_packing(work, vector_bytes)
        assert made is not None and made.width <= vector_bytes // 4
        there = {id(node) for vector, _ in made.carries for node in vector.lanes}
        for vector in made.vectors:
            own = {id(node) for node in vector.lanes}
            for node in vector.lanes:
                needed = {id(part) for part in children_of(node) if id(part) in made.homes}
                assert needed <= there and not needed & own
                if isinstance(node, Apply):
                    assert node.row is vector.apply.row
            there |= {key for key in own if made.homes[key][0] is vector}
        carried = [number for _, numbers in made.carries for number in numbers]
        assert len(set(carried)) == len(carried)


def test_sixty_equal_steps_are_eight_of_a_vector_of_eight():
    forward = loops(*ring(60))[0]
    made = choose_packing(forward, 32)
    assert made.width == 8 and len(made.carries) == 8
    assert len(made.vectors) == 8 * 6  # two sums, two differences and two products each


def test_scalars_that_a_turn_ends_with_stand_beside_vectors():
    """The sum of all slopes of a turn is a chain of 60, spread among the vectors."""
    reverse = loops(*ring(60))[1]
    made = choose_packing(reverse, 32)
    order = steps(reverse, made)
    chain = made.chain(reverse)
    assert {id(each) for each in order} == {id(each) for each in (*made.vectors, *chain)}
    places = [k for k, each in enumerate(order) if not isinstance(each, Vector)]
    assert len(places) > 50 and places[len(places) // 4] < len(order) // 2
    there = {id(node) for vector, _ in made.carries for node in vector.lanes}
    for each in order:
        nodes = each.lanes if isinstance(each, Vector) else (each,)
        needed = {id(part) for node in nodes for part in children_of(node)}
        assert {key for key in needed if key in made.homes} <= there
        there |= {id(node) for node in nodes}


def test_small_systems_that_wait_for_lanes_stay_scalars():
    """Their instructions would be fewer, but each turn would wait for the one before it longer."""
    count = 10
    x, start = geon.placeholder([T]), geon.placeholder([geon.Axis("S", count)])

    def step(c, e):
        ends = [c[0] + e, c[-1]]
        inner = [c[k] + 0.1 * (c[k - 1] - 2 * c[k] + c[k + 1]) for k in range(1, count - 1)]
        return [ends[0], *inner, ends[1]], None

    last, _ = geon.scan(step, [start[k] for k in range(count)], x)
    (work,) = loops(list(last), [x, start])
    made = choose_packing(work, 32)
    assert made is None or made.width < 8
    dtype = work.carries[0].dtype
    eight = SlpPacker(work, Nodes(work), dtype, 8).made()
    scalars = Packed(dtype, 1, (), (), (), {})
    assert instructions(work, eight) < instructions(work, scalars)
    assert time(work, eight) > time(work, scalars)


def test_scalars_that_wait_for_each_other_stay_scalars():
    assert choose_packing(loops(*one_after_another())[0], 32) is None
