"""``examples/program_*.py`` do what their first lines promise."""

import digits
import numpy as np
import program_digits
import program_regression
import program_reversal
import pytest

from geon.frontends import program as fluid

SLOW = pytest.mark.slow


def fetched(network, feeds, place, memory_reuse, more=()):
    """What a few steps fetch of a program: the loss and values in between."""
    scope, executor = fluid.Scope(), fluid.Executor(place, memory_reuse=memory_reuse)
    executor.run(network["startup"], scope=scope)
    return [executor.run(network["main"], feed, [network["loss"], *more], scope) for feed in feeds]


def steps_of(example):
    """The network of an example, with the data of three steps."""
    if example == "regression":
        main, startup, loss, _ = program_regression.build()
        points = [program_regression.points(k, 32) for k in range(3)]
        network = {"main": main, "startup": startup, "loss": loss}
        return network, [{"x": x, "y": y} for x, y in points]
    if example == "digits":
        images, labels = digits.load().train
        parts = [(images[k : k + 16], labels[k : k + 16]) for k in (0, 16, 32)]
        return program_digits.build(), [program_digits.feed(part) for part in parts]
    random = np.random.default_rng(0)
    feeds = [program_reversal.feed(program_reversal.sequences(random)) for _ in range(3)]
    return program_reversal.build(), feeds


@pytest.mark.parametrize(
    ("example", "transformer"),
    [
        ("regression", "native"),
        ("digits", "numpy"),
        ("reversal", "numpy"),
        pytest.param("digits", "native", marks=SLOW),
        pytest.param("reversal", "native", marks=SLOW),
    ],
)
def test_values_in_between_are_the_same_without_reuse_of_memory(example, transformer):
    network, feeds = steps_of(example)
    values = network["main"].global_block().ops
    names = [network["main"].values[op.writes[0]].name for op in values if op.writes]
    more = [name for name in dict.fromkeys(names) if "@" not in name][:12]
    place = fluid.CPUPlace(transformer)
    found, expected, alone = (
        fetched(network, feeds, place, reuse, own)
        for reuse, own in ((True, more), (False, more), (True, ()))
    )
    for one, other, (loss,) in zip(found, expected, alone, strict=True):
        np.testing.assert_allclose(one[0], loss, rtol=1e-4)
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_regression_finds_the_line():
    losses, error = program_regression.train(fluid.Executor(fluid.CPUPlace("numpy")), 150)
    assert losses[-1] < 1e-3 * losses[0] and error < 0.05


def test_the_digits_are_learnt():
    executor = fluid.Executor(fluid.CPUPlace("native"))
    losses, accuracy = program_digits.train(executor, epochs=3)
    assert losses[-1] < losses[0] / 2 and accuracy > 0.85


@pytest.mark.slow
def test_digits_of_a_whole_training():
    assert program_digits.train(fluid.Executor())[1] >= 0.96


@pytest.mark.parametrize(("steps", "least"), [(60, 0.4), pytest.param(300, 0.9, marks=SLOW)])
def test_the_sequences_are_reversed(steps, least):
    losses, accuracy = program_reversal.train(fluid.Executor(fluid.CPUPlace("native")), steps)
    assert losses[-1] < losses[0] * 0.7 and accuracy > least
