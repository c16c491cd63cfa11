"""Sparse embeddings in loops, branches and recurrences: gradients as selected rows."""

import numpy as np
import pytest

import geon
from geon.frontends.program import layers
from geon.frontends.program.backward import append_backward, calc_gradient
from geon.frontends.program.control_flow import ConditionalBlock
from geon.frontends.program.registry import register_operator

from .program_cases import count_up, counter, new_program, total

F = np.float32


def sums_of_words(rnn, words, **options):
    """The sums of the rows of a table up to each step of a recurrence."""
    with rnn.step():
        word = rnn.step_input(words)
        old = rnn.memory(**options)
        row = layers.embedding(word, [5, 2], is_sparse=True, param_attr="table", padding_idx=0)
        new = layers.elementwise_add(row, old)
        rnn.update_memory(old, new)
        rnn.output(new)
    return rnn()


TABLE = np.random.default_rng(3).normal(size=(5, 2)).astype(F)


def test_a_sparse_embedding_in_a_recurrence_keeps_its_gradient_as_rows(transformer_name):
    with new_program() as run:
        words = layers.data("words", [1], dtype="int64", lod_level=1)
        y = sums_of_words(layers.DynamicRNN(), words, shape=[2])
        ((_, gradient),) = append_backward(total(layers.square(y)))
    assert gradient.spec.kind == "selected_rows" and gradient.shape == (5, 2)
    run.start(table=TABLE)
    feed = layers.sequence_feed("words", [np.array([[1], [0], [4], [1]]), np.array([[2]])])
    sums, (rows, values) = run(feed, [y, gradient], transformer_name)
    np.testing.assert_array_equal(rows, [1, 0, 4, 1, 2])
    read = TABLE[[1, 1, 4, 1, 2]] * np.array([1, 0, 1, 1, 1])[:, None]
    expected = np.concatenate([np.cumsum(read[:4], 0), read[4:]])
    np.testing.assert_allclose(sums, expected, rtol=1e-6)
    # The row of a step is in the sums from it on.
    by = np.concatenate([2 * np.cumsum(expected[3::-1], 0)[::-1], 2 * expected[4:]])
    np.testing.assert_allclose(values, by * (rows > 0)[:, None], rtol=1e-5)


def test_sparse_rows_of_a_static_recurrence_and_of_outside_are_one_gradient():
    with new_program() as run:
        words = layers.data("words", [3, 2, 1], dtype="int64", append_batch_size=False)
        y = sums_of_words(layers.StaticRNN(), words, shape=[2])
        more = layers.embedding(words, [5, 2], is_sparse=True, param_attr="table")
        ((_, gradient),) = append_backward(total(layers.elementwise_add(y, more)))
    assert gradient.spec.kind == "selected_rows"
    run.start(table=TABLE)
    ids = np.array([[1, 2], [0, 3], [1, 1]])
    ((rows, values),) = run({"words": ids[:, :, None]}, [gradient])
    found, expected = np.zeros((5, 2)), np.zeros((5, 2))
    np.add.at(found, rows, values)
    for step, pair in enumerate(ids):
        for word in pair:
            expected[word] += (3 - step if word else 0) + 1
    np.testing.assert_array_equal(found, expected)


def drawn_by_a_stream_of_its_own():
    stream = geon.Random(7)
    register_operator(
        "test_own_draws", lambda x: x * stream.bernoulli(x.axes, p=1.0, dtype="float32"),
        replace=True,
    )  # fmt: skip
    return layers.test_own_draws


@pytest.mark.parametrize("kind", ["read", "dropped"])
def test_a_table_that_a_step_reads_otherwise_too_has_a_whole_gradient(kind):
    own_draws = drawn_by_a_stream_of_its_own()
    with new_program() as run:
        words = layers.data("words", [1], dtype="int64", lod_level=1)
        rnn = layers.DynamicRNN()
        with rnn.block():
            word = rnn.step_input(words)
            row = layers.embedding(word, [5, 2], is_sparse=True, param_attr="table")
            if kind == "read":
                table = run.main.global_block().var("table")
                row = layers.elementwise_add(row, layers.reduce_sum(table))
            else:
                row = own_draws(row)
            rnn.output(row)
        ((_, gradient),) = append_backward(total(rnn()))
    assert gradient.spec.kind == "tensor"
    run.start(table=TABLE)
    feed = layers.sequence_feed("words", [np.array([[1], [4], [1]]), np.array([[2]])])
    counts = np.array([0, 2, 1, 0, 1])[:, None] + (4 if kind == "read" else 0)
    np.testing.assert_allclose(run(feed, [gradient])[0], np.tile(counts, 2), rtol=1e-6)


