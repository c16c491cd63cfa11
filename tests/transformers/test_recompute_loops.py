"""Loops and branches computed again: all results of one together, and what is needed of these."""

import numpy as np
import pytest

import geon
from geon.transformers.lowering.rules import rematerialisation
from tests.kinds import numpy_only
from tests.transformers.test_recompute import H, held, weight


def test_marks_in_the_steps_of_a_loop(transformer):
    steps, rows, wide = geon.Axis("T", 4), geon.Axis("R", 32), geon.Axis("W", 16)
    x = geon.placeholder([steps, rows, wide], name="x")
    w = geon.placeholder([wide.prime, wide], name="w")

    def layers(h, x_t):
        for _ in range(8):
            product = geon.dot(geon.cast_axes(h, [rows, wide.prime]), w)
            h = geon.tanh(geon.cast_axes(product, [rows, wide]) + x_t)
        return h

    def loss(layer):
        def step(h, x_t):
            marked = geon.cond(geon.sum(x_t) > 0, lambda: layer(h, x_t), lambda: layer(-h, x_t))
            return layer(layer(layer(h, x_t), x_t), x_t) + marked, None

        last, _ = geon.scan(step, geon.broadcast(0.1, [rows, wide]), x, over=steps)
        return geon.sum(geon.square(last))

    found, peaks = [], []
    data = np.random.default_rng(0)
    given = data.normal(size=(4, 32, 16)), data.normal(size=(16, 16)) / 8
    for layer in (layers, geon.checkpoint(layers)):
        total = loss(layer)
        slope = geon.deriv(total, x)
        f = transformer.computation([total, slope, geon.jvp(total, w, geon.sin(w))], x, w)
        found.append(f(*given))
        peaks.append(transformer.computation(slope, x, w).peak_bytes())
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4 * np.abs(other).max())
    if transformer.target.name == "numpy":  # where each value has memory of its own
        assert peaks[1] < 0.8 * peaks[0]


def test_a_loop_computed_again_gives_what_is_needed_of_it(make):
    """The reverse needs the last carry of the loop, not what the loop stacks for others."""
    T = geon.Axis("T", 60)

    def block(h, x):
        last, seen = geon.scan(lambda c, each: (geon.tanh(c * each), c * c), h, x, over=T)
        return last * last, geon.sum(geon.reorder(seen, [H, T]), reduction_axes=T)

    def build(wrapper):
        x, w = geon.placeholder([T, H]), geon.placeholder([H])
        h, s = wrapper(block)(w, x)
        last, t = wrapper(block)(geon.sin(h), x)
        loss = geon.sum(last * last) + geon.sum(s + t)
        return [loss, geon.deriv(loss, w)], [x, w], []

    held(make, build, np.full((60, 16), 0.9, np.float32), np.linspace(0.1, 1, 16))


def test_a_branch_and_a_while_loop_computed_again_give_what_is_needed_of_them(make):
    def block(h):
        first, second = geon.cond(
            geon.sum(h) > 0, lambda: (geon.sin(h), h * h), lambda: (geon.cos(h), h)
        )
        (a, b), steps = geon.while_loop(
            lambda c: geon.sum(c[0]) < 20, lambda c: (c[0] * 1.5 + 0.1, c[1] * c[0]),
            (first * first, second), 40, count=True,
        )  # fmt: skip
        return geon.tanh(a * a), geon.sum(b) + geon.cast(steps, "float32")

    def build(wrapper):
        h = w = geon.placeholder([H])
        total = 0.0
        for _ in range(3):
            h, each = wrapper(block)(h)
            total += each
        loss = geon.sum(h * h) + total
        return [loss, geon.deriv(loss, w)], [w], []

    held(make, build, np.linspace(0.1, 0.5, 16))


# Several results ----------------------------------------------------------------------------------

T = geon.Axis("T", 20)


