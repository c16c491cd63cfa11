"""Kernels that need nothing of each other: one launch where they are small, else own lanes.

A device that is the CPU runs the last lane first, so what needs the order of lanes computes wrong.
"""

import dataclasses

import numpy as np
import pytest

import geon
from geon.op_graph.op_graph import storage_leaves
from geon.transformers.lowering.planning import concurrent_waves
from geon.transformers.lowering.planning.plan import place_plan
from geon.transformers.lowering.planning.plan_verifier import verify_plan
from geon.transformers.pycuda.emit.cuda_module import make_module
from geon.transformers.pycuda.kernels import horizontal_fusion
from geon.transformers.pycuda.launches import launch_ir
from geon.transformers.pycuda.runtime import bound_launches, gpu, host
from tests.golden.emitting import Cuda

from . import fake_cuda
from .devices import transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
SHAPES = [(10,), (64, 64), (3, 5, 7), (1000,), (1,), (64, 64), (1, 2049)]


def optimizer(shapes=SHAPES):
    """Momentum steps, whose rates hang on sums, of unrelated variables."""
    variables, slopes, updates = [], [], []
    for k, shape in enumerate(shapes):
        axes = [geon.Axis(f"a{k}_{j}", n) for j, n in enumerate(shape)]
        w = geon.Variable(axes, initial_value=k + 1, name=f"w{k}")
        v = geon.Variable(axes, initial_value=0, name=f"v{k}")
        g = geon.placeholder(axes, name=f"g{k}")
        new = 0.9 * v + g / (1 + geon.sum(geon.square(g)))
        updates += [geon.assign(v, new), geon.assign(w, w - new / (1 + geon.max(abs(new))))]
        variables.append(w)
        slopes.append(g)
    return variables, slopes, geon.doall(updates)


def steps_of(f):
    """The launches of a computation, that of several kernels as one."""
    return f.stages().compiled.module.steps


def trained(name, calls=4, **options):
    """What variables hold after some steps, and the computation."""
    plan = options.pop("plan", True)
    variables, slopes, update = optimizer()
    random = np.random.default_rng(0)
    given = [random.normal(size=g.axes.lengths).astype(np.float32) for g in slopes]
    with geon.make_transformer(name, **options) as transformer:
        f = transformer.computation(update, *slopes, plan=plan)
        for _ in range(calls):
            f(*given)
        return [transformer.get(w) for w in variables], f


