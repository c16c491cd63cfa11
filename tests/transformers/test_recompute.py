"""Values computed again: the same as those that are kept, in less memory, whatever the graph."""

import dataclasses
from collections import namedtuple

import numpy as np
import pytest

import geon
from geon.op_graph.op_graph import post_order
from geon.transformers.lowering.rules import rematerialisation
from tests.kinds import numpy_only

N, H = geon.Axis("N"), geon.Axis("H", 16)
ROWS = 32
X = np.random.default_rng(5).normal(size=(ROWS, 16)).astype(np.float32)
Pair = namedtuple("Pair", "left right")


@dataclasses.dataclass(frozen=True)
class Fields:
    value: geon.Tensor
    label: str


def plain(function):
    """The function itself, where another one is checkpointed."""
    return function


def weight(seed, scale=0.3):
    values = np.random.default_rng(seed).normal(size=(16, 16)).astype(np.float32)
    return geon.Variable([H.prime, H], initial_value=scale * values, name=f"w{seed}")


def layer(w, h):
    return geon.tanh(geon.rename(geon.dot(w, geon.tanh(h)), {H.prime: H}))


def count(f, name):
    """How many ops of a row a program computes."""
    return sum(op.primitive.name == name for op in post_order(f.program.roots))


def held(make, build, *feeds):
    """Hold ``build(geon.checkpoint)`` to ``build(plain)``: values, and variables after two calls.

    ``build`` gives results, placeholders and variables. Gives both computations.
    """
    made, found = [], []
    for wrapper in (plain, geon.checkpoint):
        transformer = make()
        results, placeholders, variables = build(wrapper)
        f = transformer.computation(results, *placeholders)
        values = [np.asarray(v) for _ in range(2) for v in f(*feeds) if v is not None]
        found.append([*values, *map(transformer.get, variables)])
        made.append(f)
    for without, again in zip(*found, strict=True):
        if transformer.target.name == "numpy":
            np.testing.assert_array_equal(again, without)
        else:
            np.testing.assert_allclose(again, without, rtol=1e-4, atol=1e-5)
    return made


def training(layers, together):
    """What builds a step of training of so many layers, so many of them in a checkpoint."""

    def build(wrapper):
        x = geon.placeholder([N, H], name="x")
        ws = [weight(k) for k in range(layers)]

        def block(h, *own):
            for w in own:
                h = layer(w, h)
            return h

        h = x
        for k in range(0, layers, together):
            h = wrapper(block)(h, *ws[k : k + together])
        loss = geon.mean(geon.square(h))
        slopes = geon.deriv(loss, ws)
        return (
            [loss, *(geon.assign(w, w - 0.1 * g) for w, g in zip(ws, slopes, strict=True))],
            [x],
            ws,
        )

    return build


# Memory -----------------------------------------------------------------------------------------


def values_of(f):
    """The most bytes of values that an arena holds at once, without what kernels work in."""
    sizes = [0] * len(f.plan.schedule.kernels)
    for buffer in f.plan.buffers:
        if not buffer.scratch:
            for k in range(buffer.first, buffer.last + 1):
                sizes[k] += buffer.bytes({"N": ROWS}, 1)
    return max(sizes)


def test_a_deep_network_takes_the_root_of_its_memory(make):
    without, again = held(make, training(24, 5), X)
    assert values_of(again) < 0.45 * values_of(without)
    assert count(again, "tanh") > count(without, "tanh") == 48
    assert again.peak_bytes({N: 1000}) < 0.5 * without.peak_bytes({N: 1000})


@numpy_only
def test_only_what_is_needed_is_computed_again(make):
    without, again = held(make, training(6, 2), X)
    # The last product and tanh of a block lead to its result, which the next block keeps.
    assert count(again, "dot") == count(without, "dot") + 3 + 1
    assert count(again, "tanh") == count(without, "tanh") + 9 + 1
    row = 4 * ROWS * 16
    assert values_of(again) <= (3 + 4 + 2) * row + 6 * 4 * 16 * 16


def chain(wrapper):
    x = geon.placeholder([N, H])
    y = x
    for _ in range(4):
        y = wrapper(lambda h: geon.tanh(geon.tanh(geon.tanh(geon.tanh(h)))))(y)
    total = geon.sum(geon.square(y))
    return [total, geon.deriv(total, x)], [x], []


