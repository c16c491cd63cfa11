"""Initializers: their distributions, shapes, seeds, descriptions, and the shapes they refuse."""

import json

import numpy as np
import pytest

from geon.frontends.brainstorm.describable import create_from_description, get_description
from geon.frontends.brainstorm.initializers import (
    ArrayInitializer,
    DenseSqrtFanIn,
    DenseSqrtFanInOut,
    EchoState,
    Gaussian,
    Identity,
    LstmOptInit,
    Orthogonal,
    RandomWalk,
    SparseInputs,
    SparseOutputs,
    Uniform,
    evaluate_initializer,
)
from geon.frontends.brainstorm.randomness import RandomState, Seedable, global_rnd
from geon.frontends.brainstorm.utils import InitializationError

ALL = [
    DenseSqrtFanIn(),
    DenseSqrtFanInOut("tanh"),
    EchoState(0.7),
    Gaussian(2.0, 1.0),
    Identity(2.0),
    LstmOptInit(Gaussian(), 1.0, Uniform(), 2.0),
    Orthogonal(),
    RandomWalk("rel"),
    SparseInputs(Gaussian(), 3),
    SparseOutputs(Uniform(), 3),
    Uniform(-1.0, 2.0),
]


@pytest.mark.parametrize("initializer", ALL, ids=lambda each: type(each).__name__)
def test_a_seed_decides_the_values_and_a_description_keeps_them(initializer):
    values = evaluate_initializer(initializer, (8, 8), seed=3)
    assert values.shape == (8, 8) and np.isfinite(values).all() and np.ptp(values) > 0
    again = create_from_description(json.loads(json.dumps(get_description(initializer))))
    assert type(again) is type(initializer)
    assert np.array_equal(evaluate_initializer(again, (8, 8), seed=3), values)
    assert not np.array_equal(evaluate_initializer(again, (8, 8), seed=4), values)


def test_values_are_those_of_the_legacy_stream_of_numpy():
    """The draws and their arithmetic are those of Brainstorm, bit by bit."""
    shape, random = (4, 6), np.random.RandomState
    expected = {
        Gaussian(0.5, 1.0): random(7).randn(4, 6) * 0.5 + 1.0,
        Uniform(0.3): (0.3 + 0.3) * random(7).rand(4, 6) - 0.3,
        DenseSqrtFanIn("sigmoid"): 4 * np.sqrt(3) * (2 * random(7).rand(4, 6) - 1) / np.sqrt(6),
        DenseSqrtFanInOut(): np.sqrt(12) * (2 * random(7).rand(4, 6) - 1) / np.sqrt(10),
    }
    for initializer, values in expected.items():
        assert np.array_equal(evaluate_initializer(initializer, shape, seed=7), values)


def test_distributions():
    wide = (300, 200)
    assert abs(evaluate_initializer(Gaussian(0.5, 1.0), wide, seed=0).std() - 0.5) < 0.01
    fan_in = evaluate_initializer(DenseSqrtFanIn(), wide, seed=0)
    assert abs(fan_in.std() - np.sqrt(2 / 200)) < 0.001
    assert 0.99 < abs(fan_in).max() / np.sqrt(6 / 200) <= 1
    glorot = evaluate_initializer(DenseSqrtFanInOut("tanh"), wide, seed=0)
    assert 0.99 < abs(glorot).max() / np.sqrt(6 / 500) <= 1
    walk = evaluate_initializer(RandomWalk(), (200, 200), seed=0)
    assert abs(walk.std() * np.sqrt(200) - np.exp(1 / 400)) < 0.01
    echo = evaluate_initializer(EchoState(0.7), (20, 20), seed=0)
    assert np.isclose(abs(np.linalg.eigvals(echo)).max(), 0.7)
    for shape in [(4, 7), (7, 4)]:
        q = evaluate_initializer(Orthogonal(), shape, seed=0)
        assert np.allclose(q @ q.T if shape[0] < shape[1] else q.T @ q, np.eye(4))
    near = evaluate_initializer(Identity(3.0, 0.0, enforce_square=False), (3, 5), seed=0)
    assert np.array_equal(near, 3 * np.eye(3, 5))


