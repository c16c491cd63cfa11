"""Orders of kernels, and values kept once: low memory in blocks with bias and gelu."""

import random

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax
from geon.transformers.lowering.planning.kernel_order import KernelStep, order_of_least_memory
from geon.transformers.sizes.product_blocks import MAX_PACK_CACHE_ROWS

ROWS = MAX_PACK_CACHE_ROWS + 256  # products of so many rows keep no packed weights between calls
N, E, F = geon.Axis("N", ROWS), geon.Axis("E", 64), geon.Axis("F", 256)
HIDDEN, VISIBLE = 4 * ROWS * 256, 4 * ROWS * 64  # bytes of values


def made_at_random(dice, count):
    """Steps that each make one value, of which later ones read some, and the sizes of these."""
    reads = [dice.sample(range(k), min(k, dice.randrange(3))) for k in range(count)]
    steps = []
    for k in range(count):
        after = tuple([j for j in range(k + 1, count) if k in reads[j]])
        joins = tuple([(k, v) for v in reads[k][:1]])
        early = k < count // 4 and not dice.randrange(2) and not reads[k]
        steps.append(KernelStep(tuple(reads[k]), (k,), joins, after, (k,), early))
    return steps, [dice.choice([0, 1, 10, 100]) for _ in range(count)]


def test_steps_stand_after_what_they_wait_for():
    wrong = []
    for seed in range(200):
        steps, sizes = made_at_random(random.Random(seed), 30)
        order, _ = order_of_least_memory(steps, sizes)
        place = {k: at for at, k in enumerate(order)}
        early = sum(step.early for step in steps)
        if sorted(order) != list(range(len(steps))):
            wrong.append((seed, "not all steps once"))
        if any(place[k] > place[j] for k, step in enumerate(steps) for j in step.after):
            wrong.append((seed, "a step before one that it waits for"))
        if not all(steps[k].early for k in order[:early]):
            wrong.append((seed, "others before early steps"))
        if order != order_of_least_memory(steps, sizes)[0]:
            wrong.append((seed, "two orders of one graph"))
    assert not wrong


def test_readers_that_free_a_value_together_run_together():
    """A large value of two readers, neither of which frees it alone, beside a long chain."""
    # 0 makes a; 1 and 2 read a and make little; 3, 4, 5 each make a large value from the last.
    steps = [
        KernelStep((), (0,), (), (1, 2, 3), (0,)),
        KernelStep((0,), (1,), (), (6,), (5,)),
        KernelStep((0,), (2,), (), (6,), (6,)),
        KernelStep((), (3,), (), (4,), (1,)),
        KernelStep((3,), (4,), (), (5,), (2,)),
        KernelStep((4,), (5,), (), (6,), (3,)),
        KernelStep((1, 2, 5), (), (), (), (7,)),
    ]
    order, _ = order_of_least_memory(steps, [100, 1, 1, 100, 100, 100])
    assert set(order[:3]) == {0, 1, 2}


def blocks(count, wrap, bias, function):
    """The loss of blocks ``h + f(h u + b) v``, and its derivatives by all weights."""
    x, ws = geon.placeholder([N, E], name="x"), []
    h = x
    for _ in range(count):
        u, v = geon.Variable([E, F], initial_value=0.1), geon.Variable([F, E], initial_value=0.1)
        b = geon.Variable([F], initial_value=0.1) if bias else 0
        ws += [u, v, b] if bias else [u, v]

        def block(h, u=u, v=v, b=b):
            return h + geon.dot(function(geon.dot(h, u) + b), v)

        h = wrap(block)(h)
    loss = geon.mean(geon.square(h))
    return [loss, *geon.deriv(loss, ws)], x


def peak(make, count, wrap, bias=True, function=geon.gelu):
    """The bytes of a call beside its results."""
    results, x = blocks(count, wrap, bias, function)
    f = make().computation(results, x)
    return f.peak_bytes() - sum(4 * each.axes.size for each in results)


@pytest.mark.parametrize("function", [geon.tanh, geon.gelu])
def test_each_block_under_a_checkpoint_keeps_its_argument_alone(make, function):
    """Neither sums for biases nor weight gradients are left for the end."""
    few, many = (peak(make, count, geon.checkpoint, function=function) for count in (6, 10))
    assert many - few <= 4 * VISIBLE * 1.05


def test_a_bias_takes_no_memory(make):
    for wrap in (geon.checkpoint, lambda function: function):
        without, bias = (peak(make, 8, wrap, each, geon.tanh) for each in (False, True))
        assert bias <= 1.02 * without


def layer_norm(x):
    """Rows of mean 0 and variance 1."""
    x = x - geon.mean(x, F)
    return x / geon.sqrt(geon.mean(geon.square(x), F) + 1e-5)


def test_of_a_function_and_its_argument_one_is_kept():
    """Of hidden values each block keeps one, and of normalised ones less than two."""
    wrong = []
    for function in (geon.tanh, geon.relu, geon.gelu, geon.silu, layer_norm):
        few, many = (
            peak(geon.NativeTransformer, count, lambda f: f, function=function) for count in (6, 10)
        )
        most = 1.8 if function is layer_norm else 1.1
        if (many - few) / 4 > most * HIDDEN + VISIBLE:
            wrong.append((function, (many - few) / 4))
    assert not wrong


def test_values_are_those_of_a_program_that_keeps_both():
    results, x = blocks(3, lambda f: f, True, geon.gelu)
    again = geon.NativeTransformer().computation(results, x)
    assert " gelu\n" in again.explain("simplify")
    data = np.random.default_rng(0).normal(size=(ROWS, 64)).astype("f4")
    kept = geon.NativeTransformer().computation(results, x, check="nan")
    for got, want in zip(again(data), kept(data), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def language_model(wrap):
    """A training step of three blocks of attention and gelu over rows of 64."""
    symbol, following = geon.Axis("symbol", 48), geon.Axis("following", 48)
    row, head, key = geon.Axis("row", 64), geon.Axis("head", 4), geon.Axis("key", 16)
    random = geon.Random(0, name="random")
    init = neon.Glorot(random)

    def block():
        attention = neon.MultiHeadAttention(head, key, row, init, causal=True)
        hidden = neon.Affine(
            geon.Axis("hidden", 256), init, neon.Constant(0.0), activation=geon.gelu
        )
        halves = [[neon.RMSNorm(), attention], [neon.RMSNorm(), hidden, neon.Affine(row, init)]]
        return neon.Sequential([neon.Residual(neon.Sequential(half)) for half in halves])

    symbols = geon.placeholder([ax.N, ax.T], "int64", name="symbols")
    wanted = geon.placeholder([ax.N, ax.T], "int64", name="wanted")
    h = neon.LookupTable(symbol, row, neon.Gaussian(random, std=1.0))(symbols)
    for _ in range(3):
        h = wrap(block())(h)
    scores = neon.Sequential([neon.RMSNorm(), neon.Affine(following, init)])(h)
    loss = geon.mean(neon.costs.cross_entropy(scores, wanted))
    return [loss, neon.AdamW(0.001)(loss)], symbols, wanted


def test_a_checkpointed_language_model_takes_half_of_a_plain_one():
    plain, checkpointed = (
        geon.NativeTransformer(threads=1)
        .computation(*language_model(wrap), specialize={ax.N: 8, ax.T: 64})
        .peak_bytes()
        for wrap in (lambda block: block, geon.checkpoint)
    )
    assert checkpointed <= plain / 2
