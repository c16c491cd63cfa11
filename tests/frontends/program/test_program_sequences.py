"""Sequences of sequences, and layers over whole sequences."""

import numpy as np
import pytest

import geon
from geon.frontends.program import layers
from geon.frontends.program.backward import append_backward, calc_gradient
from geon.frontends.program.model_files import deserialize, serialize
from geon.frontends.program.registry import ProgramError

from .program_cases import new_program

F = np.float32
DRAW = np.random.default_rng(5)
# Three paragraphs of two, one and three sentences, with rows of three numbers.
PARAGRAPHS = [
    [DRAW.normal(size=(n, 3)).astype(F) for n in lengths] for lengths in ([2, 1], [4], [1, 3, 2])
]
SENTENCES = [sentence for paragraph in PARAGRAPHS for sentence in paragraph]


def total(x):
    return layers.reduce_sum(x, reduce_all=True)


def test_sequences_of_sequences_are_pooled_level_by_level(transformer_name):
    with new_program() as run:
        x = layers.data("x", [3], lod_level=2)
        x.stop_gradient = False
        sentences = layers.sequence_pool(x, "x@OFFSETS", pooltype="MAX")
        paragraphs = layers.sequence_pool(sentences, "x@OUTER@OFFSETS", pooltype="SUM")
        lengths = layers.sequence_lengths("x@OFFSETS")
        spread = layers.sequence_expand(paragraphs, lengths, "x@OUTER@OFFSETS")
        rows = layers.sequence_expand(spread, x, "x@OFFSETS")
        whole = layers.sequence_pool(
            x, layers.gather("x@OFFSETS", "x@OUTER@OFFSETS"), pooltype="AVERAGE"
        )
        (gradient,) = calc_gradient(total(layers.square(paragraphs)), x)
    feed = layers.sequence_feed("x", PARAGRAPHS, lod_level=2)
    np.testing.assert_array_equal(feed["x@OUTER@OFFSETS"], [0, 2, 3, 6])
    np.testing.assert_array_equal(feed["x@OFFSETS"], [0, 2, 3, 7, 8, 11, 13])
    found = run(feed, [sentences, paragraphs, rows, whole, gradient], transformer_name)
    highest = [[s.max(0) for s in p] for p in PARAGRAPHS]
    sums = np.stack([np.sum(p, 0) for p in highest])
    np.testing.assert_array_equal(found[0], np.concatenate(highest))
    np.testing.assert_allclose(found[1], sums, rtol=1e-6)
    np.testing.assert_allclose(found[2], np.repeat(sums, [3, 4, 6], 0), rtol=1e-6)
    means = np.stack([np.concatenate(p).mean(0) for p in PARAGRAPHS])
    np.testing.assert_allclose(found[3], means, rtol=1e-5, atol=1e-7)
    expected = [
        np.where(s == s.max(0), 2 * by, 0)
        for p, by in zip(PARAGRAPHS, sums, strict=True)
        for s in p
    ]
    np.testing.assert_allclose(found[4], np.concatenate(expected), rtol=1e-6)


def test_a_recurrence_runs_over_the_sentences_of_paragraphs():
    with new_program() as run:
        x = layers.data("x", [3], lod_level=2)
        sentences = layers.sequence_pool(x, "x@OFFSETS", pooltype="SUM")
        rnn = layers.DynamicRNN()
        with rnn.block():
            sentence, old = rnn.step_input(sentences), rnn.memory(shape=[3])
            new = layers.elementwise_add(layers.scale(old, scale=0.5), sentence)
            rnn.update_memory(old, new)
            rnn.output(new)
        results = [rnn(), rnn.last[0]]
    run.main = deserialize(serialize(run.main))
    names = [each.name for each in results]
    found = run(layers.sequence_feed("x", PARAGRAPHS, lod_level=2), names)
    rows, last = [], []
    for paragraph in PARAGRAPHS:
        state = np.zeros(3)
        for sentence in paragraph:
            state = 0.5 * state + sentence.sum(0)
            rows.append(state)
        last.append(state)
    np.testing.assert_allclose(found[0], rows, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], last, rtol=1e-5, atol=1e-6)


def test_three_levels():
    with new_program() as run:
        x = layers.data("x", [3], lod_level=3)
        for outer in ("", "@OUTER", "@OUTER@OUTER"):
            x = layers.sequence_pool(x, f"x{outer}@OFFSETS", pooltype="SUM")
    feed = layers.sequence_feed("x", [PARAGRAPHS[:2], PARAGRAPHS[2:]], lod_level=3)
    expected = [np.concatenate(SENTENCES[:3]).sum(0), np.concatenate(SENTENCES[3:]).sum(0)]
    np.testing.assert_allclose(run(feed, [x])[0], expected, rtol=1e-5)


@pytest.mark.parametrize("is_reverse", [False, True])
def test_recurrent_layers_over_whole_sequences(is_reverse, transformer_name):
    """Each sequence has the results that it has alone, and parameters have gradients."""
    with new_program() as run:
        x = layers.data("x", [3], lod_level=1)
        gates = layers.fc(x, size=8, param_attr="w", bias_attr=False)
        hidden, cell = layers.dynamic_lstm(gates, size=8, is_reverse=is_reverse)
        sums = layers.fc(hidden, size=9, bias_attr=False)
        states = layers.dynamic_gru(sums, size=3, is_reverse=is_reverse)
        mixed = layers.row_conv(states, 2, act="tanh")
        pairs = append_backward(total(mixed))
    assert len(pairs) == 7 and hidden.shape == cell.shape == (-1, 2)
    run.start()
    results = [mixed, *[gradient for _, gradient in pairs]]
    every, *gradients = run(layers.sequence_feed("x", SENTENCES), results, transformer_name)
    alone = [run(layers.sequence_feed("x", [s]), results, transformer_name) for s in SENTENCES]
    np.testing.assert_allclose(every, np.concatenate([found[0] for found in alone]), atol=1e-6)
    for k, gradient in enumerate(gradients, 1):
        assert abs(gradient).max() > 0
        sums = np.sum([found[k] for found in alone], 0)
        np.testing.assert_allclose(gradient, sums, rtol=1e-4, atol=1e-5)


def test_recurrent_layers_need_rows_of_sequences():
    with new_program():
        x = layers.data("x", [8])
        with pytest.raises(ProgramError, match="dynamic_lstm.*has no rows of sequences"):
            layers.dynamic_lstm(x, size=8)
        rows = layers.data("rows", [8], lod_level=1)
        with pytest.raises(geon.ArgumentError, match="width 0.5 need an input of 4 times"):
            layers.dynamic_lstm(rows, size=2)
        with pytest.raises(geon.ArgumentError, match="width 2 need an input of 3 times"):
            layers.dynamic_gru(rows, size=2)


def test_channels_divide_into_groups():
    with new_program():
        x = layers.data("x", [8, 2, 2])
        for f in (layers.maxout, layers.group_norm):
            with pytest.raises(geon.ArgumentError, match="8 channels of .* multiple of 3 groups"):
                f(x, groups=3)