def test_a_chain_of_cheap_functions(make):
    without, again = held(make, chain, X)
    assert count(again, "tanh") == 16 + 4 * 3 + 1
    assert values_of(again) < values_of(without)


def test_without_a_plan_and_on_several_threads_bits_are_the_same(make):
    results, placeholders, _ = training(4, 2)(geon.checkpoint)
    loss, bits = results[0], []
    slopes = geon.deriv(loss, loss.variables())
    for threads, plan in ((1, True), (2, True), (2, False)):
        transformer = make() if make().target.name != "native" else make(threads=threads)
        f = transformer.computation([loss, *slopes], *placeholders, plan=plan)
        bits.append([value.tobytes() for value in f(X)])
    assert bits[0] == bits[1] == bits[2]


# Graphs -----------------------------------------------------------------------------------------


def second(wrapper):
    x, t = geon.placeholder([N, H]), geon.placeholder([N, H])
    w = weight(3)
    y = x
    for _ in range(3):
        y = wrapper(lambda h: layer(w, layer(w, h)))(y)
    loss = geon.mean(geon.square(y))
    slope = geon.deriv(loss, w)
    return [slope, geon.deriv(geon.sum(geon.square(slope)), [w, x])[0], geon.hvp(loss, x, t),
            geon.jvp(y, [x, w], [t, w])], [x, t], [w]  # fmt: skip


def test_derivatives_of_higher_order_and_forward_mode(make):
    without, again = held(make, second, X, X[::-1].copy())
    assert count(again, "dot") > count(without, "dot")


def nested(wrapper):
    x, w = geon.placeholder([N, H]), weight(4)

    def inner(h):
        return layer(w, layer(w, h))

    def outer(h):
        return wrapper(inner)(wrapper(inner)(h) + h)

    y = wrapper(outer)(wrapper(outer)(x))
    loss = geon.mean(geon.square(y))
    return [loss, geon.deriv(loss, w)], [x], [w]


def test_checkpoints_nest(make):
    without, again = held(make, nested, X)
    assert count(again, "dot") > 1.5 * count(without, "dot") * 2 / 3
    assert values_of(again) < values_of(without)


def structured(wrapper):
    x, w = geon.placeholder([N, H]), weight(5)
    outside = geon.exp(geon.sum(x, H) * 0.1)

    @wrapper
    def function(given, *, scale, pair):
        inner = geon.tanh(given["h"] * scale) * outside
        first = geon.sin(inner) * pair.left
        return {"a": Fields(geon.tanh(first), "text"), "b": [first * inner, (pair.right, 3)]}

    made = function({"h": geon.tanh(x), "mode": "fast"}, scale=0.5, pair=Pair(x + 1, w))
    assert made["a"].label == "text" and made["b"][1] == (w, 3)
    y = geon.square(made["a"].value) + geon.tanh(made["b"][0])
    loss = geon.sum(geon.tanh(y))
    return [loss, geon.deriv(loss, x), made["b"][0]], [x], []


def test_structures_several_results_and_what_is_read_beside(make):
    without, again = held(make, structured, X)
    assert count(again, "sin") == 2 and count(without, "sin") == 1
    assert count(again, "exp") == 1  # read beside the arguments, and kept


def drawn(wrapper):
    x, w = geon.placeholder([N, H]), weight(6)
    stream = geon.Random(3)
    y = x
    for _ in range(3):
        y = wrapper(lambda h: layer(w, h) * stream.bernoulli([N, H], 0.5) / 0.5)(y)
    loss = geon.mean(geon.square(geon.tanh(y)))
    return [loss, geon.deriv(loss, w)], [x], [stream.counter]


def test_draws_are_the_same_and_not_kept(make):
    without, again = held(make, drawn, X)
    assert count(again, "random_bits") > count(without, "random_bits") == 3


def indexed(wrapper):
    x = geon.placeholder([N, H])
    places = geon.placeholder([N], "int64")
    table = weight(7)

    def function(h, index):
        rows = geon.gather(geon.rename(table, {H.prime: "V"}), index, "V")
        return geon.tanh(geon.tanh(rows * h))

    y = wrapper(function)(wrapper(function)(x, places), places)
    loss = geon.sum(geon.square(y))
    return [loss, geon.assign(table, table - 0.01 * geon.deriv(loss, table))], [x, places], [table]