def recurrent(layers):
    """A step of training of a recurrent network of so many layers, but for its updates."""
    N = geon.Axis("N", 8)
    x = geon.placeholder([T, N, H], name="x")
    ws = [weight(k) for k in range(2 * layers)]

    def product(h, w):
        return geon.dot(geon.cast_axes(h, [N, H.prime]), w)

    h = x
    for u, w in zip(ws[::2], ws[1::2], strict=True):

        def step(before, x_t, u=u, w=w):
            new = geon.tanh(product(before, w) + product(x_t, u))
            return new, new

        h = geon.scan(step, geon.broadcast(0.0, [N, H]), h, over=T)[1]
    loss = geon.mean(geon.square(h))
    return [loss, *geon.deriv(loss, ws)], x


@pytest.mark.slow
def test_layers_of_loops_fit_a_budget(make):
    """The plan is fullest where one loop's stack is computed again and its last carry is not."""
    results, x = recurrent(2)
    f = make().computation(results, x)
    data = np.random.default_rng(0).normal(size=(20, 8, 16))
    expected = f(data)
    for part in (0.8, 0.6):
        budget = int(part * f.peak_bytes())
        g = make().computation(results, x, memory=budget)
        assert g.peak_bytes() <= budget
        for one, other in zip(g(data), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)


def apart(last, first, second, onward):
    """Marks below which different results of one loop are."""
    return geon.sum(geon.remat(geon.tanh(last), keeps(0))) * geon.sum(
        geon.remat(geon.tanh(second), keeps(0))
    )


def one_on_another(last, first, second, onward):
    """A loop on what another one gives, both of its results below marks."""
    last, (first, _) = onward(last, first)
    return geon.sum(geon.remat(first, keeps(1))) + geon.sum(geon.remat(last, keeps(1)) * last)


def keeps(number):
    """The policy that keeps this result of each loop, and no other."""
    return lambda op: op.primitive.name == "region_result" and op.attrs.number == number


