"""Symbolic and concrete graphs of NNC: derivatives, loops, branches, memory, passes, streams."""

import json
import threading
import time

import numpy as np
import pytest

import geon
from geon.frontends import nnc
from geon.frontends.nnc import cmd, files
from geon.frontends.nnc.commands.execution import available_backends
from geon.frontends.nnc.tensors import root


def number(value, dtype="float64"):
    return nnc.Tensor(np.array(value, dtype), device="numpy")


def symbols(graph, *names, shape=(), dtype="float64"):
    return [graph.tensor(shape, dtype, name=name, device="numpy") for name in names]


def run_in_random_order(graph):
    """Run the nodes one by one in an order that only the edges restrict, as streams may."""
    random, following = np.random.default_rng(0), graph.followers()
    waiting = graph.topsort()
    while waiting:
        blocked = {after for node in waiting for after in following[node]}
        ready = [node for node in waiting if node not in blocked]
        node = ready[int(random.integers(len(ready)))]
        node.run()
        waiting.remove(node)


def addresses(tensor):
    """Return the addresses of the elements that a command reads or writes for a tensor."""
    whole = root(tensor)
    memory = whole.memory if tensor.places is not None else tensor.memory
    grid = np.indices(memory.shape).reshape(memory.ndim, memory.size)
    found = np.array(memory.strides, int) @ grid + memory.__array_interface__["data"][0]
    return {*(found if tensor.places is None else found[tensor.places.reshape(-1)]).tolist()}


def verify_order(graph):
    """Check that edges order each two nodes of which one writes what the other reads or writes."""
    before = {node: set() for node in graph.nodes}
    for node in graph.topsort():
        for after in graph.followers()[node]:
            before[after] |= {node, *before[node]}
    reads, writes = (
        {n: {a for t in tensors if t is not None for a in addresses(t)} for n, tensors in each}
        for each in ([(n, n.inputs) for n in graph.nodes], [(n, n.outputs) for n in graph.nodes])
    )
    for one in graph.nodes:
        for other in graph.nodes:
            if one is not other and writes[one] & (reads[other] | writes[other]):
                assert one in before[other] or other in before[one], (one, other)


def results(graph, outputs, binds):
    """Run as one computation, on streams, and in random order; all give the same."""
    compiled, arena, _ = graph.compile(outputs, binds)
    verify_order(compiled)
    compiled.run()
    assert compiled.computation is not None  # one computation
    found = [arena.tensor(s).array.copy() for s in outputs]
    for run in (
        lambda: compiled.run_with_schedule(compiled.static_schedule()),
        lambda: run_in_random_order(compiled),
    ):
        for s in outputs:
            if s not in binds:
                arena.tensor(s).array[...] = 7
        run()
        for s, value in zip(outputs, found, strict=True):
            np.testing.assert_allclose(arena.tensor(s).array, value, rtol=1e-12)
    return found


@pytest.mark.parametrize("steps", [5, lambda n: n < 5])
def test_a_product_in_a_loop_of_five_steps(steps):
    g = nnc.SymbolicGraph()
    x, y = symbols(g, "x", "y")
    loop = nnc.SymbolicGraph("loop")
    (z,) = loop.exec(cmd.mul(), [x, y])
    (out,) = g.while_(loop, steps, {x: z}, [z])
    dx, dy = g.backward([out], [x, y])
    (ddy,) = g.backward([dy], [y])
    found = results(g, [out, dx, dy, ddy], {x: number(0.34), y: number(1.11)})
    closed = [0.34 * 1.11**5, 1.11**5, 5 * 0.34 * 1.11**4, 20 * 0.34 * 1.11**3]
    np.testing.assert_allclose(found, closed, rtol=1e-12)


def test_a_loop_ends_at_its_breakpoints():
    """The condition reads what the nodes up to the breakpoint computed in this step."""
    g = nnc.SymbolicGraph()
    x, y = symbols(g, "x", "y")
    loop = nnc.SymbolicGraph("loop")
    (z,) = loop.exec(cmd.mul(), [x, y])
    (w,) = loop.exec(cmd.scalar_mul(a=1.0), [z])
    out, last = g.while_(loop, lambda n, z: z < 3, {x: w}, [z, w], reads=[z], breakpoints=[z])
    (dx,) = g.backward([out], [x])
    found = results(g, [out, last, dx], {x: number(1.0), y: number(2.0)})
    assert [float(v) for v in found] == [4.0, 2.0, 4.0]


def test_log_to_the_fifth_times_v():
    g = nnc.SymbolicGraph()
    x, y, v = symbols(g, "x", "y", "v")
    loop = nnc.SymbolicGraph("loop")
    (first,) = g.exec(cmd.mul(), [x, y])
    (last,) = loop.exec(cmd.ewlog(), [first])
    (logs,) = g.while_(loop, 5, {first: last}, [last])
    (out,) = g.exec(cmd.mul(), [logs, v])
    dx, dv = g.backward([out], [x, v])
    (ddx,) = g.backward([dx], [x])
    a, b, c = 1e7, 3e6, 0.32

    def nested(x):
        inner = [x * b]
        for _ in range(5):
            inner.append(np.log(inner[-1]))
        return inner

    values = nested(a)
    slope = c * b / np.prod(values[:5])
    h = 1e-4 * a
    slopes = [c * b / np.prod(nested(p)[:5]) for p in (a - h, a + h)]
    found = results(g, [out, dx, dv, ddx], {x: number(a), y: number(b), v: number(c)})
    np.testing.assert_allclose(found[:3], [c * values[5], slope, values[5]], rtol=1e-9)
    np.testing.assert_allclose(found[3], (slopes[1] - slopes[0]) / (2 * h), rtol=1e-6)