def test_positions_are_checked_once_and_updates_come_last(make):
    places = np.arange(ROWS) % 16
    _, again = held(make, indexed, X, places)
    assert count(again, "checked") == 1
    before = again.transformer.get("w7")
    with pytest.raises(geon.IndexRangeError):
        again(X, places + 1)
    np.testing.assert_array_equal(again.transformer.get("w7"), before)


def test_what_prints_prints_once_and_in_order(make, capsys):
    x = geon.placeholder([H])

    @geon.checkpoint
    def function(h):
        h = geon.print(geon.tanh(h), "inner")
        return geon.tanh(geon.sin(geon.print(geon.exp(h), "outer") * geon.exp(-h)))

    y = function(function(x))
    total = geon.sum(geon.square(y))
    slope = geon.deriv(total, x)
    f = make().computation([geon.print(slope, "slope"), total], x)
    assert count(f, "sin") == 2 + 1 and count(f, "exp") == 4 + 2  # what prints is kept
    f(X[0])
    printed = [line.split(" ")[0].rstrip(":") for line in capsys.readouterr().out.splitlines()
               if line[0].isalpha()]  # fmt: skip
    assert printed == ["inner", "outer", "inner", "outer", "slope"]


def test_prints_of_one_nest_keep_their_order(make, capsys):
    x, y = geon.placeholder([H]), geon.placeholder([H])
    a = geon.relu(x)
    first, then = geon.print(a, "first"), geon.print(x, "second")
    f = make().computation([first * 2, geon.tanh(then) + a * 3 + y], x, y)
    values = f(X[0], X[1])
    np.testing.assert_allclose(values[0], 2 * np.maximum(X[0], 0))
    out = capsys.readouterr().out
    assert -1 < out.index("first") < out.index("second")


# Policies ---------------------------------------------------------------------------------------


def policed(policy):
    x, w = geon.placeholder([N, H]), weight(8)
    y = layer(w, layer(w, layer(w, x)))
    if policy is not None:
        y = geon.remat(y, policy)
    loss = geon.mean(geon.square(y))
    return geon.NumPyTransformer().computation([loss, geon.deriv(loss, w)], x)


def test_policies_say_what_is_kept():
    found = {}
    policies = [None, "all", "products", "nothing", lambda op: op.primitive.name == "tanh"]
    values = []
    for key, policy in zip("NAPnf", policies, strict=True):
        f = policed(policy)
        found[key] = count(f, "tanh"), count(f, "dot")
        values.append([v.tobytes() for v in f(X)])
    assert all(value == values[0] for value in values)
    (tanhs, dots), kept = found["N"], found["P"]
    assert found["A"] == found["f"] == (tanhs, dots)
    assert (tanhs, kept, found["n"]) == (6, (12, dots), (12, dots + 3))


def test_another_policy_is_refused():
    x = geon.placeholder([N])
    with pytest.raises(geon.ArgumentError, match=r"policy='some' is none of 'nothing', 'products'"):
        geon.remat(x * 2, "some")


def test_a_structure_that_contains_itself_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(geon.ArgumentError, match=r"arguments of a checkpoint\S* contains itself"):
        geon.checkpoint(lambda x: x)(loop)
    with pytest.raises(geon.ArgumentError, match=r"results of a checkpoint\S* contains itself"):
        geon.checkpoint(lambda x: loop)(geon.placeholder([N]))


def test_what_is_no_function_has_no_checkpoint():
    with pytest.raises(geon.ArgumentError, match=r"3 is no function; give one, and call what"):
        geon.checkpoint(3)


def test_effects_of_a_function_are_run_and_their_targets_are_held_to_storage(make):
    x = geon.placeholder([H])
    v = geon.Variable([H], initial_value=0)

    @geon.checkpoint
    def function(h, state):
        y = geon.tanh(geon.tanh(h))
        return y, geon.assign(state, state + y)

    y, step = function(x, v)
    transformer = make()
    f = transformer.computation([geon.deriv(geon.sum(geon.square(y)), x), step], x)
    f(X[0])
    np.testing.assert_allclose(transformer.get(v), np.tanh(np.tanh(X[0])), rtol=1e-5)
    with pytest.raises(geon.AssignError, match="cannot assign"):
        function(x, x * 2)


