"""``examples/character_model.py`` does what its first lines promise."""

import re
import subprocess
import sys

import character_model
import numpy as np
import pytest


def figures(output: str) -> list[float]:
    """The bits for each character that were printed: of the Markov model, of the network."""
    return [float(each) for each in re.findall(r": ([\d.]+) bits per character", output)]


def words(text: str) -> list[str]:
    """The words of three letters and more."""
    return re.findall(r"[a-z]{3,}", text.lower())


@pytest.mark.slow
@pytest.mark.parametrize(("network", "epochs"), [("lstm", "4"), ("transformer", "6")])
def test_fewer_bits_than_a_markov_model_and_a_sample(
    network: str, epochs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--characters", "100000", "--epochs", epochs, "--sample", "The "]
    character_model.main(["--network", network, "--length", "150", *options])
    output = capsys.readouterr().out
    known = set(words("".join(character_model.SYMBOLS[k] for k in character_model.read(100_000))))
    markov, reached = figures(output)
    assert reached < markov, output
    written = re.search(r"^The .{149}", output, re.MULTILINE | re.DOTALL)
    assert written is not None
    learned = [word in known for word in words(written[0])[:-1]]
    assert sum(learned) > 0.4 * len(learned), written[0]  # a fifth at the first epoch


def test_a_markov_model_learns_what_follows() -> None:
    again = np.tile(np.arange(7), 300)
    assert character_model.markov_bits(again, again[:200]) < 0.01
    dice = np.random.default_rng(0).integers(0, 4, 20000)
    assert 1.95 < character_model.markov_bits(dice, dice[:1000]) < 2.1


def test_the_text_has_known_symbols() -> None:
    text = character_model.read(1000)
    assert text.shape == (1000,)
    assert 0 <= text.min() <= text.max() < len(character_model.SYMBOLS)


def test_help() -> None:
    command = [sys.executable, str(character_model.__file__), "--help"]
    assert "--characters" in subprocess.run(command, capture_output=True, text=True).stdout