def test_small_kernels_become_one_launch():
    found, f = trained("cuda-on-host")
    assert len(f.plan.schedule.kernels) == 3 * len(SHAPES)
    joined = [s for s in steps_of(f) if isinstance(s.grid, launch_ir.Grids)]
    assert len(steps_of(f)) <= 8 and sum(len(s.grid.grids) for s in joined) >= 2 * len(SHAPES)
    assert f.source.count(" + ceil(") >= len(SHAPES) - 1
    expected, _ = trained("numpy")
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    apart, _ = trained("cuda-on-host", plan=False)
    for a, b in zip(found, apart, strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("checks", ["races"])
def test_a_joined_launch_has_no_races(checks):
    trained("cuda-on-host", 2, checks=checks)


def values(random, count, axes, leaves):
    """A random graph of sums, products and elementwise ops, with values that others share."""
    found = list(leaves)
    for _ in range(count):
        a, b = (found[random.integers(len(found))] for _ in range(2))
        kind = random.integers(4)
        if kind == 0:
            found.append(geon.tanh(a) + b * 0.5)
        elif kind == 1:
            found.append(a - geon.sum(b, reduction_axes=axes[1]) * 0.1)
        elif kind == 2:
            found.append(geon.softmax(a, normalization_axes=axes[1]) * b)
        else:
            found.append(b - geon.mean(a, axes[0]))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_any_order_of_lanes_gives_the_same_bits(seed):
    random = np.random.default_rng(seed)
    axes = geon.Axis("N") if seed % 2 else geon.Axis("N", 33), geon.Axis("C", 40)
    x, y = (geon.placeholder(axes, name=each) for each in "xy")
    w = geon.Variable([axes[1]], initial_value=0.5, name="w")
    found = values(random, 14, axes, [x, y])
    updates = [geon.assign(w, w - 0.1 * geon.mean(found[9] * x, axes[0]))]
    results = [found[-1], found[-3] * w, geon.sum(found[7]), *updates]
    given = [random.normal(size=(33, 40)).astype(np.float32) for _ in range(2)]
    held = []
    for options in ({}, {"plan": False}):
        with geon.make_transformer("cuda-on-host") as transformer:
            f = transformer.computation(results, x, y, **options)
            calls = [f(*given) for _ in range(3)]
            held.append([*calls[-1][:3], transformer.get(w)])
    for a, b in zip(*held, strict=True):
        assert a.tobytes() == b.tobytes()
    with geon.make_transformer("numpy") as transformer:
        f = transformer.computation(results, x, y)
        calls = [f(*given) for _ in range(3)]
        for a, b in zip(held[0], [*calls[-1][:3], transformer.get(w)], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_the_verifier_finds_kernels_that_are_not_apart():
    _, f = trained("cuda-on-host", 1)
    verify_plan(f.plan)
    schedule = dataclasses.replace(f.plan.schedule, waves=(0,) * len(f.plan.schedule.kernels))
    with pytest.raises(geon.PlanError, match="is beside that of"):
        verify_plan(dataclasses.replace(f.plan, schedule=schedule))


def test_large_values_are_not_held_longer():
    """Branches over an open axis take no more memory beside each other than one by one."""
    n, c = geon.Axis("N"), geon.Axis("C", 8)
    x = geon.placeholder([n, c], name="x")
    value = x
    for _ in range(5):
        value = geon.cumsum(value, n) - geon.cumsum(geon.sort(value, n), n)
    with geon.make_transformer("cuda-on-host") as transformer:
        f = transformer.computation([value, geon.sum(geon.cumsum(x * 2, n))], x)
        transformer.target = dataclasses.replace(
            transformer.target, concurrent_kinds=(), name="alone"
        )
        g = transformer.computation([value, geon.sum(geon.cumsum(x * 2, n))], x)
        for length in (1, 1000, 1 << 20):
            most = f.peak_bytes({"N": length}) - g.peak_bytes({"N": length})
            assert (
                most <= concurrent_waves.MAX_ARENA_KERNELS * concurrent_waves.MAX_HELD_VALUE_BYTES
            )


@pytest.mark.parametrize(
    "bytes",
    [
        concurrent_waves.MAX_HELD_VALUE_BYTES - 4,
        concurrent_waves.MAX_HELD_VALUE_BYTES,
        concurrent_waves.MAX_HELD_VALUE_BYTES + 4,
    ],
)
def test_little_is_bounded(bytes):
    op = geon.placeholder([geon.Axis("N", bytes // 4)])
    assert concurrent_waves.is_little(op) == (bytes <= concurrent_waves.MAX_HELD_VALUE_BYTES)
    assert not concurrent_waves.is_little(geon.placeholder([geon.Axis("N")]))


def test_no_wave_has_more_than_its_number():
    for count in (
        concurrent_waves.MAX_ARENA_KERNELS - 1,
        concurrent_waves.MAX_ARENA_KERNELS,
        concurrent_waves.MAX_ARENA_KERNELS + 1,
    ):
        _, slopes, update = optimizer([(4,)] * count)
        with geon.make_transformer("cuda-on-host") as transformer:
            f = transformer.computation(update, *slopes)
            sums = waves_of(f, lambda kernel: not kernel.writes)
            assert max(map(len, sums)) == min(count, concurrent_waves.MAX_ARENA_KERNELS)
            f(*[np.ones(4)] * count)
    for count in (
        concurrent_waves.MAX_WAVE_KERNELS - 1,
        concurrent_waves.MAX_WAVE_KERNELS,
        concurrent_waves.MAX_WAVE_KERNELS + 1,
    ):
        slopes, update = many(count)
        with geon.make_transformer("cuda-on-host") as transformer:
            f = transformer.computation(update, *slopes)
            waves = waves_of(f, lambda kernel: True)
            assert max(map(len, waves)) == min(count, concurrent_waves.MAX_WAVE_KERNELS)


def waves_of(f, chosen):
    """The kernels of each wave that are chosen."""
    schedule = f.plan.schedule
    pairs = list(zip(schedule.waves, schedule.kernels, strict=True))
    return [[k for wave, k in pairs if wave == n and chosen(k)] for n in set(schedule.waves)]


def many(count):
    """Momentum steps of so many unrelated variables."""
    slopes, updates = [], []
    for k in range(count):
        axes = [geon.Axis(f"a{k}", (64, 128, 1000, 10)[k % 4])]
        w = geon.Variable(axes, initial_value=1, name=f"w{k}")
        v = geon.Variable(axes, initial_value=0, name=f"v{k}")
        slopes.append(geon.placeholder(axes, name=f"g{k}"))
        new = 0.9 * v + slopes[-1]
        updates += [geon.assign(v, new), geon.assign(w, w - 0.1 * new)]
    return slopes, geon.doall(updates)


def test_two_hundred_updates_are_four_launches():
    slopes, update = many(200)
    random = np.random.default_rng(0)
    given = [random.normal(size=g.axes.lengths).astype(np.float32) for g in slopes]
    held = []
    for name in ("cuda-on-host", "numpy"):
        with geon.make_transformer(name) as transformer:
            f = transformer.computation(update, *slopes)
            if name != "numpy":
                assert len(f.plan.schedule.kernels) == 200 and len(steps_of(f)) == 4
            for _ in range(2):
                f(*given)
            held.append([transformer.get(w) for w in variables_of(update)])
    for a, b in zip(*held, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def variables_of(update):
    return [leaf for leaf in storage_leaves(update) if not leaf.primitive.name == "placeholder"]


def test_what_moves_forward_is_bounded():
    """Many small values that are used one by one are not all made at the beginning."""
    n = geon.Axis("N", concurrent_waves.MAX_HELD_VALUE_BYTES // 8)
    x = geon.placeholder([n], name="x")
    total = x
    for k in range(40):
        total = geon.cumsum(total, n) * 0.5 + geon.cumsum(x * float(k), n)
    with geon.make_transformer("cuda-on-host") as transformer:
        f = transformer.computation(total, x)
        transformer.target = dataclasses.replace(
            transformer.target, concurrent_kinds=(), name="alone"
        )
        g = transformer.computation(total, x)
        most = place_plan(f.plan, {}).arena_bytes - place_plan(g.plan, {}).arena_bytes
        assert (
            most
            <= concurrent_waves.MAX_MOVED_BYTES
            + concurrent_waves.MAX_ARENA_KERNELS * concurrent_waves.MAX_HELD_VALUE_BYTES
        )


def test_lanes_are_those_that_leave_room():
    def begun(blocks):
        return [bound_launches.Begun(None, blocks, 256, [], (), 0)]

    small, large = (
        begun(bound_launches.MIN_FULL_BLOCKS - 1),
        begun(bound_launches.MIN_FULL_BLOCKS),
    )
    assert bound_launches.lanes_of([small, large, small, large]) == [[*large, *large], small, small]
    assert bound_launches.lanes_of([large, begun(bound_launches.MIN_FULL_BLOCKS + 1)]) == [
        [*large, *begun(bound_launches.MIN_FULL_BLOCKS + 1)]
    ]
    assert bound_launches.lanes_of([]) == []
    many = bound_launches.lanes_of([large, *[small] * (bound_launches.MAX_SMALL_LANES + 1)])
    assert many == [large, [*small, *small], *[small] * (bound_launches.MAX_SMALL_LANES - 1)]


def test_shared_memory_and_parameters_bound_what_is_joined():
    for shared, most in (
        (0, 9),
        (horizontal_fusion.MAX_SHARED_BYTES // 3, 3),
        (horizontal_fusion.MAX_SHARED_BYTES, 1),
    ):
        assert horizontal_fusion.fitting(9, shared, 0) == most
    for count in (
        horizontal_fusion.MAX_LAUNCH_PARAMETERS // 9 - 1,
        horizontal_fusion.MAX_LAUNCH_PARAMETERS // 9,
        horizontal_fusion.MAX_LAUNCH_PARAMETERS,
    ):
        found = horizontal_fusion.fitting(9, 0, count)
        assert found == max(min(horizontal_fusion.MAX_LAUNCH_PARAMETERS // (count + 1), 9), 1)
        assert found == 1 or found * (count + 1) <= horizontal_fusion.MAX_LAUNCH_PARAMETERS
    for blocks in (
        horizontal_fusion.MAX_JOINED_BLOCKS - 1,
        horizontal_fusion.MAX_JOINED_BLOCKS,
        horizontal_fusion.MAX_JOINED_BLOCKS + 1,
    ):
        assert horizontal_fusion.is_small(launch_ir.Grid(256 * blocks, 256)) == (
            blocks <= horizontal_fusion.MAX_JOINED_BLOCKS
        )


def test_groups_of_launches_follow_from_the_plan():
    """No kernel is printed to find them, and their parameters are at least those of the text."""
    slopes, update = many(40)
    f = Cuda().computation(update, *slopes)
    plan, found = f.plan, []
    for time, groups in horizontal_fusion.launch_groups(plan):
        positions = [k for k, each in enumerate(plan.schedule.times) if each == time]
        assert sorted(k for group in groups for k in group) == positions
        found += groups
    module = make_module(plan, f.linking, annotate=False)
    assert len(found) == len(module.steps) < len(plan.schedule.kernels) == 40
    for group, step in zip(found, module.steps, strict=True):
        forms = [form for k in group for form in plan.forms[plan.schedule.kernels[k].op].parts]
        assert len(step.arguments) <= sum(horizontal_fusion.parameters_of(x) + 1 for x in forms)


def test_lanes_are_streams_that_are_joined(monkeypatch):
    """Products and sorts have lanes of their own; a graph has them, and all meet at its end."""
    driver = fake_cuda.Driver().install(monkeypatch)
    n, c = geon.Axis("N"), geon.Axis("C", 20)
    x = geon.placeholder([n, c], name="x")
    results = [
        geon.dot(x, geon.rename(x, {"N": "M"})),
        geon.cumsum(x, n),
        geon.sort(x, c),
        geon.sum(x),
    ]
    with transformer_on(gpu.GpuDevice(0)) as transformer:
        f = transformer.computation(results, x)
        for rows in (5, 5, 5, 1):
            given = np.random.default_rng(rows).normal(size=(rows, 20)).astype(np.float32)
            found = f(given)
            np.testing.assert_allclose(found[0], given @ given.T, rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(found[2], np.sort(given, 1))
        assert driver.captured_graphs == 1 and len(driver.streams) == 4
        assert not driver.unjoined


def test_a_failure_names_what_ran_beside():
    device = host.HostDevice()
    calls = []

    def failing(kernel, given, blocks, threads):
        calls.append(kernel)
        error = geon.DeviceError("a kernel failed: for a test")
        error.lost = True
        raise error

    device.run = failing
    x = geon.placeholder([geon.Axis("N", 7)], name="x")
    with transformer_on(device) as transformer:
        f = transformer.computation([geon.cumsum(x, x.axes[0]), geon.sort(x, x.axes[0])], x)
        with pytest.raises(geon.DeviceError, match="one of the kernels|beside it ran"):
            f(np.ones(7))
    assert len(calls) == 1
