"""``examples/brainstorm_digits.py`` and ``brainstorm_characters.py`` do what they promise."""

import re
from pathlib import Path

import brainstorm_characters
import brainstorm_digits
import digits
import numpy as np
import pytest
from character_model import SYMBOLS, read

from geon.frontends import brainstorm as bs


def test_digits_are_learned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "best.h5")
    brainstorm_digits.main(["--epochs", "4", "--save", file])
    found = re.findall(r"accuracy: ([\d.]+) %", capsys.readouterr().out)
    best, tested = map(float, found)
    assert tested > 88 and best > 88
    again = bs.Network.from_hdf5(file)
    accuracy = brainstorm_digits.test_accuracy(again)
    assert f"{100 * accuracy:.2f}" == found[1]


def test_digits_know_no_places() -> None:
    """A network whose first weights are permuted as the pixels are gives the same scores."""
    network = brainstorm_digits.build(0, "numpy")
    images, labels = digits.load().test
    order = np.random.default_rng(0).permutation(64)
    scores = []
    for given in (images, images[:, order]):
        network.provide_external_data({"default": given[None], "targets": labels[None, :, None]})
        network.forward_pass()
        scores.append(network.get(brainstorm_digits.PREDICTIONS))
        W = network.buffer.Hid1.parameters.W
        W[:] = W[:, order].copy()
    assert np.allclose(*scores, atol=1e-5)


def test_pieces_of_streams_follow_each_other() -> None:
    text = np.arange(2000) % len(SYMBOLS)
    batches = list(brainstorm_characters.pieces(text, streams=3)())
    inputs = np.concatenate([batch["default"].argmax(2) for batch in batches])
    targets = np.concatenate([batch["targets"][:, :, 0] for batch in batches])
    assert np.array_equal(inputs[1:], targets[:-1]) and inputs.shape == (640, 3)
    assert np.array_equal(inputs[:, 1], text[666:1306])


def test_a_carried_context_gives_what_one_long_batch_does() -> None:
    network = brainstorm_characters.build(8, 0, "numpy")
    (whole,) = brainstorm_characters.Pieces(96, default=np.eye(96)[:, None])()
    data = {**whole, "targets": np.zeros((96, 1, 1))}
    network.provide_external_data(data)
    network.forward_pass()
    expected, context, parts = network.get(brainstorm_characters.PREDICTIONS), None, []
    for number in range(3):
        network.provide_external_data({k: v[32 * number :][:32] for k, v in data.items()})
        network.forward_pass(context=context)
        context = network.get_context()
        parts.append(network.get(brainstorm_characters.PREDICTIONS))
    assert np.allclose(np.concatenate(parts), expected, atol=1e-6)


def test_characters_are_learned(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--characters", "6000", "--epochs", "2", "--units", "24", "--length", "20"]
    brainstorm_characters.main(options)
    output = capsys.readouterr().out
    reached = [float(each) for each in re.findall(r": ([\d.]+) bits", output)]
    assert reached[1] < 5.5 < np.log2(len(SYMBOLS))
    assert len(output.partition("The ")[2].rstrip("\n")) <= 20


@pytest.mark.slow
def test_fewer_bits_than_a_markov_model_and_with_context_than_without(
    capsys: pytest.CaptureFixture[str],
) -> None:
    brainstorm_characters.main([])
    output = capsys.readouterr().out
    markov, carried, alone = (float(x) for x in re.findall(r": ([\d.]+) bits", output))
    assert carried < markov and carried < alone, output


@pytest.mark.slow
def test_median_accuracy_of_three_seeds_on_held_out_images() -> None:
    reached = []
    for seed in range(3):
        network = brainstorm_digits.build(seed)
        brainstorm_digits.train(network, 30)
        reached.append(brainstorm_digits.test_accuracy(network))
    assert np.median(reached) >= 0.97, reached


def test_context_is_carried_from_batch_to_batch_of_an_epoch() -> None:
    network = brainstorm_characters.build(8, 0, "numpy")
    seen: list[bool] = []
    forward = network.forward_pass

    def watched(training_pass: bool = False, context: object = None) -> None:
        seen.append(context is not None)
        forward(training_pass, context)

    network.forward_pass = watched
    brainstorm_characters.train(network, read(1600), 2, compiled=False)
    assert seen == [False, True, True] * 2
