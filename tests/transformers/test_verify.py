"""The plan verifier refuses plans that were broken on purpose; those that pass are right."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geon
from geon.transformers.loading.environment import debugging
from geon.transformers.lowering.planning.plan import Home, place_plan
from geon.transformers.lowering.planning.plan_verifier import verify_plan
from geon.transformers.sizes.buffers import Buffer

N, H, K = geon.Axis("N"), geon.Axis("H"), geon.Axis("K")


def example():
    """Values in the arena, in a result and in a variable, and a position that is checked."""
    x = geon.placeholder(axes=[N, H])
    at = geon.placeholder(dtype="int64")
    w = geon.Variable(axes=H, initial_value=np.ones(4, np.float32))
    rows = geon.tanh(x) * w
    picked = geon.exp(x)[{N: at}]
    total = geon.sum(rows, N) + picked + geon.sum(geon.sin(rows) * rows, N)
    return [geon.assign(w, w - 0.1 * total), geon.cos(rows) + total], [x, at]


@pytest.fixture
def plan():
    results, inputs = example()
    return geon.NumPyTransformer().computation(results, *inputs).plan


def in_order(plan, kernels):
    """The plan with its kernels in another order."""
    schedule = dataclasses.replace(plan.schedule, kernels=tuple(kernels))
    return dataclasses.replace(plan, schedule=schedule)


def at_home(plan, op, home):
    """The plan with another home for the value of ``op``."""
    return dataclasses.replace(plan, homes={**plan.homes, op: home})


def position(plan, test):
    return next(k for k, kernel in enumerate(plan.schedule.kernels) if test(kernel))


def test_a_sound_plan_passes(plan):
    verify_plan(plan)


def test_a_value_read_before_it_is_computed(plan):
    kernels = list(plan.schedule.kernels)
    first = position(plan, lambda k: k.op.primitive.name == "tanh")
    kernels.append(kernels.pop(first))
    with pytest.raises(geon.PlanError, match="not computed before"):
        verify_plan(in_order(plan, kernels))


def test_a_value_that_is_not_computed(plan):
    kernels = list(plan.schedule.kernels)
    del kernels[position(plan, lambda k: k.op.primitive.name == "tanh")]
    with pytest.raises(geon.PlanError, match="not computed before"):
        verify_plan(in_order(plan, kernels))


def test_a_result_that_is_not_computed(plan):
    with pytest.raises(geon.PlanError):
        verify_plan(in_order(plan, plan.schedule.kernels[:-1]))


def test_a_variable_written_before_its_old_value_is_read():
    v, x = geon.Variable(axes=H, initial_value=1), geon.placeholder(axes=H)
    f = geon.NumPyTransformer().computation([geon.assign(v, geon.sin(x)), geon.cos(v)], x)
    with pytest.raises(geon.PlanError, match="was written into it"):
        verify_plan(in_order(f.plan, f.plan.schedule.kernels[::-1]))


def test_a_kernel_that_can_raise_after_a_write(plan):
    kernels = list(plan.schedule.kernels)
    last = position(plan, lambda k: bool(k.writes))
    for late in range(last + 1, len(kernels)):
        kernels[late] = dataclasses.replace(kernels[late], raises=True)
    kernels.append(dataclasses.replace(kernels[0], raises=True))
    with pytest.raises(geon.PlanError, match="can raise after"):
        verify_plan(in_order(plan, kernels))


def test_a_loop_that_can_be_interrupted_after_a_write(plan):
    kernels = list(plan.schedule.kernels)
    last = position(plan, lambda k: bool(k.writes))
    kernels = [dataclasses.replace(k, raises=False, stops=n > last) for n, k in enumerate(kernels)]
    kernels.append(dataclasses.replace(kernels[0], stops=True))
    with pytest.raises(geon.PlanError, match="can be interrupted after"):
        verify_plan(in_order(plan, kernels))


def test_a_new_value_outside_its_storage(plan):
    ((_, op),) = plan.schedule.program.updates
    with pytest.raises(geon.PlanError, match="not in its storage"):
        verify_plan(at_home(plan, op, Home("arena", 0)))


def test_a_result_that_lives_in_the_arena(plan):
    (op,) = plan.schedule.program.outputs
    with pytest.raises(geon.PlanError, match="should be a result"):
        verify_plan(at_home(plan, op, Home("arena", 0)))


def test_buffers_that_die_too_early(plan):
    buffers = tuple(Buffer(b.size, b.first, b.first) for b in plan.buffers)
    with pytest.raises(geon.PlanError):
        verify_plan(dataclasses.replace(plan, buffers=buffers))


def test_buffers_that_are_too_small(plan):
    buffers = tuple(Buffer(8, b.first, b.last) for b in plan.buffers)
    with pytest.raises(geon.PlanError):
        verify_plan(dataclasses.replace(plan, buffers=buffers))


def test_a_library_call_over_its_operand(plan):
    """A sum reads elements after it wrote others."""
    total = next(
        k for k in plan.schedule.kernels
        if k.op.primitive.name == "sum" and plan.homes[k.op].kind == "arena"
    )  # fmt: skip
    read = next(v for v in total.reads if v in plan.homes)
    with pytest.raises(geon.PlanError):
        verify_plan(at_home(plan, total.op, plan.homes[read]))


# Broken at random -------------------------------------------------------------------------------


def programs():
    """Small computations with effects, whose plans have something to break."""
    yield example()
    v = geon.Variable(axes=H, initial_value=np.arange(4, dtype=np.float32))
    u = geon.Variable(axes=H, initial_value=np.ones(4, np.float32))
    x = geon.placeholder(axes=[N, H])
    at = geon.placeholder(dtype="int64")
    swap = geon.doall([geon.assign(v, u + geon.sum(x, N)), geon.assign(u, v * x[{N: at}])])
    yield [swap, v + u, geon.softmax(x * v, normalization_axes=H)], [x, at]
    y = geon.sort(geon.sin(x), H)
    part = geon.update(y, geon.cumsum(x[{N: 0}]), {N: 0}) - y
    yield [geon.assign(v, geon.sum(part * y, N)), geon.dot(part, y, over=N), part[{N: at}]], [x, at]


def run(results, inputs, change=None):
    """Results and new variables, computed by a plan that ``change`` was made to."""
    transformer = geon.NumPyTransformer()
    f = transformer.computation(results, *inputs)
    plan = f.plan if change is None else change(f.plan)
    verify_plan(plan)
    program = transformer.compile(plan, f.linking)
    f._calls[()] = transformer.link(program.functions, f.stages())
    random = np.random.default_rng(1)
    found = f(random.normal(size=(3, 4)).astype(np.float32), 1)
    arrays = [a for a in found if a is not None]
    return [a.tobytes() for a in (*arrays, *map(transformer.get, f.linking.variables))]


@st.composite
def changes(draw):
    """A function that moves kernels and homes of a plan."""
    numbers = draw(st.lists(st.tuples(*[st.integers(0, 40)] * 3), min_size=1, max_size=3))

    def change(plan):
        for which, a, b in numbers:
            kernels = list(plan.schedule.kernels)
            first, second = a % len(kernels), b % len(kernels)
            if which % 3 == 0:
                kernels.insert(second, kernels.pop(first))
                plan = in_order(plan, kernels)
            elif which % 3 == 1:
                homes = list(plan.homes.items())
                plan = at_home(plan, homes[a % len(homes)][0], homes[b % len(homes)][1])
            else:
                sizes = list(plan.buffers)
                at = a % len(sizes)
                low, high = sorted([sizes[at].first, b % (len(kernels) + 1)])
                sizes[at] = Buffer(sizes[at].size, low, high)
                plan = dataclasses.replace(plan, buffers=tuple(sizes))
        return plan

    return change


@pytest.mark.parametrize("number", range(3))
def test_what_passes_computes_the_same(number):
    results, inputs = list(programs())[number]
    expected = run(results, inputs)
    passed = []

    @given(changes())
    def broken(change):
        try:
            found = run(results, inputs, change)
        except geon.PlanError:
            return
        passed.append(1)
        assert found == expected

    broken()
    assert passed, "no changed plan passed: nothing was compared"


def test_the_session_verifies_every_plan(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "geon.transformers.lowering.planning.plan_verifier.verify_plan", seen.append
    )
    x = geon.placeholder(axes=N)
    f = geon.NumPyTransformer().computation(geon.sin(x) * 123.0, x)
    assert seen == [] and f.plan is seen[0]
    assert debugging("verify")


def test_placing_is_exact(plan):
    placed = place_plan(plan, {"N": 100, "H": 30})
    ends = [
        offset + (b.size if isinstance(b.size, int) else b.size.evaluate({"N": 100, "H": 30}))
        for offset, b in zip(placed.offsets, plan.buffers, strict=True)
    ]
    assert placed.arena_bytes - 64 < max(ends) <= placed.arena_bytes