@pytest.mark.parametrize("kind", ["DynamicRNN", "While"])
def test_sparse_rows_of_a_block_that_draws_are_those_of_the_whole_gradient(kind):
    found = []
    for is_sparse in (True, False):
        with new_program() as run:
            run.main.random_seed = 3
            words = layers.data("words", [1], dtype="int64", lod_level=1)
            options = {"is_sparse": is_sparse, "param_attr": "table"}
            if kind == "While":
                i, n = counter(0), counter(3)
                cond, y = layers.less_than(i, n), layers.fill_constant(shape=[4, 2])
                with layers.While(cond, max_steps=5).block():
                    row = layers.embedding(layers.reshape(words, shape=[4, 1]), [5, 2], **options)
                    layers.elementwise_add(y, layers.dropout(row, dropout_prob=0.5), Out=y)
                    count_up(i, n, cond)
            else:
                rnn = layers.DynamicRNN()
                with rnn.block():
                    row = layers.embedding(rnn.step_input(words), [5, 2], **options)
                    rnn.output(layers.dropout(row, dropout_prob=0.5))
                y = rnn()
            loss = total(layers.square(y))
            ((_, gradient),) = append_backward(loss)
            assert (gradient.spec.kind == "selected_rows") is is_sparse
            whole = layers.sum([gradient, layers.fill_constant(shape=[5, 2])])
        run.start(table=TABLE)
        feed = layers.sequence_feed("words", [np.array([[1], [4], [1]]), np.array([[2]])])
        found.append([run(feed, [loss, whole], interpret=each) for each in (False, True)])
    for sparse, dense in zip(*found, strict=True):  # each run draws other numbers
        np.testing.assert_allclose(sparse[0], dense[0], rtol=1e-6)
        np.testing.assert_allclose(sparse[1], dense[1], rtol=1e-5)
        assert 0 < np.count_nonzero(sparse[1])


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("options", [{}, {"is_reverse": True}])
def test_sparse_rows_of_a_recurrence_are_those_of_the_whole_gradient(order, options):
    """Compiled and interpreted, where operators have lengths that their own inputs lack."""
    found = []
    for is_sparse in (True, False):
        with new_program() as run:
            words = layers.data("words", [1], dtype="int64", lod_level=1)
            rnn = layers.DynamicRNN(**options)
            with rnn.block():
                word, old = rnn.step_input(words), rnn.memory(shape=[2])
                size = [5, 2]
                rows = layers.embedding(word, size, is_sparse=is_sparse, param_attr="table")
                rnn.update_memory(old, layers.tanh(layers.elementwise_add(rows, old)))
                rnn.output(layers.elementwise_mul(rows, old))
            loss = layers.elementwise_add(*[total(layers.square(v)) for v in (rnn(), rnn.last[0])])
            ((table, gradient),) = append_backward(loss)
            zeros = layers.fill_constant(shape=size)
            for _ in range(order - 1):
                whole = layers.sum([gradient, zeros])
                (gradient,) = calc_gradient(total(layers.square(whole)), table)
            whole = layers.sum([gradient, zeros])
        run.start(table=TABLE)
        sequences = [np.array([[1], [4], [1]]), np.zeros((0, 1), int), np.array([[2]])]
        feed = layers.sequence_feed("words", sequences)
        found += [run(feed, [whole], interpret=interpret)[0] for interpret in (False, True)]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-4, atol=1e-5)


