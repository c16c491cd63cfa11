"""Executors: runs, scopes, random draws, places, interpretation, and errors."""

import gc
import weakref

import numpy as np
import pytest

import geon
from geon.frontends import program as fluid
from geon.frontends.program import layers, optimizers
from geon.frontends.program.operators.updates import SCHEDULES, UPDATES
from geon.frontends.program.storage import home_of

F = np.float32


def regression(**options):
    """A step of a regression with random draws: programs, the loss, the mask and its input."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x, y = layers.data("x", [3]), layers.data("y", [1])
        hidden = layers.fc(x, 8, act="tanh")
        kept = layers.dropout(hidden, dropout_prob=0.5)
        loss = layers.mean(layers.square_error_cost(layers.fc(kept, 1), y))
        optimizers.Momentum(0.1, mu=0.9, **options).minimize(loss, startup)
    return main, startup, loss, kept


def started(startup, place=None, scope=None):
    scope = scope or fluid.Scope()
    executor = fluid.Executor(place or fluid.CPUPlace("numpy"))
    executor.run(startup, scope=scope)
    return executor, scope


def feed(count=6, seed=0):
    random = np.random.default_rng(seed)
    return {"x": random.normal(size=(count, 3)), "y": random.normal(size=(count, 1))}


def parameters(main, scope):
    names = [p.name for p in main.all_parameters()]
    return {name: scope.find_var(name).get().array.copy() for name in names}


@pytest.mark.parametrize("transformer", ["numpy", "native"])
def test_interpreting_gives_the_numbers_of_the_compiled_program(transformer):
    main, startup, loss, kept = regression()
    found = []
    for interpret in (False, True):
        executor, scope = started(startup, fluid.CPUPlace(transformer))
        runs = [
            executor.run(main, feed(n), [loss, kept], scope, interpret=interpret) for n in (6, 3)
        ]
        found.append([*runs[0], *runs[1], *parameters(main, scope).values()])
    for compiled, interpreted in zip(*found, strict=True):
        np.testing.assert_allclose(interpreted, compiled, rtol=2e-6, atol=1e-7)
    assert (found[0][1] == 0).any() and (found[0][1] != 0).any()  # the mask of the dropout


def test_steps_on_each_transformer_are_those_of_numpy(transformer_name):
    """A loss, its update and the mask of a dropout; the draws are equal bit for bit."""
    main, startup, loss, kept = regression()
    own = fluid.CPUPlace(transformer_name)
    places = [fluid.CUDAPlace(0) if transformer_name == "pycuda" else own, fluid.CPUPlace("numpy")]
    found = []
    for place in places:
        executor, scope = started(startup, place)
        runs = [executor.run(main, feed(n), [loss, kept], scope) for n in (6, 3)]
        found.append([*runs[0], *runs[1], *parameters(main, scope).values()])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[0][1] == 0, found[1][1] == 0)


def test_values_are_printed_on_request_and_a_nan_names_its_operator(capsys):
    main, startup, loss, kept = regression()
    executor, scope = started(startup)
    data = feed()
    executor.run(main, data, [loss], scope, interpret=True, show=[kept.name])
    assert capsys.readouterr().out.startswith(f"{kept.name} of dropout at ")
    before = parameters(main, scope)
    with pytest.raises(geon.NonFiniteError, match=r"mul at .*py:\d+: its output .* NaN, first at"):
        executor.run(main, {**data, "x": data["x"] * np.nan}, [loss], scope, interpret=True)
    for name, value in parameters(main, scope).items():
        np.testing.assert_array_equal(value, before[name])


def test_each_structure_and_fetch_list_is_compiled_once():
    main, startup, loss, kept = regression()
    executor, scope = started(startup)
    executor.run(main, feed(), [loss], scope)
    transformer = home_of(scope).transformer(executor.place)
    count = len(transformer.computations)
    for n in (6, 5, 6):
        executor.run(main, feed(n), [loss], scope)
        fluid.Executor(executor.place).run(main, feed(n), [loss.name], scope)
    assert len(transformer.computations) == count
    executor.run(main, feed(), [loss, kept], scope)
    assert len(transformer.computations) == count + 1


def test_draws_differ_from_run_to_run_and_are_reproducible():
    def draws():
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup):
            found = [layers.uniform_random(shape=[4]), layers.gaussian_random(shape=[4])]
            found.append(layers.uniform_random(shape=[4], seed=7))
        executor, scope = started(startup)
        return [executor.run(main, {}, found, scope) for _ in range(2)]

    first, again = draws(), draws()
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    values = [tuple(array) for run in first for array in run]
    assert len(set(values)) == 6


@pytest.mark.parametrize(
    ("type", "mean", "std", "attributes"),
    [
        ("uniform_random", 1.0, 2 / 12**0.5, {"min": 0.0, "max": 2.0}),
        ("gaussian_random", 1.0, 2.0, {"mean": 1.0, "std": 2.0}),
        ("truncated_gaussian_random", 1.0, 2 * 0.8796, {"mean": 1.0, "std": 2.0}),
    ],
)
def test_the_moments_of_draws(type, mean, std, attributes):
    for name, more in ((type, {}), (f"{type}_batch_size_like", {"Input": np.zeros((200, 1))})):
        shape = [-1 if more else 200, 100]
        found = fluid.check_output(name, more, {"shape": shape, **attributes})["Out"]
        assert found.shape == (200, 100)
        assert abs(found.mean() - mean) < 0.05 and abs(found.std() - std) < 0.05


@pytest.mark.parametrize("how", ["downgrade_in_infer", "upscale_in_train"])
def test_dropout_and_its_gradient(how):
    main = fluid.Program()
    with fluid.program_guard(main):
        x = layers.data("x", [50])
        x.stop_gradient = False
        options = {"dropout_prob": 0.25, "dropout_implementation": how}
        y, test = layers.dropout(x, **options), layers.dropout(x, is_test=True, **options)
        (gradient,) = fluid.calc_gradient(layers.reduce_sum(y, reduce_all=True), x)
    ones = np.ones((40, 50), F)
    found = fluid.Executor(fluid.CPUPlace("numpy")).run(main, {"x": ones}, [y, test, gradient])
    scale = 1 if how == "downgrade_in_infer" else 1 / 0.75
    assert set(found[0].ravel()) == {F(0), F(scale)}
    np.testing.assert_array_equal(found[2], found[0])
    np.testing.assert_allclose(found[1], ones * 0.75 * scale)
    assert abs((found[0] > 0).mean() - 0.75) < 0.04


def test_several_places_give_the_numbers_of_one():
    def program(guarded):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup):
            x, y = layers.data("x", [3]), layers.data("y", [1])
            hidden = layers.fc(x, 8, act="tanh")
            if guarded:
                with fluid.place_guard(main, fluid.CPUPlace("native", threads=1)):
                    hidden = layers.fc(hidden, 4, act="relu")
            else:
                hidden = layers.fc(hidden, 4, act="relu")
            loss = layers.mean(layers.square_error_cost(layers.fc(hidden, 1), y))
            optimizers.SGD(0.1).minimize(loss, startup)
        executor, scope = started(startup)
        losses = [executor.run(main, feed(), [loss], scope)[0] for _ in range(3)]
        return losses, parameters(main, scope), home_of(scope).transformers

    found, values, transformers = program(True)
    expected, same, _ = program(False)
    assert len(transformers) == 2
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for name, value in values.items():
        np.testing.assert_allclose(value, same[name], rtol=1e-5)


def test_the_scope_reads_and_writes_parameters():
    main, startup, loss, _ = regression()
    executor, scope = started(startup)
    executor.run(main, feed(), [loss], scope)
    (name, *_) = [p.name for p in main.all_parameters()]
    tensor = scope.find_var(name).get()
    value = tensor.array
    executor.run(main, feed(), [loss], scope)
    assert (tensor.array != value).any()
    tensor.set(value * 0)
    (seen,) = executor.run(fluid.clone(main, for_test=True), {}, [name], scope)
    np.testing.assert_array_equal(seen, value * 0)


def test_a_run_in_an_inner_scope_uses_the_parameters_around_it():
    main, startup, loss, _ = regression()
    executor, scope = started(startup)
    inner = scope.create_scope()
    before = parameters(main, scope)
    executor.run(main, feed(), [loss], inner)
    assert any((value != before[n]).any() for n, value in parameters(main, scope).items())
    assert not set(inner.local_names()) & set(before)


def test_deleting_a_scope_frees_its_memory():
    main, startup, loss, _ = regression()
    outer = fluid.Scope()
    executor, scope = started(startup, scope=outer.create_scope())
    executor.run(main, feed(), [loss], scope)
    home = home_of(scope)
    transformer = weakref.ref(home.transformer(executor.place))
    outer.delete_scope(scope)
    assert not home.transformers
    gc.collect()
    assert transformer() is None


@pytest.mark.parametrize("interpret", [False, True])
def test_a_program_is_freed_while_its_scope_lives(interpret):
    main, startup, loss, _ = regression()
    executor, scope = started(startup)
    executor.run(main, feed(), [loss], scope, interpret=interpret)
    program = weakref.ref(main)
    del main, loss, _
    gc.collect()
    assert program() is None
    assert scope.find_var("fc.w_0").get().array.shape == (3, 8)


def test_a_fetched_value_is_not_overwritten_and_a_rewritten_name_has_its_last_value():
    main = fluid.Program()
    with fluid.program_guard(main):
        x = layers.data("x", [4])
        a = layers.scale(x, scale=2.0)
        kept = layers.assign(a)
        layers.scale(a, scale=10.0, Out=a)
    found = fluid.Executor(fluid.CPUPlace("native")).run(main, {"x": [[1, 2, 3, 4]]}, [kept, a])
    np.testing.assert_array_equal(found, [[[2, 4, 6, 8]], [[20, 40, 60, 80]]])


def test_wrong_uses_name_what_is_wrong_and_the_cure():
    main, startup, loss, _ = regression()
    executor, scope = started(startup)
    with pytest.raises(fluid.ProgramError, match=r"fc.w_0.* has no value in the scope; run the"):
        executor.run(main, feed(), [loss], fluid.Scope())
    with pytest.raises(geon.FeedError, match="the data 'y' are needed and were not fed"):
        executor.run(main, {"x": feed()["x"]}, [loss], scope)
    with pytest.raises(geon.FeedError, match="feed has 'z', which is no data of the program; its"):
        executor.run(main, {**feed(), "z": 1}, [loss], scope)
    with pytest.raises(fluid.ProgramError, match="neither block 0 nor a block around it has"):
        executor.run(main, feed(), ["nothing"], scope)
    with pytest.raises(geon.ArgumentError, match="'cpu' is no place; give CPUPlace"):
        fluid.Executor("cpu")
    with pytest.raises(geon.FeedError):
        executor.run(main, {**feed(), "x": np.zeros((6, 4))}, [loss], scope)


class OptimizerCase:
    """Settings of optimisers, and the first step that they make from w = 1 with gradient 4."""

    rows = [
        ({}, 1 - 0.1 * 4),
        ({"regularization": optimizers.L2Decay(0.5)}, 1 - 0.1 * 4.5),
        ({"regularization": optimizers.L1Decay(0.25)}, 1 - 0.1 * 4.25),
        ({"grad_clip": optimizers.GradientClipByValue(1.5)}, 1 - 0.1 * 1.5),
        ({"grad_clip": optimizers.GradientClipByNorm(2.0)}, 1 - 0.1 * 2),
        ({"grad_clip": optimizers.GradientClipByGlobalNorm(2.5)}, 1 - 0.1 * 2.5),
    ]


@pytest.mark.parametrize(("options", "expected"), OptimizerCase.rows)
def test_decay_and_clipping(options, expected):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        w = layers.create_parameter([1], "float32", None, layers.Constant(1.0))
        loss = layers.mean(layers.scale(w, scale=4.0))
        optimizers.SGD(0.1, **options).minimize(loss, startup)
    executor, scope = started(startup)
    executor.run(main, {}, [loss], scope)
    assert parameters(main, scope)[w.name][0] == pytest.approx(expected)


def test_every_optimiser_lowers_the_loss_and_schedules_count_steps():
    for name in ("SGD", *[n.replace("Rmsprop", "RMSProp") for n in map(str.capitalize, UPDATES)]):
        create = getattr(optimizers, name.replace("Adamw", "AdamW"))
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup):
            x, y = layers.data("x", [3]), layers.data("y", [1])
            loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), y))
            rate = optimizers.piecewise_decay(boundaries=[30.0], values=[0.1, 0.01])
            create(rate).minimize(loss, startup)
        executor, scope = started(startup)
        losses = [executor.run(main, feed(20), [loss, rate], scope) for _ in range(40)]
        assert losses[-1][0] < losses[0][0], name
        assert [float(r[0]) for _, r in losses] == [F(0.1)] * 30 + [F(0.01)] * 10


def test_every_schedule_is_a_function():
    assert all(getattr(optimizers, name).__doc__ for name in SCHEDULES)


def test_sparse_gradients_reach_the_optimiser_as_rows():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        ids = layers.data("ids", [1], "int64")
        found = layers.embedding(ids, [6, 2], is_sparse=True)
        loss = layers.mean(found)
        _, ((parameter, gradient),) = optimizers.SGD(1.0).minimize(loss, startup)
    executor, scope = started(startup)
    before = parameters(main, scope)[parameter.name]
    data = {"ids": [[4], [1], [4]]}
    ((rows, values),) = executor.run(main, data, [gradient], scope)
    np.testing.assert_array_equal(rows, [4, 1, 4])
    np.testing.assert_allclose(values, np.full((3, 2), 1 / 6), rtol=1e-6)
    after = parameters(main, scope)[parameter.name]
    np.testing.assert_allclose((before - after)[:, 0], [0, 1 / 6, 0, 0, 1 / 3, 0], atol=1e-6)


ROWS = np.array([4, 1, 4])


def sparse_and_dense(create, transformer):
    """The tables and states after three steps, from sparse gradients and from whole ones."""
    found = []
    for is_sparse in (True, False):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup):
            ids, weight = layers.data("ids", [1], "int64"), layers.data("weight", [2])
            rows = layers.embedding(ids, [6, 2], is_sparse=is_sparse, param_attr="table")
            squares = layers.square(layers.elementwise_mul(rows, weight))
            loss = layers.reduce_sum(squares, reduce_all=True)
            create().minimize(loss, startup)
        executor, scope = fluid.Executor(fluid.CPUPlace(transformer)), fluid.Scope()
        executor.run(startup, scope=scope)
        scope.find_var("table").get().set(np.arange(12).reshape(6, 2) - 5.5)
        for step, ids in enumerate((ROWS, ROWS[1:], ROWS[:1] - 2)):
            weight = np.full((len(ids), 2), 0.5) + np.arange(len(ids))[:, None] + step
            executor.run(main, {"ids": ids[:, None], "weight": weight}, scope=scope)
        names = [name for name in scope.local_names() if scope.find_var(name).is_type("tensor")]
        found.append({name: scope.find_var(name).get().array for name in sorted(names)})
    return found


@pytest.mark.parametrize("type", ["Momentum", "Adagrad", "Adadelta", "RMSProp", "Adam", "AdamW"])
def test_selected_rows_give_the_update_of_the_whole_gradient(type, transformer_name):
    sparse, dense = sparse_and_dense(lambda: getattr(optimizers, type)(0.1), transformer_name)
    for name, value in dense.items():
        np.testing.assert_allclose(sparse[name], value, rtol=2e-6, atol=1e-7, err_msg=name)


def test_a_lazy_update_changes_the_rows_of_its_gradient_alone(transformer_name):
    """Adam by hand, for which a row that a step lacks keeps its moments."""
    lazy, dense = sparse_and_dense(lambda: optimizers.Adam(0.1, lazy_mode=True), transformer_name)
    table = np.arange(12.0).reshape(6, 2) - 5.5
    m, v = np.zeros((6, 2)), np.zeros((6, 2))
    for step, ids in enumerate((ROWS, ROWS[1:], ROWS[:1] - 2)):
        gradient = np.zeros((6, 2))
        for k, i in enumerate(ids):
            gradient[i] += 2 * (0.5 + k + step) ** 2 * table[i]
        at = np.unique(ids)
        m[at] = 0.9 * m[at] + 0.1 * gradient[at]
        v[at] = 0.999 * v[at] + 0.001 * gradient[at] ** 2
        rate = 0.1 / (1 - 0.9 ** (step + 1))
        table[at] -= rate * m[at] / (np.sqrt(v[at] / (1 - 0.999 ** (step + 1))) + 1e-8)
    np.testing.assert_allclose(lazy["table"], table, rtol=1e-5)
    np.testing.assert_allclose(lazy["table.adam.Moment1"], m, rtol=1e-5, atol=1e-7)
    assert abs(dense["table"] - table).max() > 1e-2  # in the other rows moments move on


CLIPS = [
    optimizers.GradientClipByValue(0.4),
    optimizers.GradientClipByValue(0.4, 0.1),
    optimizers.GradientClipByNorm(2.0),
    optimizers.GradientClipByGlobalNorm(2.0),
]


@pytest.mark.parametrize("clip", CLIPS)
def test_clipping_of_selected_rows(clip, transformer_name):
    """By norm as of the whole gradient; by value as of the sums of the rows that there are."""
    sparse, dense = sparse_and_dense(lambda: optimizers.SGD(0.1, grad_clip=clip), transformer_name)
    expected = dense["table"]
    if clip == CLIPS[1]:  # rows that a step lacks have no gradient, which would be clipped to 0.1
        lacking = np.array([3, 1, 2, 3, 1, 3])[:, None]
        expected = expected + 0.1 * 0.1 * lacking
    np.testing.assert_allclose(sparse["table"], expected, rtol=1e-5)


def test_decay_of_selected_rows_is_that_of_these_rows(transformer_name):
    decay = optimizers.L2Decay(0.5)
    sparse, dense = sparse_and_dense(
        lambda: optimizers.SGD(0.1, regularization=decay), transformer_name
    )
    start = np.arange(12).reshape(6, 2) - 5.5
    np.testing.assert_array_equal(sparse["table"][[0, 3, 5]], start[[0, 3, 5]])
    np.testing.assert_allclose(dense["table"][[0, 3, 5]], start[[0, 3, 5]] * 0.95**3, rtol=1e-6)
    # Row 4 is in two steps, twice in the first one; each decays it once.
    factors = 1 - 0.1 * (0.5 + 2 * (0.5**2 + 2.5**2)), 1 - 0.1 * (0.5 + 2 * 2.5**2)
    np.testing.assert_allclose(sparse["table"][4], start[4] * np.prod(factors), rtol=1e-5)


def test_operators_take_selected_rows_as_a_table_unless_they_know_them():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        ids = layers.data("ids", [1], "int64")
        found = layers.embedding(ids, [3, 2], is_sparse=True, param_attr="table")
        ((_, gradient),) = fluid.append_backward(layers.reduce_sum(found, reduce_all=True))
        doubled, same = layers.scale(gradient, scale=2.0), layers.assign(gradient)
    assert (doubled.spec.kind, same.spec.kind) == ("tensor", "selected_rows")
    executor, scope = started(startup)
    (whole,) = executor.run(main, {"ids": [[2], [0], [2]]}, [doubled], scope)
    np.testing.assert_array_equal(whole, [[2, 2], [0, 0], [4, 4]])