def test_a_function_in_pieces():
    g = nnc.SymbolicGraph()
    (x,) = symbols(g, "x", shape=(1,))
    half, top, low = (nnc.SymbolicGraph(name) for name in ("half", "top", "low"))
    (zero,) = low.exec(cmd.set(value=0.0, shape=(1,), dtype="float64"), [])
    (scaled,) = half.exec(cmd.scalar_mul(a=0.5), [x])
    (shift,) = half.exec(cmd.set(value=0.5, shape=(1,), dtype="float64"), [])
    (moved,) = half.exec(cmd.add(), [scaled, shift])
    (limit,) = g.exec(cmd.set(value=1.5, shape=(1,), dtype="float64"), [])

    def piece(x):
        return geon.where(x < 0, 0, geon.where(x < 1, 1, geon.where(x < 2, 2, 3)))

    same = nnc.SymbolicGraph("same")
    (y,) = g.case_of(piece, [x], [(low, [zero]), (same, [x]), (half, [moved])], default=[limit])
    (square,) = g.exec(cmd.mul(), [y, y])
    (dx,) = g.backward([square], [x])
    (ddx,) = g.backward([dx], [x])
    for value, expected in {
        -1: (0, 0, 0),
        0.5: (0.5, 1, 2),
        1.5: (1.25, 1.25, 0.5),
        9: (1.5, 0, 0),
    }.items():
        found = results(g, [y, dx, ddx], {x: number([value])})
        np.testing.assert_allclose(np.ravel(found), expected)


def test_aliases_written_in_parts_with_the_rest_zero():
    g = nnc.SymbolicGraph()
    (x,) = symbols(g, "x", shape=(2,))
    (t,) = symbols(g, "t", shape=(3, 3))
    g.exec(cmd.ewexp(), [x], [t.alias((1, 2), (0, 1)).alias((2,))])
    g.exec(cmd.ewlog(), [x], [t.alias((2, 1), (0, 0), (2, 1)).alias((2,))])
    (square,) = g.exec(cmd.mul(), [t, t])
    (part,) = g.exec(cmd.ewsum(), [t.alias((1, 2), (0, 1)), t.alias((1, 2), (0, 0))])
    dx, dt = g.backward([square, part], [x, t])
    (ddx,) = g.backward([dx], [x])
    value = np.array([1.5, 0.7])
    e, n = np.exp(value), np.log(value)
    whole = np.array([[n[0], e[0], e[1]], [0, 0, 0], [n[1], 0, 0]])
    found = results(g, [t, part, dx, ddx, dt], {x: nnc.Tensor(value, device="numpy")})
    np.testing.assert_allclose(found[0], whole)
    np.testing.assert_allclose(found[1], [[e[0] + n[0], e[1] + e[0]]])
    ones = np.array([2.0, 1.0])  # how often each exponential is in the sums of the parts
    logs = np.array([1.0, 0.0])
    np.testing.assert_allclose(found[2], 2 * e * e + 2 * n / value + ones * e + logs / value)
    np.testing.assert_allclose(
        found[3], 4 * e * e + 2 * (1 - n) / value**2 + ones * e - logs / value**2
    )
    np.testing.assert_allclose(found[4], 2 * whole + [[1, 2, 1], [0, 0, 0], [0, 0, 0]])


def test_parts_of_reshaped_parts_are_read_and_written():
    """The reshape of a part that is not contiguous is no view of its memory."""
    g = nnc.SymbolicGraph()
    (x,) = symbols(g, "x", shape=(4, 6))
    rows = x.alias((2, 6), (1, 0), (2, 1))
    part = rows.alias((3, 4)).alias((2, 2), (1, 0), (1, 2))
    (y,) = g.exec(cmd.ewprod(), [part, part, part])
    (dx,) = g.backward([y], [x])
    (ddx,) = g.backward([dx], [x])
    value = np.random.default_rng(0).normal(size=(4, 6))
    found = results(g, [y, dx, ddx], {x: nnc.Tensor(value)})
    at = np.arange(24).reshape(4, 6)[1:4:2].reshape(3, 4)[1:3, 0:3:2]
    expected = [value.flat[at] ** 3, np.zeros((4, 6)), np.zeros((4, 6))]
    expected[1].flat[at] = 3 * value.flat[at] ** 2
    expected[2].flat[at] = 6 * value.flat[at]
    for mine, reference in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, reference)


def test_ends_of_runs_follow_the_nodes_that_passes_replace():
    g = nnc.SymbolicGraph()
    x, label = g.tensor((2, 3)), g.tensor((2,), "int64")
    (y,) = g.exec(cmd.softmax(), [x])
    (loss,) = g.exec(cmd.categorical_crossentropy(), [y, label])
    (again,) = g.exec(cmd.softmax(), [x])
    g.set_sources([g.nodes[2], g.nodes[0]])
    g.set_destinations(g.nodes[1:])
    new = g.simplify([loss, y, again])
    assert new[again] is y and [n.name for n in g.topsort()] == ["softmax_crossentropy"]
    assert g.sources == g.destinations == g.nodes


def test_two_additions_are_simplified_to_one():
    g = nnc.SymbolicGraph()
    x, y = symbols(g, "x", "y")
    (a,), (b,) = g.exec(cmd.add(), [x, y]), g.exec(cmd.add(), [x, y])
    (z,) = g.exec(cmd.mul(), [a, b])
    g.exec(cmd.ewexp(), [x])  # nothing needs it
    (copy,) = g.exec(cmd.data_transfer(), [z])
    (out,) = g.exec(cmd.scalar_mul(a=2.0), [copy])
    (dx,) = g.backward([out], [x])
    (ddx,) = g.backward([dx], [x])
    passes = ["common_subexpressions", "data_transfers", "graph_pruning"]
    replaced = g.simplify([out, dx, ddx], passes)
    assert replaced[b] is a and replaced[copy] is z
    assert [n.command.name for n in g.nodes[:3]] == ["add", "mul", "scalar_mul"]
    assert sum(n.command.name == "add" for n in g.nodes) == 1
    outputs = [replaced.get(s, s) for s in (out, dx, ddx)]
    found = results(g, outputs, {x: number(2.0), y: number(3.0)})
    assert [float(v) for v in found] == [50.0, 20.0, 4.0]
    with pytest.raises(geon.GeonError, match="no pass 'cse'; the passes are common_subexpressions"):
        g.simplify([out], ["cse"])


def test_common_subexpressions_see_aliases_and_leave_random_numbers_alone():
    g = nnc.SymbolicGraph()
    (x,) = symbols(g, "x", shape=(4,))
    (a,) = g.exec(cmd.ewexp(), [x.alias((2,), (1,))])
    (b,) = g.exec(cmd.ewexp(), [x.alias((2,), (1,))])
    p, _ = g.exec(cmd.dropout(), [x])
    q, _ = g.exec(cmd.dropout(), [x])
    replaced = g.simplify([a, b, p, q])
    assert replaced == {b: a}