def test_names_lines_and_dumps_stay():
    x = geon.placeholder([H], name="x")
    y = geon.checkpoint(lambda h: geon.tanh(geon.exp(h, name="inner"), name="y"))(x)
    assert geon.find("inner", y).primitive.name == "exp" and y.name == "y"
    assert geon.find("inner", y).args[0] is x and __file__ in y.filename
    slope = geon.deriv(geon.sum(geon.square(y)), x)
    again = geon.loads(geon.dumps(slope))
    assert geon.dumps(again) == geon.dumps(slope) and '"remat"' in geon.dumps(slope)
    f = geon.NumPyTransformer().computation(slope, x)
    text = f.explain("simplify")
    assert "remat" not in text and text.count("exp(") == 2 and "after(" in text
    np.testing.assert_array_equal(f.trace(X[0])[-1].value, f(X[0]))


@pytest.mark.slow
def test_many_checkpoints_one_after_another_and_in_each_other():
    x = y = geon.placeholder([H])
    step = geon.checkpoint(lambda h: geon.sin(geon.tanh(h)))
    for _ in range(1000):
        y = step(y)
    deep = lambda h: geon.tanh(h)  # noqa: E731  # wrapped below
    for _ in range(6):
        deep = geon.checkpoint(lambda h, f=deep: geon.tanh(f(h)))
    total = geon.sum(geon.square(deep(y)))
    f = geon.NumPyTransformer().computation(geon.deriv(total, x), x)
    assert f.peak_bytes() < 0.7 * 4 * 16 * 2000
    assert np.isfinite(f(X[0])).all()


# Random graphs ----------------------------------------------------------------------------------

A = geon.Axis("A", 3)
STEPS = [
    lambda a, b: geon.tanh(a),
    lambda a, b: geon.sin(a),
    lambda a, b: a * b,
    lambda a, b: a + b,
    lambda a, b: geon.sigmoid(a) * geon.sum(b) * 0.1,
    lambda a, b: geon.sqrt(geon.square(a) + 1.0),
    lambda a, b: geon.dot(a, b) * a * 0.2,
]


def random_results(seed):
    """Results over functions that are checkpointed, in each other, with derivatives to order 2."""
    random = np.random.default_rng(seed)
    x, y = (geon.placeholder([A], "float64") for _ in range(2))
    v = geon.Variable([A], "float64", initial_value=np.array([0.3, -0.2, 0.5]))

    def pick(pool):
        return pool[random.integers(len(pool))]

    def grown(pool, depth):
        pool = list(pool)
        for _ in range(random.integers(1, 8)):
            if depth and random.integers(3) == 0:
                args = [pick(pool) for _ in range(random.integers(1, 3))]
                beside = [pick(pool) for _ in range(random.integers(0, 3))]
                several = int(random.integers(1, 4))

                def function(*own, beside=beside, several=several):
                    made = grown([*own, *beside], depth - 1)
                    return [pick(made) for _ in range(several)]

                pool += geon.checkpoint(function)(*args)
            else:
                pool.append(STEPS[random.integers(len(STEPS))](pick(pool), pick(pool)))
        return pool

    pool = grown([x, y, v], 2)
    total = sum((geon.sum(p) * (0.1 * k) for k, p in enumerate(pool[-4:], 1)), geon.sum(x * 0.01))
    slopes = geon.deriv(total, [x, v], unreached="zero")
    further = geon.deriv(geon.sum(geon.tanh(slopes[0]) * y), [x, y], unreached="zero")
    step = geon.assign(v, v * 0.9 + 0.01 * slopes[1])
    results = [total, *slopes, *further, geon.jvp(total, x, y), geon.hvp(total, x, y), pick(pool)]
    return [*results, step], [x, y], v


def computed(transformer, seed):
    results, placeholders, v = random_results(seed)
    f = transformer.computation(results, *placeholders)
    feeds = np.array([0.1, 0.7, -1.2]), np.array([1.1, -0.3, 0.2])
    return [*f(*feeds)[:-1], *f(*feeds)[:-1], transformer.get(v)], len(f.plan.schedule.kernels)


def test_random_graphs_mean_the_same_without_their_marks(make, monkeypatch):
    exact = make().target.name == "numpy"
    more = 0
    for seed in range(120 if exact else 6):
        again, kernels = computed(make(), seed)
        with monkeypatch.context() as patch:
            patch.setattr(rematerialisation.Recomputation, "find_late", lambda self: {})
            once, fewer = computed(make(), seed)
        more += kernels > fewer
        for one, other in zip(again, once, strict=True):
            if exact:
                np.testing.assert_array_equal(one, other)
            else:
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
    assert more > (15 if exact else 0)
