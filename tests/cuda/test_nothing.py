"""Arrays without elements lie nowhere on a device: kernels that choose read none of them.

The device that is the CPU has such arrays where nobody may look; with ``checks="loads"`` its
compiler leaves out no load that the text has.
"""

import itertools

import numpy as np
import pytest

import geon
from geon.errors import DeviceError
from geon.op_graph.axes.affine import variable
from geon.op_graph.axes.index_map import InRange
from geon.op_graph.op_graph import storage_leaves
from geon.transformers.kernels.analysis.load_guards import limits
from geon.transformers.kernels.ir.scalar_code import INT64, Clamped, Load, Number, Select
from geon.transformers.lowering.planning.plan_verifier import verify_plan
from geon.transformers.pycuda.launches.device import CudaSource, Signature
from geon.transformers.pycuda.launches.dialect import cuda_text
from geon.transformers.pycuda.runtime import host

H, W, V, T = (geon.Axis(name) for name in "HWVT")
C = geon.Axis("C", 5)
x = geon.placeholder([H, W], name="x")
table = geon.placeholder([V, W], name="table")
at = geon.placeholder([H], "int64", name="at")
u = geon.placeholder([W, C], name="u")
LEAVES = [x, table, at, u]


def joined(a, b, axis=H):
    return geon.concat([a, b], axis)


def rows(op):
    """A row of numbers along ``W``, so that what is joined with it is never all there is."""
    return geon.broadcast(geon.cast(geon.iota(W), op.dtype), [geon.Axis("H", 1), W])


def graphs():
    """By name: each joins or pads what may have no elements."""
    padded = geon.pad(x, {H: (1, 2)}, value=3)
    taken = geon.gather(table, at, V)
    long = joined(rows(x), x)
    return {
        "padded": padded * 2,
        "joined": joined(padded + 1, x * 2),
        "flipped": geon.flip(joined(geon.flip(x, H), rows(x)), [H, W]),
        "gathered": joined(rows(taken), taken),
        "nested": geon.pad(joined(joined(taken, rows(x)), geon.exp(x)), {H: (2, 1), W: (1, 0)}),
        "transposed": geon.reorder(joined(x, rows(x)), [W, H]) + 1,
        "flat": geon.flatten(joined(x, rows(x)), [H, W], geon.Axis("F")) * 3,
        "summed": geon.sum(joined(x * x, rows(x)), reduction_axes=W),
        "of all": geon.sum(geon.square(joined(x, rows(x)))),
        "softmax": geon.softmax(long, normalization_axes=W),
        "softmax of columns": geon.softmax(long, normalization_axes=long.axes[0]),
        "product": geon.dot(joined(geon.tanh(x), rows(x)), u),
        "window": geon.window(geon.pad(x, {W: (1, 1)}), {W: geon.Window(geon.Axis("R", 2))}) + 1,
        "prefix": geon.cumsum(joined(x * 2, rows(x)), W),
        "sorted": geon.sort(joined(x * 2, rows(x)), W),
    }


def inputs_of(result):
    """The placeholders that a result hangs on."""
    used = set(storage_leaves(result))
    return [leaf for leaf in LEAVES if leaf in used]


def lengths_of(inputs, rows, columns, positions):
    """All lengths of these at which every position is inside."""
    for lengths in itertools.product(rows, columns, positions):
        known = dict(zip("HWV", lengths, strict=True)) | {"C": 5}
        if known["V"] or not known["H"] or at not in set(inputs):
            yield known


def arrays(inputs, known):
    """Data of these lengths."""
    random, found = np.random.default_rng(0), []
    for leaf in inputs:
        shape = tuple(known[axis.name] for axis in leaf.axes)
        if leaf is at:
            found.append(random.integers(-known["V"], known["V"], shape))
        else:
            found.append(random.normal(size=shape).astype(np.float32))
    return found


@pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("name", graphs())
def test_what_is_not_there_is_not_read(name):
    result = graphs()[name]
    inputs = inputs_of(result)
    columns = (2, 300) if "softmax" in name else (0, 2, 300)  # nothing has no largest element
    with (
        geon.make_transformer("cuda-on-host", checks="loads") as device,
        geon.make_transformer("numpy") as plain,
    ):
        f, g = (each.computation(result, *inputs) for each in (device, plain))
        verify_plan(f.plan)
        for known in lengths_of(inputs, (0, 3), columns, (0, 4)):
            given = arrays(inputs, known)
            for _ in range(2):
                np.testing.assert_allclose(f(*given), g(*given), rtol=1e-5, atol=1e-4)


READS = """extern "C" __global__ void tried(const float *x, float *y, int64_t n)
{
    if (threadIdx.x == 3) y[0] = x[n];
}
"""


@pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("checks", ["", "loads", "races"])
@pytest.mark.parametrize("place", [0, 1 << 30, -(1 << 30)])
def test_a_launch_that_looks_there_fails(checks, place):
    device = host.HostDevice(checks)
    signature = Signature("tried", ("const float *", "float *", "int64_t"), False)
    kernel = device.load(CudaSource(cuda_text("prelude.cuh") + READS), [signature])["tried"]
    y = device.allocate(4)
    with pytest.raises(DeviceError, match="thread 3 of block 0 looks at an element .* has none"):
        device.launch(kernel, 1, 32, [device.nothing, y, place % (1 << 64)])
    device.launch(kernel, 1, 32, [y, y, 0])  # it is the launch that failed, not the process
    device.free(y)


def test_limits_of_positions_that_are_chosen():
    """A position counts as limited by what limits it whatever is chosen."""
    i = variable("i")
    outer, first = (InRange(i, 2, 9),), (InRange(i, 0, 4),)
    held = variable(Clamped(i, outer))
    chosen = Load(0, variable(Clamped(held, first)), INT64)
    alone = Select(first, chosen, Number(0, INT64))
    both = Select(first, chosen, Load(1, held, INT64))
    assert [*limits(variable(Load(0, held, INT64)))] == [outer]
    assert [*limits(variable(chosen))] == [outer, first]
    assert [*limits(variable(both))] == [outer]
    assert [*limits(variable(alone))] == []
    assert [*limits(i * 3 + 1)] == []