@pytest.mark.parametrize(
    "names, fused",
    [
        (("softmax", "categorical_crossentropy"), "softmax_crossentropy"),
        (("sigmoid", "binary_crossentropy"), "sigmoid_binary_crossentropy"),
    ],
)
def test_an_activation_and_its_loss_are_fused(names, fused):
    g = nnc.SymbolicGraph()
    x, label = symbols(g, "x", "label", shape=(2, 3))
    (p,) = g.exec(cmd(names[0]), [x])
    (loss,) = g.exec(cmd(names[1]), [p, label])
    outputs = [loss, p]
    rng = np.random.default_rng(0)
    label_value = np.array([[0.2, 0.3, 0.5], [1, 0, 0]])
    binds = {x: nnc.Tensor(rng.normal(size=(2, 3)), device="numpy"),
             label: nnc.Tensor(label_value, device="numpy")}  # fmt: skip
    before = results(g, outputs, binds)
    g.simplify(outputs, ["ops_fusion"])
    assert [n.command.name for n in g.nodes] == [fused]
    for one, other in zip(before, results(g, outputs, binds), strict=True):
        np.testing.assert_allclose(one, other)
    (dx,) = g.backward([loss], [x])
    (ddx,) = g.backward([dx], [x])
    found = results(g, [dx, ddx], binds)
    np.testing.assert_allclose(found[0], before[1] - label_value, atol=1e-12)
    if names[0] == "softmax":  # the sum of a row of the second derivatives
        np.testing.assert_allclose(found[1], 0, atol=1e-12)
    else:
        np.testing.assert_allclose(found[1], before[1] * (1 - before[1]))


def test_shared_weights():
    g = nnc.SymbolicGraph()
    x, w = symbols(g, "x", "w", shape=(2, 2))
    (h,) = g.exec(cmd.gemm(), [x, w])
    (y,) = g.exec(cmd.gemm(), [h, w])
    (dw,) = g.backward([y], [w])
    (ddx,) = g.backward([dw], [x])
    a, b = np.array([[1.0, 2], [3, 4]]), np.array([[0.5, -1], [2, 1]])
    found = results(g, [dw, ddx, g.gradient(w)], {
        x: nnc.Tensor(a, device="numpy"), w: nnc.Tensor(b, device="numpy")})  # fmt: skip
    one = np.ones((2, 2))
    np.testing.assert_allclose(found[0], a.T @ one @ b.T + (a @ b).T @ one)
    np.testing.assert_allclose(found[2], found[0])
    # sum(dw) = sum_ij (a^T 1 b^T)_ij + (b^T a^T 1)_ij
    np.testing.assert_allclose(found[1], one @ (one @ b).T + one @ one @ b.T)


# Memory -------------------------------------------------------------------------------------------


def chain(count, command):
    g = nnc.SymbolicGraph()
    (x,) = symbols(g, "x", shape=(8, 8))
    made = [x]
    for _ in range(count):
        made.append(g.exec(command, [made[-1]])[0])
    return g, made


def test_a_part_that_nothing_writes_is_zero_before_it_is_read():
    g = nnc.SymbolicGraph()
    (x,) = symbols(g, "x", shape=(4,))
    (a,) = g.exec(cmd.softmax(), [x])
    (b,) = g.exec(cmd.softmax(), [a])
    (t,) = symbols(g, "t", shape=(4,))
    g.exec(cmd.ewexp(), [b.alias((2,), (0,))], [t.alias((2,), (0,))])
    (rest,) = g.exec(cmd.softmax(), [t.alias((2,), (2,))])
    found = results(g, [rest], {x: nnc.Tensor(np.arange(4.0), device="numpy")})
    assert found[0].tolist() == [0.5, 0.5]


def test_symbols_that_may_share_memory_have_equal_addresses():
    g, made = chain(5, cmd.ewexp())
    compiled, arena, _ = g.compile([made[5]])
    address = [arena.tensor(s).address for s in made]
    assert len(set(address[1:])) == 1  # each in the memory of the one before
    assert address[0] != address[1]  # what nothing writes keeps its value
    assert compiled.results == [arena.tensor(made[5])]  # the others need not exist
    g, made = chain(6, cmd.softmax())
    _, arena, _ = g.compile([made[6]])
    address = [arena.tensor(s).address for s in made]
    assert address[1] == address[3] == address[5] and address[2] == address[4]
    assert arena.size == 3 * 8 * 8 * 8  # x, and two that alternate


def test_what_is_fetched_is_never_overwritten():
    for fetched in range(1, 6):
        g, made = chain(6, cmd.tanh())
        compiled, arena, _ = g.compile(
            [made[fetched], made[6]], {made[0]: nnc.Tensor(np.full((8, 8), 0.5), device="numpy")}
        )
        compiled.run_with_schedule(compiled.static_schedule())
        value = 0.5
        for k in range(1, 7):
            value = np.tanh(value)
            if k in (fetched, 6):
                np.testing.assert_allclose(arena.tensor(made[k]).array, value, rtol=1e-12)


def test_bound_tensors_live_in_the_memory_of_the_caller():
    g, made = chain(3, cmd.ewexp())
    x, y = np.zeros((8, 8)), np.zeros((8, 8))
    compiled, arena, _ = g.compile(
        [], {made[0]: nnc.Tensor(x, device="numpy"), made[3]: nnc.Tensor(y, device="numpy")}
    )
    assert arena.tensor(made[0]).address == x.ctypes.data
    assert arena.tensor(made[3]).address == y.ctypes.data
    compiled.run()
    expected = np.exp(np.exp(1.0))
    np.testing.assert_allclose(y, expected)
    x[...] = 0.1
    compiled.run()
    np.testing.assert_allclose(y, np.exp(np.exp(np.exp(0.1))))
    other = np.ones((8, 8)) * 0.2
    arena.bind(made[0], nnc.Tensor(other, device="numpy"))
    compiled.run()
    np.testing.assert_allclose(y, np.exp(np.exp(np.exp(0.2))))
    assert (x == 0.1).all()
    with pytest.raises(geon.GeonError, match=r"is bound to .*give a tensor of float64\(8, 8\)"):
        arena.bind(made[0], nnc.Tensor(np.zeros(3)))