def test_sparse_matrices_have_so_many_connections():
    inputs = evaluate_initializer(SparseInputs(1.0, 3), (6, 9), seed=0)
    assert (np.count_nonzero(inputs, axis=1) == 3).all()
    assert (np.count_nonzero(inputs, axis=0) != 3).any()
    outputs = evaluate_initializer(SparseOutputs(1.0, 3), (6, 9), seed=0)
    assert (np.count_nonzero(outputs, axis=0) == 3).all()


def test_blocks_of_an_lstm():
    values = evaluate_initializer(LstmOptInit(1.0, 2, [[3.0]], Gaussian(0.0, 4.0)), (4, 1), seed=0)
    assert values.tolist() == [[1.0], [2.0], [3.0], [4.0]]


def test_numbers_arrays_and_fallbacks():
    assert evaluate_initializer(2, (2, 2)).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert evaluate_initializer([1, 2], (2,)).tolist() == [1, 2]
    assert get_description(ArrayInitializer([1, 2])) == [1, 2]
    assert evaluate_initializer(Orthogonal(), (3,), fallback=0.5).tolist() == [0.5] * 3
    with pytest.raises(TypeError, match="'a' of type str is no initializer"):
        evaluate_initializer("a", (2,), fallback=0)


@pytest.mark.parametrize(
    ("initializer", "shape", "what"),
    [
        (ArrayInitializer([1, 2]), (3,), r"\(3,\).*that of the array, \(2,\)"),
        (DenseSqrtFanIn(), (3,), "at least two axes"),
        (DenseSqrtFanInOut(), (3,), "at least two axes"),
        (EchoState(), (2, 3), "square"),
        (Identity(), (2, 3), "square"),
        (Identity(), (2,), "matrix"),
        (LstmOptInit(), (6, 2), "multiple of 4"),
        (Orthogonal(), (2, 2, 2), "matrix"),
        (RandomWalk(), (2, 3), "square"),
        (SparseInputs(0.1, 4), (5, 3), "at least 4 along axis 1"),
        (SparseOutputs(0.1, 4), (3, 5), "at least 4 along axis 0"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_shapes_that_do_not_fit_are_refused(initializer, shape, what):
    with pytest.raises(InitializationError, match=f"{type(initializer).__name__}.*{what}"):
        evaluate_initializer(initializer, shape)


def test_arguments_that_do_not_fit_are_refused():
    for make in (
        lambda: DenseSqrtFanIn("el"),
        lambda: RandomWalk("tanh"),
        lambda: Uniform(1.0, 0.5),
    ):
        with pytest.raises(InitializationError, match="give"):
            make()


def test_random_states_keep_and_make_seeds():
    state = RandomState(5)
    first, seed = state.rand(), state.generate_seed()
    assert state.get_seed() == 5
    state.reset()
    assert state.rand() == first
    assert state.create_random_state().get_seed() == seed
    assert RandomState.seed_range[0] <= seed < RandomState.seed_range[1]
    state.set_seed(6)
    assert state.get_seed() == 6 and state.rand() == np.random.RandomState(6).rand()
    assert state.create_random_state(9).get_seed() == 9


def test_a_copy_of_a_random_state_goes_on_as_it_does():
    import copy
    import pickle

    state = RandomState(5)
    state.rand(3)
    for again in (copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
        assert type(again) is RandomState and again.get_seed() == 5
        assert np.array_equal(copy.deepcopy(state).rand(4), again.rand(4))


def test_new_objects_take_their_seeds_from_the_global_state():
    before = global_rnd.get_state()
    try:
        global_rnd.set_seed(42)
        seeds = [Seedable().rnd.get_seed(), Gaussian().rnd.get_seed(), RandomState().get_seed()]
        expected = np.random.RandomState(42)
        assert seeds == [expected.randint(0, 1000000000) for _ in range(3)]
    finally:
        global_rnd.set_state(before)