@pytest.mark.parametrize("build", [apart, one_on_another])
def test_marks_that_keep_one_result_of_several(build, make, monkeypatch):
    steps = geon.Axis("T", 6)
    x, w = geon.placeholder([steps, H]), geon.placeholder([H])

    def onward(init, xs):
        step = lambda c, e: (geon.tanh(c * w + e), (c * c, geon.sin(c)))  # noqa: E731  # short
        return geon.scan(step, init, xs, over=steps)

    last, (first, second) = onward(w, x)
    y = build(last, first, second, onward)
    results = [geon.deriv(y, w), geon.hvp(y, w, w), geon.sum(second)]
    given = np.linspace(-1, 1, 96).reshape(6, 16), np.linspace(0.1, 1, 16)
    found = make().computation(results, x, w)(*given)
    monkeypatch.setattr(rematerialisation.Recomputation, "find_late", lambda self: {})
    once = make().computation(results, x, w)(*given)
    for one, other in zip(found, once, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_mark_keeps_results_that_nothing_else_needs(make):
    x = geon.placeholder([H])
    first, second = geon.cond(
        geon.sum(x) > 0, lambda: (geon.sin(x), x * 2), lambda: (geon.cos(x), x * 3)
    )
    y = geon.tanh(first) + geon.sum(second[0:0])
    y = geon.remat(y, lambda op: op.primitive.name == "region_result")
    f = make().computation(y, x)
    given = np.linspace(0.1, 1, 16)
    np.testing.assert_allclose(f(given), np.tanh(np.sin(given)), rtol=1e-5)


# Random graphs ------------------------------------------------------------------------------------

A, K = geon.Axis("A", 3), geon.Axis("K", 4)


class Grown:
    """Values over ``A`` of loops, branches and marks in each other, of a seed."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.x, self.y = (geon.placeholder([A], "float64") for _ in range(2))
        self.v = geon.Variable([A], "float64", initial_value=np.array([0.3, -0.2, 0.5]))
        self.depth = 0

    def below(self, count):
        return int(self.random.integers(count))

    def pick(self, choices):
        return choices[self.below(len(choices))]

    def grown(self, pool, most=3):
        """Some values of those in the pool, and of each other."""
        made = []
        for _ in range(1 + self.below(most)):
            kinds = [self.simple, self.scan, self.loop, self.branch, self.checkpoint, self.remat]
            kind = self.pick(kinds) if self.depth < 2 and self.below(2) else self.simple
            self.depth += 1
            made += kind([*pool, *made])
            self.depth -= 1
        return made

    def some(self, pool, count):
        """So many values of what grows of the pool, which stay small."""
        made = self.grown(pool)
        return tuple(geon.tanh(self.pick(made)) for _ in range(count))

    def simple(self, pool):
        a, b = self.pick(pool), self.pick(pool)
        return [self.pick([geon.tanh(a), geon.sin(a + b), a * b, geon.dot(a, b) * a * 0.2])]

    def scan(self, pool):
        carries, stacks = 1 + self.below(2), self.below(3)

        def step(c, k):
            return self.some([*pool, *c], carries), self.some([*pool, *c], stacks)

        init = tuple(self.pick(pool) for _ in range(carries))
        backwards = bool(self.below(2))
        last, seen = geon.scan(step, init, geon.iota(K), over=K, reverse=backwards)
        return [*last, *(geon.sum(each, K) for each in seen)]

    def loop(self, pool):
        steps, count = self.below(4), 1 + self.below(2)
        init = tuple(self.pick(pool) for _ in range(count))
        last = geon.while_loop(
            lambda c: c[0] < steps,
            lambda c: (c[0] + 1, *self.some([*pool, *c[1:]], count)),
            (0, *init),
            4,
        )
        return last[1:]

    def branch(self, pool):
        count, truth = 1 + self.below(3), geon.sum(self.pick(pool)) > 0
        each = lambda: self.some(pool, count)  # noqa: E731  # twice
        return geon.cond(truth, each, each)

    def checkpoint(self, pool):
        count = 1 + self.below(3)
        function = geon.checkpoint(lambda *own: self.some([*own, *pool[-2:]], count))
        return function(*(self.pick(pool) for _ in range(2)))

    def remat(self, pool):
        kept = self.pick(["nothing", "products", lambda op: op.primitive.name == "region_result"])
        return [geon.remat(each, kept) for each in self.grown(pool)[-2:]]

    def results(self):
        """Values with derivatives to order 2, and an assignment."""
        pool = self.grown([self.x, self.y, self.v], 5)
        total = sum((geon.sum(p) * (0.1 * k) for k, p in enumerate(pool[-4:], 1)), geon.sum(self.x))
        slopes = geon.deriv(total, [self.x, self.v], unreached="zero")
        further = geon.deriv(geon.sum(geon.tanh(slopes[0]) * self.y), self.x, unreached="zero")
        step = geon.assign(self.v, self.v * 0.9 + 0.01 * slopes[1])
        return [total, *slopes, further, self.pick(pool), step]


def computed(transformer, grown, results, **options):
    """The values of two calls and the variable then, and the computation."""
    f = transformer.computation(results, grown.x, grown.y, **options)
    feeds = np.array([0.1, 0.7, -1.2]), np.array([1.1, -0.3, 0.2])
    return [*f(*feeds)[:-1], *f(*feeds)[:-1], transformer.get(grown.v)], f


@numpy_only
def test_random_graphs_of_loops_mean_the_same(make, monkeypatch):
    """Without their marks, with them, and in less memory."""
    fitting = 0
    for seed in (2, 31, 32, 34, 36, 38, 40, 44, 45):
        grown = Grown(seed)
        results = grown.results()
        found = [computed(make(), grown, results)]
        for part in (0.8, 0.6):
            budget = int(part * found[0][1].peak_bytes())
            try:
                found.append(computed(make(), grown, results, memory=budget))
            except geon.SizeError:
                continue
            fitting += 1
            assert found[-1][1].peak_bytes() <= budget
        with monkeypatch.context() as patch:
            patch.setattr(rematerialisation.Recomputation, "find_late", lambda self: {})
            once, _ = computed(make(), grown, results)
        for again, _ in found:
            for one, other in zip(again, once, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
    assert fitting > 2
