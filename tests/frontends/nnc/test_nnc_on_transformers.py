"""A step of training of NNC, and loops and branches, on the transformer of the run."""

import numpy as np

import geon
from geon.frontends import nnc
from geon.frontends.nnc import Tensor, cmd


def network():
    g = nnc.SymbolicGraph()
    x, label = g.tensor((4, 5, 5, 2), name="x"), g.tensor((4,), "int32", name="label")
    w, b, v = (g.tensor(s, name=n) for s, n in (((3, 2, 2, 2), "w"), ((3,), "b"), ((12, 3), "v")))
    (h,) = g.exec(cmd.convolution(), [x, w, b])
    (h,) = g.exec(cmd.relu(), [h])
    (h,) = g.exec(cmd.max_pool(size=2), [h])
    (y,) = g.exec(cmd.gemm(), [h.alias((4, 12)), v])
    loss, _ = g.exec(cmd.softmax_crossentropy(), [y, label])
    g.minimize(cmd.adam(rate=0.05, scale=0.25), [loss], [w, b, v])
    low, high = nnc.SymbolicGraph("low"), nnc.SymbolicGraph("high")
    (total,) = g.exec(cmd.reduce_sum(), [loss])
    (half,) = low.exec(cmd.scalar_mul(a=0.5), [total])
    (root,) = high.exec(cmd.ewsqrt(), [total])
    (shown,) = g.case_of(
        lambda t: geon.cast(t > 1, "int64"), [total], [(low, [half]), (high, [root])]
    )
    loop = nnc.SymbolicGraph("loop")
    (small,) = loop.exec(cmd.scalar_mul(a=0.5), [shown])
    (last,) = g.while_(loop, lambda n, s: s > 0.1, {shown: small}, [small], reads=[shown])
    return g, (x, label, w, b, v), (loss, shown, last)


def trained(backend, steps, on_streams=False):
    g, inputs, outputs = network()
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s.shape).astype("float32") * 0.5 for s in inputs]
    arrays[1] = np.array([0, 1, 2, 0], "int32")
    binds = {s: Tensor(a) for s, a in zip(inputs, arrays, strict=True)}
    for node in g.nodes:
        node.set(node.command.on(backend))
    compiled, arena, _ = g.compile(outputs, binds)
    for node in compiled.nodes:
        node.set(node.command.on(backend))
    losses = []
    for _ in range(steps):
        if on_streams:
            compiled.run_with_schedule(compiled.static_schedule())
        else:
            compiled.run()
        losses.append(arena.tensor(outputs[0]).numpy().sum())
    return losses, [arena.tensor(s).numpy().copy() for s in outputs], arrays[2:]


def test_training_is_the_same_on_every_transformer(transformer_name):
    losses, outputs, weights = trained(transformer_name, 4)
    assert losses[-1] < losses[0]
    expected = trained("numpy", 4, on_streams=True)
    np.testing.assert_allclose(losses, expected[0], rtol=2e-4)
    for mine, reference in zip([*outputs, *weights], [*expected[1], *expected[2]], strict=True):
        np.testing.assert_allclose(mine, reference, rtol=2e-3, atol=2e-5)