def test_random_graphs_compute_the_same_in_shared_memory_and_on_streams():
    """Graphs of parts, sums and in-place commands against separate arrays."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        g = nnc.SymbolicGraph()
        made = symbols(g, "x", "y", shape=(4, 3))
        values = [rng.uniform(0.1, 0.4, size=(4, 3)) for _ in made]
        binds = {s: nnc.Tensor(v, device="numpy") for s, v in zip(made, values, strict=True)}
        for _ in range(14):
            i, j = rng.integers(len(made), size=2)
            kind = rng.integers(5)
            if kind == 0:
                made += g.exec(cmd.mul(), [made[i], made[j]])
                values.append(values[i] * values[j])
            elif kind == 1:
                made += g.exec(cmd.tanh(), [made[i]])
                values.append(np.tanh(values[i]))
            elif kind == 2:
                made += g.exec(cmd.softmax(), [made[i]])
                e = np.exp(values[i])
                values.append(e / e.sum(1, keepdims=True))
            elif kind == 3:  # rows 0 and 2, in another shape: no view of memory
                whole = g.tensor((4, 3), "float64", device="numpy")
                source, target = (
                    s.alias((2, 3), (0, 0), (2, 1)).alias((3, 2)) for s in (made[i], whole)
                )
                g.exec(cmd.mul(), [source, source], [target])
                values.append(np.zeros((4, 3)))
                values[-1][::2] = values[i][::2] ** 2
                made.append(whole)
            else:
                whole = g.tensor((4, 3), "float64", device="numpy")
                at = (int(rng.integers(3)), 0)
                g.exec(cmd.add(), [made[i].alias((2, 3), at), made[j].alias((2, 3), (1, 0))],
                       [whole.alias((2, 3), at)])  # fmt: skip
                value = np.zeros((4, 3))
                value[at[0] : at[0] + 2] = values[i][at[0] : at[0] + 2] + values[j][1:3]
                made.append(whole)
                values.append(value)
        kept = [int(k) for k in rng.choice(len(made), 4, replace=False)]
        for k, found in zip(kept, results(g, [made[k] for k in kept], binds), strict=True):
            np.testing.assert_allclose(found, values[k], rtol=1e-10)
        summed, *_ = g.exec(cmd.ewsum(), [made[k] for k in kept])
        try:
            gradients = g.backward([summed], made[:2])
        except geon.DerivativeError:  # the sum does not depend on both
            continue
        before = results(g, gradients, binds)
        replaced = g.simplify(gradients)
        after = results(g, [replaced.get(d, d) for d in gradients], binds)
        np.testing.assert_allclose(before, after, rtol=1e-10)


def test_an_arena_lies_in_memory_of_the_caller():
    g = nnc.SymbolicGraph()
    (x,) = symbols(g, "x", shape=(4,))
    (y,) = g.exec(cmd.ewexp(), [x])
    (z,) = g.exec(cmd.gemm(), [y.alias((1, 4)), y.alias((4, 1))])
    given = []

    def allocate(size):
        given.append(bytearray(size))
        return given[-1]

    compiled, arena, _ = g.compile([y, z], {x: number([0.0, 1, 2, 3])}, allocate=allocate)
    compiled.run()
    (buffer,) = given
    start = np.frombuffer(buffer, np.uint8).ctypes.data
    for symbol in (y, z):
        assert start <= arena.tensor(symbol).address < start + len(buffer)
        assert arena.tensor(symbol).address % 64 == 0
    np.testing.assert_allclose(
        arena.tensor(z).array, np.exp([0.0, 2, 4, 6]).sum(keepdims=True)[None]
    )
    assert len(buffer) >= arena.size
    for wrong, message in (
        (lambda size: bytes(size), "read-only bytes; let it return .* writable ones"),
        (lambda size: bytearray(size // 2), "let it return .* writable ones"),
        (lambda size: None, "allocate returned None for .* bytes; let it return a buffer"),
    ):
        with pytest.raises(geon.ArgumentError, match=message):
            g.compile([z], {x: number([0.0, 1, 2, 3])}, allocate=wrong)


def test_hooks_see_what_is_created_by_calls_and_passes():
    g, made = nnc.SymbolicGraph(), []
    for kind in ("tensor", "alias", "exec"):
        assert g.set_hook(kind, lambda each, kind=kind: made.append((kind, each))) is None
    (x,) = symbols(g, "x", shape=(4,))
    part = x.alias((2,), (1,))
    (y,) = g.exec(cmd.ewexp(), [part])
    assert made == [("tensor", x), ("alias", part), ("tensor", y), ("exec", g.nodes[0])]
    g.backward([y], [x])
    assert [each for kind, each in made if kind == "exec"] == g.nodes and len(g.nodes) > 2
    before = g.set_hook("exec", None)
    before("called")
    assert made.pop() == ("exec", "called")
    count = len(g.nodes)
    g.exec(cmd.ewexp(), [x])
    assert sum(kind == "exec" for kind, _ in made) == count
    with pytest.raises(geon.ArgumentError, match="give one of tensor, alias, exec"):
        g.set_hook("node", None)


# Optimisers, replicas, recomputation --------------------------------------------------------------


def regression(optimiser):
    g = nnc.SymbolicGraph()
    (x,) = symbols(g, "x", shape=(16, 2))
    (target,) = symbols(g, "target", shape=(16, 1))
    (w,) = symbols(g, "w", shape=(2, 1))
    (y,) = g.exec(cmd.gemm(), [x, w])
    (loss,) = g.exec(cmd.mse(), [y, target])
    return g, x, target, w, loss, g.minimize(optimiser, [loss], [w])


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "lamb", "rmsprop"])
def test_minimize_updates_parameters_and_states_in_their_memory(name):
    rate = {"sgd": 0.005}.get(name, 0.02)
    g, x, target, w, loss, step = regression(cmd(name, rate=rate))
    rng = np.random.default_rng(0)
    data, wanted = rng.normal(size=(16, 2)), np.array([[0.7], [-0.4]])
    weights = np.full((2, 1), 0.1)
    compiled, arena, _ = g.compile([loss], {
        x: nnc.Tensor(data, device="numpy"), target: nnc.Tensor(data @ wanted, device="numpy"),
        w: nnc.Tensor(weights, device="numpy")})  # fmt: skip
    assert arena.tensor(step.updated[0]).address == weights.ctypes.data
    for old, new in step.states[0]:
        assert arena.tensor(old).address == arena.tensor(new).address
    compiled.run()
    first = arena.tensor(loss).array.sum()
    for _ in range(60):
        compiled.run()
    assert arena.tensor(loss).array.sum() < (0.6 if name == "lamb" else 0.05) * first
    schedule = compiled.static_schedule()
    before = weights.copy()
    compiled.run_with_schedule(schedule)
    assert (weights != before).any()


def test_a_copy_of_a_graph_with_other_commands():
    g, names = everything()
    values = {names[n]: np.random.default_rng(k).normal(size=4) for k, n in enumerate("xy")}
    copy, new = g.dup()
    assert copy.dot() == g.dot() and len(copy.destinations) == 2
    assert not {*new} & {*new.values()} and {s.graph for s in new.values()} == {copy}
    assert copy.gradient(new[names["y"]]) is new[g.gradient(names["y"])]
    found = []
    for graph, of in ((g, lambda s: s), (copy, new.__getitem__)):
        graph.set_destinations([])
        binds = {of(s): number(v.copy()) for s, v in values.items()}
        compiled, arena, _ = graph.compile([of(names["ddy"])], binds)
        compiled.run()
        found.append(arena.tensor(of(names["ddy"])).array)
    np.testing.assert_array_equal(*found)
    small = nnc.SymbolicGraph()
    (x,) = symbols(small, "x")
    (y,) = small.exec(cmd.ewexp(), [x])
    other, new = small.dup(lambda node: cmd.ewsqrt())
    assert results(other, [new[y]], {new[x]: number(4.0)}) == [2.0]
    assert results(small, [y], {x: number(0.0)}) == [1.0]


@pytest.mark.parametrize("on_streams", [False, True])
def test_what_reads_a_parameter_runs_before_its_step(on_streams):
    g = nnc.SymbolicGraph()
    (w,) = symbols(g, "w")
    (loss,) = g.exec(cmd.mul(), [w, w])
    step = g.minimize(cmd.sgd(rate=0.25), [loss], [w])
    (seen,) = g.exec(cmd.scalar_mul(a=3.0), [w])
    compiled, arena, _ = g.compile([seen, step.updated[0]], {w: number(2.0)})
    if on_streams:
        compiled.run_with_schedule(compiled.static_schedule())
    else:
        compiled.run()
    assert (arena.tensor(seen).array, arena.tensor(w).array) == (6.0, 1.0)
    both = {w: number(2.0), step.updated[0]: number(0.0)}
    with pytest.raises(geon.ArgumentError, match="different tensors; bind one of them"):
        g.compile([seen], both)


def test_replicas_give_the_gradient_of_the_whole_batch():
    g, x, target, w, loss, step = regression(cmd.sgd(rate=0.01, momentum=0.0))
    maps = nnc.data_parallel(g, [x, target], step.gradients, ["numpy", "numpy"])
    rng = np.random.default_rng(0)
    data, wanted = rng.normal(size=(32, 2)), rng.normal(size=(32, 1))
    weights = np.full((2, 1), 0.1)
    binds = {w: nnc.Tensor(weights.copy(), device="numpy")}
    for k, new in enumerate(maps):
        part = slice(16 * k, 16 * k + 16)
        binds[new.get(x, x)] = nnc.Tensor(data[part], device="numpy")
        binds[new.get(target, target)] = nnc.Tensor(wanted[part], device="numpy")
    losses = [new.get(loss, loss) for new in maps]
    compiled, arena, _ = g.compile(losses, binds)
    compiled.run_with_schedule(compiled.static_schedule())
    gap = data @ weights - wanted
    np.testing.assert_allclose(
        np.concatenate([arena.tensor(s).array for s in losses]), (gap**2)[:, 0]
    )
    np.testing.assert_allclose(binds[w].array, weights - 0.01 * 2 * data.T @ gap)
    with pytest.raises(geon.GeonError, match="devices=.*give two or more"):
        nnc.data_parallel(g, [x], step.gradients, ["cpu"])


def test_narrow_tensors_are_kept_for_the_backward_nodes():
    g = nnc.SymbolicGraph()
    x = g.tensor((64,), "float16", name="x", device="numpy")
    (wide,) = g.exec(cmd.datatype_conversion(dtype="float32"), [x])
    (y,) = g.exec(cmd.mul(), [wide, wide])
    (dx,) = g.backward([y], [x])
    value = nnc.Tensor(np.linspace(0, 1, 64).astype("float16"), device="numpy")
    (before,) = results(g, [dx], {x: value})
    assert nnc.memory_reduction(g) == 1 and g.nodes[-1].name.endswith("_again")
    (after,) = results(g, [dx], {x: value})
    np.testing.assert_array_equal(before, after)


def test_inputs_of_convolutions_are_kept_compressed():
    g = nnc.SymbolicGraph()
    x = g.tensor((1, 8, 8, 2), "float16", name="x", device="numpy")
    w = g.tensor((1, 2, 2, 2), "float16", name="w", device="numpy")
    (h,) = g.exec(cmd.relu(), [x])
    (y,) = g.exec(cmd.convolution(), [h, w])
    (dw,) = g.backward([y], [w])
    rng = np.random.default_rng(0)
    binds = {
        s: nnc.Tensor(rng.uniform(size=s.shape).astype("float16"), device="numpy") for s in (x, w)
    }
    (before,) = results(g, [dw], binds)
    assert nnc.memory_compression(g) == 1
    (after,) = results(g, [dw], binds)
    assert 0 < np.abs(before - after).max() < 0.1 * np.abs(before).max()


# Concrete graphs ----------------------------------------------------------------------------------


def test_a_concrete_graph_runs_its_nodes_in_the_order_of_its_edges():
    a, b, c, d = (number(x) for x in (2.0, 3.0, 0.0, 0.0))
    g = nnc.Graph()
    product = g.exec(cmd.mul(), [c, b], [d], "product")
    total = g.exec(cmd.add(), [a, b], [c], "total")
    g.concat(total, product)
    g.run()
    assert (c.array, d.array) == (5, 15)
    a.array[...] = 0
    g.run(destinations=[total])
    assert (c.array, d.array) == (3, 15)
    g.set_sources([product])
    g.run()
    assert d.array == 9
    g.set_sources([])
    product.set(cmd.add())
    product.set_io([c, c], [d])
    g.run()
    assert d.array == 6
    dot = g.dot()
    assert 'label="total"' in dot and "n1 -> n0" in dot and "float64()" in dot
    g.autotune()
    assert total.command.backend in available_backends()
    g.run()
    assert d.array == 6


def test_nodes_on_overlapping_memory_run_one_by_one():
    array = np.arange(4.0)
    x, first, last = (nnc.Tensor(a, device="numpy") for a in (array, array[:3], array[1:]))
    g = nnc.Graph()
    one = g.exec(cmd.scalar_mul(a=2.0), [first], [first])
    two = g.exec(cmd.add(), [last, last], [last])
    g.concat(one, two)
    g.run()
    assert g.computation is None and array.tolist() == [0, 4, 8, 6]
    whole = nnc.Graph()
    y = nnc.Tensor(np.arange(4.0), device="numpy")
    part = y.view((2,), (1,))
    one = whole.exec(cmd.scalar_mul(a=3.0), [part], [part])
    two = whole.exec(cmd.add(), [y, y], [y])
    whole.concat(one, two)
    whole.run()
    assert whole.computation is not None and y.array.tolist() == [0, 6, 12, 6]


def test_loops_and_branches_of_concrete_graphs():
    x, y, z, out = (number(v) for v in (0.34, 1.11, 0.0, 0.0))
    body, g = nnc.Graph("body"), nnc.Graph()
    body.exec(cmd.mul(), [x, y], [z])
    g.while_(body, lambda n: n < 5, {x: z}, {z: out})
    g.run()
    np.testing.assert_allclose(out.array, 0.34 * 1.11**5)
    double, cases = nnc.Graph("double"), nnc.Graph()
    double.exec(cmd.add(), [x, x], [z])
    cases.case_of(
        lambda x: geon.cast(x > 0, "int64"), [x], [(nnc.Graph(), [y]), (double, [z])], [out]
    )
    cases.run()
    np.testing.assert_allclose(out.array, 0.68)
    x.array[...] = -1
    cases.run()
    np.testing.assert_allclose(out.array, 1.11)


def test_wrong_graphs_raise():
    a, b = number(1.0), number(2.0)
    g = nnc.Graph("mine")
    one, two = g.exec(cmd.ewexp(), [a], [b], "one"), g.exec(cmd.ewexp(), [b], [a], "two")
    g.concat(one, two)
    g.concat(two, one)
    with pytest.raises(geon.OrderError, match="mine has a cycle among one, two; remove an edge"):
        g.run()
    with pytest.raises(geon.GeonError, match="one is a source of mine twice; give it once"):
        g.set_sources([one, one])
    with pytest.raises(geon.GeonError, match="other is no node of mine; its nodes are one, two"):
        g.set_destinations([nnc.Graph().exec(cmd.ewexp(), [a], [b], "other")])
    with pytest.raises(geon.GeonError, match="one cannot run before itself"):
        g.concat(one, one)
    g.disjoin(two, one)
    with pytest.raises(geon.OrderError, match="no edge from two to one"):
        g.disjoin(two, one)
    s = nnc.SymbolicGraph("sym")
    x, y = symbols(s, "x", "y", shape=(2, 3))
    (z,) = s.exec(cmd.add(), [x, y])
    with pytest.raises(geon.OrderError, match=r"again writes .*which add0 writes too"):
        s.exec(cmd.mul(), [x, y], [z], "again")
    with pytest.raises(geon.GeonError, match=r"command gemm .*summed lengths are 3 and 2"):
        s.exec(cmd.gemm(), [x, y])
    with pytest.raises(geon.GeonError, match="gives float64.*give a symbol of that shape"):
        s.exec(cmd.mul(), [x, y], [s.tensor((2, 2), "float64")])
    with pytest.raises(geon.DerivativeError, match="no loss depends on .*leave it out"):
        s.backward([z], [s.tensor((2,), name="free")])
    with pytest.raises(geon.GeonError, match="has no gradient; give it to backward"):
        s.gradient(y)
    with pytest.raises(geon.GeonError, match="add is no optimiser; give one, such as cmd.sgd"):
        s.minimize(cmd.add(), [z], [x])
    compiled, arena, nodes = s.compile([z])
    with pytest.raises(geon.GeonError, match="is in no node of the compiled graph"):
        arena.tensor(s.tensor((2,)))
    assert nodes[s.nodes[0]] is compiled.nodes[0]
    with pytest.raises(geon.GeonError, match="cases are .*|case 0 has the results"):
        s.case_of(lambda x: 0, [], [(s, [x]), (s, [s.tensor((1,))])])
    with pytest.raises(geon.GeonError, match="the output .*free.* is in no node of sym"):
        s.compile([z, s.tensor((2,), name="free")])
    with pytest.raises(geon.GeonError, match="condition of graph is None; give a number of steps"):
        s.while_(nnc.SymbolicGraph(), None, {}, [])
    with pytest.raises(geon.GeonError, match="carries .*shape and dtype must be equal"):
        s.while_(nnc.SymbolicGraph(), 2, {x: s.tensor((1,))}, [])


def test_shapes_are_inferred_again():
    g = nnc.SymbolicGraph()
    (x,) = symbols(g, "x", shape=(2, 3))
    (y,) = g.exec(cmd.transpose(), [x])
    x.param = nnc.TensorParam((4, 5), "float64", device="numpy")
    g.tensor_auto()
    assert y.shape == (5, 4)
    value = np.arange(20.0).reshape(4, 5)
    np.testing.assert_array_equal(
        results(g, [y], {x: nnc.Tensor(value, device="numpy")})[0], value.T
    )
    g.exec(cmd.tanh(), [x.alias((2, 5), (2, 0))])
    x.param = nnc.TensorParam((3, 5), "float64", device="numpy")
    with pytest.raises(geon.ArgumentError, match="is no part of .* any more; give another one"):
        g.tensor_auto()


# Streams ------------------------------------------------------------------------------------------


def test_a_schedule_follows_the_longest_chain_and_signals_at_joins():
    g, x = nnc.Graph(), number(1.0)
    t = {name: number(0.0) for name in "abcde"}
    nodes = {name: g.exec(cmd.ewexp(), [x], [t[name]], name) for name in "abcde"}
    for before, after in ("ab", "bc", "ad", "ce", "de"):
        g.concat(nodes[before], nodes[after])
    schedule = g.static_schedule()
    streams = {node.name: k for node, k in schedule.stream_of.items()}
    assert streams["a"] == streams["b"] == streams["c"] == streams["e"] != streams["d"]
    assert [p.name for p in schedule.waits[nodes["d"]]] == ["a"]
    assert [p.name for p in schedule.waits[nodes["e"]]] == ["d"]
    assert g.static_schedule(1).streams == 1
    with pytest.raises(geon.GeonError, match="has 2 streams, and 1 were given"):
        g.run_with_schedule(schedule, [nnc.Stream()])


def test_independent_commands_run_side_by_side():
    both = threading.Barrier(2, timeout=20)  # passed only if both wait at one time
    streams = [nnc.Stream(), nnc.Stream()]
    for stream in streams:
        stream.submit(both.wait)
    for stream in streams:
        stream.wait()
    signal, order = nnc.Signal(), []
    streams[0].submit(lambda: (time.sleep(0.05), order.append("first")))
    streams[0].emit(signal)
    streams[1].wait_for(signal)
    streams[1].add_callback(lambda: order.append("second"))
    x = number(0.0)
    nnc.cmd_exec(cmd.ewexp(), [x], [x], streams[1])
    streams[1].wait()
    assert order == ["first", "second"] and x.array == 1
    for stream in streams:
        stream.close()


def test_an_error_on_a_stream_is_raised_by_wait():
    stream = nnc.Stream()
    ran = []
    stream.submit(lambda: 1 / 0)
    stream.submit(lambda: ran.append(1))
    with pytest.raises(ZeroDivisionError):
        stream.wait()
    assert not ran
    stream.submit(lambda: ran.append(2))
    stream.close()
    assert ran == [2]


def test_cancel_skips_what_has_not_begun():
    g, x = nnc.Graph(), number(0.0)
    stop = g.exec(cmd.custom(function=lambda v: v), [x], [x], "stop")
    last = g.exec(cmd.ewexp(), [x], [x], "last")
    g.concat(stop, last)
    stop.run = g.cancel
    g.run_with_schedule(g.static_schedule())
    assert x.array == 0


def test_running_statistics_are_updated_in_their_memory_and_read_by_later_runs():
    g = nnc.SymbolicGraph()
    (x,) = symbols(g, "x", shape=(8, 2))
    w, mean, var = symbols(g, "w", "mean", "var", shape=(2,))
    y, new_mean, new_var, _, _ = g.exec(cmd.batch_norm(momentum=0.5), [x, w, None, mean, var])
    (square,) = g.exec(cmd.mul(), [y, y])
    dx, dw = g.backward([square], [x, w])
    value = np.random.default_rng(0).normal(size=(8, 2))
    kept = [nnc.Tensor(a, device="numpy") for a in (np.zeros(2), np.ones(2))]
    binds = {x: nnc.Tensor(value, device="numpy"), w: nnc.Tensor(np.ones(2), device="numpy"),
             mean: kept[0], var: kept[1]}  # fmt: skip
    compiled, arena, _ = g.compile([y, dx, dw], binds)
    assert arena.tensor(new_mean).address == kept[0].address
    compiled.run()
    compiled.run_with_schedule(compiled.static_schedule())
    np.testing.assert_allclose(kept[0].array, 0.75 * value.mean(0))
    np.testing.assert_allclose(kept[1].array, 0.25 + 0.75 * value.var(0))
    np.testing.assert_allclose(arena.tensor(dw).array, 2 * 8 * value.var(0) / (value.var(0) + 1e-5))
    test = nnc.SymbolicGraph()
    y, *_ = test.exec(cmd.batch_norm(is_test=True), [x, w, None, mean, var])
    (dx,) = test.backward([y], [x])
    found = results(test, [y, dx], binds)
    scale = 1 / np.sqrt(kept[1].array + 1e-5)
    np.testing.assert_allclose(found[0], (value - kept[0].array) * scale)
    np.testing.assert_allclose(found[1], np.broadcast_to(scale, (8, 2)))


def test_gradients_of_a_symbol_that_a_node_reads_twice_and_of_parts():
    g = nnc.SymbolicGraph()
    (x,) = symbols(g, "x", shape=(3,))
    (y,) = g.exec(cmd.mul(), [x, x])
    part = x.alias((2,), (1,))
    (z,) = g.exec(cmd.ewprod(), [part, part, part])
    dx, dpart = g.backward([y, z], [x, part])
    value = np.array([1.0, 2.0, 3.0])
    found = results(g, [dx], {x: nnc.Tensor(value, device="numpy")})
    np.testing.assert_allclose(found[0], 2 * value + 3 * value**2 * [0, 1, 1])
    assert dpart.base is dx and dpart.shape == (2,)


def test_a_recurrence_in_parts_of_one_symbol():
    """Each step reads the part that the step before wrote."""
    g = nnc.SymbolicGraph()
    x, w = symbols(g, "x", "w", shape=(1,))
    (t,) = symbols(g, "t", shape=(4,))
    g.exec(cmd.scalar_mul(a=1.0), [x], [t.alias((1,), (0,))])
    for k in range(3):
        g.exec(cmd.mul(), [t.alias((1,), (k,)), w], [t.alias((1,), (k + 1,))])
    dx, dw = g.backward([t], [x, w])
    (ddw,) = g.backward([dw], [w])
    found = results(g, [t, dx, dw, ddw], {x: number([0.5]), w: number([2.0])})
    assert [v.tolist() for v in found] == [[0.5, 1, 2, 4], [15], [0.5 * 17], [0.5 * 14]]


def test_a_part_of_a_graph_is_compiled():
    g = nnc.SymbolicGraph()
    (x,) = symbols(g, "x")
    (y,) = g.exec(cmd.ewexp(), [x])
    (z,) = g.exec(cmd.mul(), [y, y])
    compiled, arena, _ = g.compile([z], sources=[g.nodes[1]])
    arena.tensor(y).array[...] = 3
    compiled.run()
    assert arena.tensor(z).array == 9 and len(compiled.nodes) == 1
    compiled, arena, nodes = g.compile([z], {x: number(0.0)})
    compiled.run(destinations=[nodes[g.nodes[0]]])
    assert arena.tensor(y).array == 1
    arena.tensor(y).array[...] = 4
    compiled.run(sources=[nodes[g.nodes[1]]])
    assert arena.tensor(z).array == 16


def test_halves_run_through_a_network():
    g = nnc.SymbolicGraph()
    x, w = g.tensor((4, 8), "float16", name="x"), g.tensor((8, 3), "float16", name="w")
    (y,) = g.exec(cmd.gemm(), [x, w])
    (p,) = g.exec(cmd.softmax(), [y])
    (dw,) = g.backward([p], [w])
    assert p.param.dtype == dw.param.dtype == "float16"
    binds = {s: nnc.Tensor(np.ones(s.shape, "float16")) for s in (x, w)}
    compiled, arena, _ = g.compile([p, dw], binds)
    compiled.run()
    np.testing.assert_allclose(arena.tensor(p).array, 1 / 3, rtol=1e-3)
    np.testing.assert_allclose(arena.tensor(dw).array, 0, atol=1e-3)


# Files --------------------------------------------------------------------------------------------


def everything():
    """A graph with aliases, a state, a loop, a branch, a function, and their derivatives."""
    g = nnc.SymbolicGraph("everything")
    x, y = symbols(g, "x", "y", shape=(4,))
    part = x.alias((2,), (1,))
    (a,) = g.exec(cmd.mul(p=0.5), [part, y.alias((2,), (0,), (2,))])
    loop = nnc.SymbolicGraph("loop")
    (b,) = loop.exec(cmd.tanh(), [a])
    (c,) = g.while_(loop, lambda n, s: n < 3, {a: b}, [b], reads=[a])
    one, other = nnc.SymbolicGraph(), nnc.SymbolicGraph()
    (p,), (q,) = one.exec(cmd.ewexp(), [c]), other.exec(cmd.scalar_mul(a=2.0), [c])
    (d,) = g.case_of(lambda t: geon.cast(geon.sum(t) > 0, "int64"), [c], [(one, [p]), (other, [q])])
    cube = cmd.custom(function=lambda v: cmd.ewprod().row.build(v, v, v))
    (e,) = g.exec(cube, [d])
    step = g.minimize(cmd.adam(rate=0.1), [e], [y])
    (ddy,) = g.backward([step.gradients[0]], [y])
    g.set_destinations(g.nodes[-1:] + [n for n in g.nodes if n.command.name == "adam"])
    return g, {"x": x, "y": y, "e": e, "ddy": ddy, "moved": step.updated[0]}


def test_a_graph_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "graph.safetensors"
    g, names = everything()
    values = {n: np.random.default_rng(k).normal(size=4) for k, n in enumerate("xy")}

    def outputs_of(g, names, binds):
        g.set_destinations([])
        compiled, arena, _ = g.compile([names[n] for n in ("e", "ddy", "moved")], binds)
        for _ in range(2):
            compiled.run()
        return [arena.tensor(names[n]).array.copy() for n in ("e", "ddy", "moved")]

    def bound():
        return {names[n]: nnc.Tensor(v.copy(), device="numpy") for n, v in values.items()}

    g.write(path, names, bound())
    again, found, binds = nnc.SymbolicGraph.read(path)
    assert found.keys() == names.keys() and binds.keys() == {found["x"], found["y"]}
    assert [n.name for n in again.nodes] == [n.name for n in g.nodes]
    assert again.dot() == g.dot() and len(again.destinations) == 2
    expected = outputs_of(g, names, bound())
    for mine, reference in zip(outputs_of(again, found, binds), expected, strict=True):
        np.testing.assert_allclose(mine, reference, rtol=1e-12)


def test_a_loop_that_was_read_has_derivatives(tmp_path):
    path = tmp_path / "graph.safetensors"
    g, loop = nnc.SymbolicGraph(), nnc.SymbolicGraph("loop")
    x, y = symbols(g, "x", "y")
    (z,) = loop.exec(cmd.mul(), [x, y])
    (out,) = g.while_(loop, 5, {x: z}, [z])
    for _ in range(2):
        g.write(path, {"x": x, "y": y, "out": out})
        g, names, binds = nnc.SymbolicGraph.read(path)
        x, y, out = (names[n] for n in ("x", "y", "out"))
        assert binds == {}
    (dy,) = g.backward([out], [y])
    (ddy,) = g.backward([dy], [y])
    found = results(g, [out, dy, ddy], {x: number(0.34), y: number(1.11)})
    expected = [0.34 * 1.11**5, 5 * 0.34 * 1.11**4, 20 * 0.34 * 1.11**3]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_damaged_files_of_graphs_are_refused(tmp_path):
    path = tmp_path / "graph.safetensors"
    g, names = everything()
    g.write(path, names, {names["x"]: number(np.ones(4))})
    content = path.read_bytes()
    random = np.random.default_rng(0)
    for k in [0, 8, 200, *random.integers(0, len(content), 40)]:
        wrong = bytearray(content)
        wrong[k] ^= 1 << int(random.integers(8))
        path.write_bytes(wrong)
        with pytest.raises(geon.CheckpointError):
            nnc.SymbolicGraph.read(path)
    path.write_bytes(content[:-7])
    with pytest.raises(geon.CheckpointError, match="cut off or damaged"):
        nnc.SymbolicGraph.read(path)
    with pytest.raises(geon.CheckpointError, match="does not exist"):
        nnc.SymbolicGraph.read(tmp_path / "none")


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda r: r.update(version=2), "of version 2, and this geon reads 1"),
        (lambda r: r.pop("nodes"), "KeyError: 'nodes'"),
        (lambda r: r["nodes"][0].update(inputs=[99, 0]), "KeyError: 99"),
        (lambda r: r["nodes"][0].update(inputs=[-1, 0]), "KeyError: -1"),
        (lambda r: r["nodes"][1]["command"].update(dims=[]), "ValueError"),
        (lambda r: r["nodes"][0]["command"].update(name="mull"), "no command 'mull'"),
        (lambda r: r["nodes"][0].update(outputs=[0]), "give a symbol of that shape"),
        (lambda r: r["nodes"][1]["command"].update(ops="{"), "DumpError"),
        (lambda r: r["rows"][0].update(param=[[-4], "float64", "NHWC", "cpu"]), "lengths"),
        (lambda r: r["edges"].append([0, 0]), "cannot run before itself"),
    ],
)
def test_files_that_are_wrong_inside_are_refused(tmp_path, change, message):
    path = tmp_path / "graph.safetensors"
    g, names = everything()
    g.write(path, names)
    store, leaves = files.store_of({"graph": np.zeros(len(text_of(path)), "uint8")})
    store.restore(path)
    record = json.loads(bytes(store.get(leaves["graph"])))
    change(record)
    changed = np.frombuffer(json.dumps(record).encode(), np.uint8)
    files.store_of({"graph": changed})[0].save(path)
    with pytest.raises(geon.CheckpointError, match=message):
        nnc.SymbolicGraph.read(path)


def text_of(path):
    """Return the bytes of the only entry of a safetensors file."""
    content = path.read_bytes()
    return content[8 + int.from_bytes(content[:8], "little") :]