def loop_over_words(words, *, is_sparse, max_steps=None, count=3):
    """The state after the rows of a table at words (T, N, 1) were added and activated by a loop."""
    i, n = counter(0), counter(count)
    state = layers.fill_constant(shape=[words.shape[1], 2])
    cond = layers.less_than(i, n)
    with layers.While(cond, max_steps=max_steps).block():
        word = layers.reshape(layers.gather(words, i), shape=words.shape[1:])
        row = layers.embedding(word, [5, 2], is_sparse=is_sparse, param_attr="table")
        layers.tanh(layers.elementwise_add(state, row), Out=state)
        count_up(i, n, cond)
    return state


WORDS = np.array([[1, 2], [0, 3], [1, 1]])[:, :, None]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("max_steps, count", [(3, 3), (7, 3), (600, 3), (4, 0)])
def test_a_sparse_embedding_in_a_loop_keeps_its_gradient_as_rows(max_steps, count, order):
    found = []
    for is_sparse in (True, False):
        with new_program() as run:
            words = layers.data("words", [3, 2, 1], dtype="int64", append_batch_size=False)
            state = loop_over_words(words, is_sparse=is_sparse, max_steps=max_steps, count=count)
            ((table, gradient),) = append_backward(total(layers.square(state)))
            assert (gradient.spec.kind == "selected_rows") is is_sparse
            first, zeros = gradient, layers.fill_constant(shape=[5, 2])
            for _ in range(order - 1):
                whole = layers.sum([gradient, zeros])
                (gradient,) = calc_gradient(total(layers.square(whole)), table)
            whole = layers.sum([gradient, zeros])
        run.start(table=TABLE)
        found += [run({"words": WORDS}, [whole], interpret=each)[0] for each in (False, True)]
        if is_sparse:
            rows, values = run({"words": WORDS}, [first])[0]
            read = np.zeros((max_steps, 2), int)
            read[:count] = WORDS[:count, :, 0]
            read[count:] = WORDS[:count].max(initial=0)  # of steps that did not run
            np.testing.assert_array_equal(rows, read.ravel())
            assert not values[2 * count :].any()
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-4, atol=1e-6)


def test_a_sparse_embedding_in_a_loop_without_a_limit_has_a_whole_gradient():
    with new_program():
        words = layers.data("words", [3, 2, 1], dtype="int64", append_batch_size=False)
        state = loop_over_words(words, is_sparse=True)
        ((_, gradient),) = append_backward(total(state))
    assert gradient.spec.kind == "tensor"


@pytest.mark.parametrize("runs", [True, False])
def test_a_sparse_embedding_in_a_branch_keeps_its_gradient_as_rows(runs, transformer_name):
    with new_program() as run:
        words = layers.data("words", [1], dtype="int64")
        flag = layers.data("flag", [1], dtype="bool", append_batch_size=False)
        y = layers.fill_constant(shape=[3, 2], value=2.0)
        words = layers.reshape(words, shape=[3, 1])
        with ConditionalBlock(flag).block():
            row = layers.embedding(words, [5, 2], is_sparse=True, param_attr="table")
            layers.elementwise_mul(y, row, Out=y)
        ((_, gradient),) = append_backward(total(y))
    run.start(table=TABLE)
    feed = {"words": [[4], [1], [4]], "flag": [runs]}
    ((rows, values),) = run(feed, [gradient], transformer_name)
    np.testing.assert_array_equal(rows, [4, 1, 4] if runs else [0, 0, 0])
    np.testing.assert_array_equal(values, np.full((3, 2), 2.0 if runs else 0.0))


NESTED = ["While branch", "While While", "While StaticRNN", "DynamicRNN branch", "DynamicRNN While"]


