"""``examples/digit_networks.py`` does what its first lines promise."""

import os
import subprocess
import sys
from pathlib import Path

import digit_networks
import digits
import numpy as np
import pytest

from geon.frontends import neon

SCRIPT = Path(digit_networks.__file__)


def run(folder: Path, *arguments: str) -> str:
    """Standard output of the program, run in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def accuracy(network: str, seed: int) -> float:
    model = digit_networks.train(network, seed)
    return model.evaluate(digit_networks.batches(digits.load().test))["accuracy"]


@pytest.mark.slow
@pytest.mark.parametrize(("network", "least"), [("products", 0.97), ("convolutional", 0.985)])
def test_median_accuracy_of_five_seeds_on_held_out_images(network: str, least: float) -> None:
    reached = [accuracy(network, seed) for seed in range(5)]
    assert np.median(reached) >= least, reached


@pytest.mark.slow
def test_a_run_that_was_interrupted_is_resumed(tmp_path: Path) -> None:
    class Interrupt(neon.Callback):
        def after_batch(self, run: neon.Run) -> None:
            if run.epoch == 2 and run.batch == 5:
                raise KeyboardInterrupt

    saved = neon.Checkpoints(tmp_path, best="validation cost")
    history = neon.History(tmp_path / "history.jsonl")
    digit_networks.train("products", 0, [Interrupt(), history, saved])
    options = ["--network", "products", "--folder", str(tmp_path)]
    text = run(tmp_path, "resume", *options, "--plot", "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert (
        text.splitlines()[-1]
        == f"test accuracy: {100 * accuracy('products', 0):.2f} % of 300 images"
    )
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 15
    assert run(tmp_path, "predict", *options).count("predicted") == 5


@pytest.mark.parametrize("arguments", [["--help"]])
def test_help(arguments: list[str], tmp_path: Path) -> None:
    assert "--folder" in run(tmp_path, *arguments)