@pytest.mark.parametrize("kinds", NESTED)
def test_a_sparse_embedding_in_a_block_inside_of_another(kinds):
    (outer, inner), found = kinds.split(), []
    for is_sparse in (True, False):
        options = {"is_sparse": is_sparse, "param_attr": "table"}

        def embedded(words, options=options):
            """The state after the words of a step, of a shape (2, 1)."""
            shape = {"shape": [-1, 2], "value": 0.5}
            state = layers.fill_constant_batch_size_like(words, **shape)
            if inner == "branch":
                flag = layers.less_than(layers.reduce_sum(words, reduce_all=True), counter(7))
                with ConditionalBlock(layers.reshape(flag, shape=[1])).block():
                    layers.assign(layers.embedding(words, [5, 2], **options), Out=state)
            elif inner == "While":
                i, n = counter(0), counter(2)
                cond = layers.less_than(i, n)
                with layers.While(cond, max_steps=3).block():
                    row = layers.embedding(words, [5, 2], **options)
                    layers.tanh(layers.elementwise_add(state, row), Out=state)
                    count_up(i, n, cond)
            else:
                rnn = layers.StaticRNN()
                with rnn.step():
                    word, old = rnn.step_input(words), rnn.memory(state)
                    row = layers.embedding(word, [5, 2], **options)
                    rnn.update_memory(old, layers.tanh(layers.elementwise_add(old, row)))
                    rnn.output(old)
                state = rnn.last[0]
            return state

        with new_program() as run:
            if outer == "While":
                words = layers.data("words", [3, 2, 1], dtype="int64", append_batch_size=False)
                i, n = counter(0), counter(3)
                y, cond = layers.fill_constant(shape=[2, 2]), layers.less_than(i, n)
                with layers.While(cond, max_steps=4).block():
                    word = layers.reshape(layers.gather(words, i), shape=[2, 1])
                    layers.elementwise_add(y, embedded(word), Out=y)
                    count_up(i, n, cond)
                feed = {"words": WORDS}
            else:
                words = layers.data("words", [1], dtype="int64", lod_level=1)
                rnn = layers.DynamicRNN()
                with rnn.block():
                    word = rnn.step_input(words)
                    rnn.output(embedded(word))
                y = rnn()
                sequences = [np.array([[1], [4], [1]]), np.array([[2]])]
                feed = layers.sequence_feed("words", sequences)
            ((_, gradient),) = append_backward(total(layers.square(y)))
            whole = layers.sum([gradient, layers.fill_constant(shape=[5, 2])])
        found.append((gradient.spec.kind, run))
        run.start(table=TABLE)
        found[-1] += (run(feed, [whole])[0],)
    (sparse, _, rows), (dense, _, table) = found
    expected = "tensor" if outer == "DynamicRNN" and inner != "branch" else "selected_rows"
    assert (sparse, dense) == (expected, "tensor")
    np.testing.assert_allclose(rows, table, rtol=1e-5, atol=1e-6)
    assert np.abs(table).max() > 0.1


def branches_by_rows(words, is_sparse):
    """Rows of tables by IfElse: those of two tables where words are below 2, else of one."""
    options = {"is_sparse": is_sparse}
    choice = layers.IfElse(layers.less_than(words, layers.fill_any_like(words, value=2.0)))
    with choice.true_block():
        own = choice.input(words)
        row = layers.embedding(own, [5, 2], param_attr="table", **options)
        scale = layers.embedding(own, [5, 2], param_attr="scale", **options)
        choice.output(layers.elementwise_mul(row, scale))
    with choice.false_block():
        row = layers.embedding(choice.input(words), [5, 2], param_attr="table", **options)
        choice.output(layers.scale(row, scale=3.0))
    (found,) = choice()
    return found


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_sparse_embedding_in_branches_by_rows(is_nested, transformer_name):
    found = []
    for is_sparse in (True, False):
        with new_program() as run:
            words = layers.data("words", [3, 2, 1], dtype="int64", append_batch_size=False)
            if is_nested:
                rnn = layers.StaticRNN()
                with rnn.step():
                    rnn.output(branches_by_rows(rnn.step_input(words), is_sparse))
                y = rnn()
            else:
                y = branches_by_rows(layers.reshape(words, shape=[6, 1]), is_sparse)
            pairs = append_backward(total(layers.square(y)))
            kinds = {gradient.spec.kind for _, gradient in pairs}
            zeros = layers.fill_constant(shape=[5, 2])
            whole = {p.name: layers.sum([gradient, zeros]) for p, gradient in pairs}
        assert kinds == {"selected_rows" if is_sparse else "tensor"}
        run.start(table=TABLE, scale=TABLE + 2)
        names = ["table", "scale"]
        found.append(run({"words": WORDS}, [whole[name] for name in names], transformer_name))
    for rows, table in zip(*found, strict=True):
        np.testing.assert_allclose(rows, table, rtol=1e-5, atol=1e-6)
        assert np.abs(table).max() > 0.1
