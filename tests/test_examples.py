"""The programs of ``examples/`` do what their first lines promise."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import digits
import numpy as np
import pytest

SCRIPT = Path(digits.__file__)


def run(folder: Path, *arguments: str) -> str:
    """Standard output of the digits program, run in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def accuracy_line(output: str) -> str:
    (line,) = (line for line in output.splitlines() if line.startswith("test accuracy"))
    return line


def test_the_split_shares_no_image() -> None:
    split = digits.load()
    parts = (split.train, split.validation, split.test)
    assert [len(labels) for _, labels in parts] == [1197, 300, 300]
    images = np.concatenate([images for images, _ in parts])
    assert len(np.unique(images, axis=0)) == len(images)


def test_median_accuracy_of_five_seeds_on_held_out_images() -> None:
    split = digits.load()
    reached = []
    for seed in range(5):
        network, curve = digits.train(seed, split, progress=False)
        assert curve.loss[-1] < curve.loss[0]
        reached.append(digits.evaluate(network, split.test))
    assert np.median(reached) >= 0.97, reached


def test_a_second_process_predicts_with_the_same_accuracy(tmp_path: Path) -> None:
    checkpoint = "weights.safetensors"
    trained = run(tmp_path, "train", "--seed", "3", "--checkpoint", checkpoint, "--plot", "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    restored = run(tmp_path, "predict", "--checkpoint", checkpoint)
    assert accuracy_line(restored) == accuracy_line(trained)
    assert restored.count("predicted") == 5


def test_digits_are_drawn_beside_their_predictions() -> None:
    image = np.zeros((2, 64), np.float32)
    image[0, 0] = image[1, 63] = 1
    lines = digits.show(image, np.array([3, 4]), np.array([3, 9])).splitlines()
    assert lines[0] == "@@" + " " * 32
    assert lines[7] == " " * 32 + "@@"
    assert lines[8] == "predicted 3, is 3  predicted 4, is 9"


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"]])
def test_help(arguments: list[str], tmp_path: Path) -> None:
    assert "--checkpoint" in run(tmp_path, *arguments)


@pytest.mark.parametrize("program", sorted(path.name for path in SCRIPT.parent.glob("*.py")))
def test_each_program_is_in_the_list_and_in_a_test(program: str) -> None:
    root = SCRIPT.parent.parent
    pages = (root / "docs/programs.md", root / "docs/write-a-transformer.md")
    assert any(f"{program}`" in page.read_text() for page in pages)
    tests = list((root / "tests").rglob("test_*.py"))
    assert any(program.removesuffix(".py") in path.read_text() for path in tests)


SMALL = {
    "adding_problem": "--length 10 --steps 10",
    "digit_diffusion": "--epochs 1",
    "digit_transfer": "--epochs 1 --examples 10",
    "gaussian_process": "--steps 3 --starts 2",
    "heat_equation": "--steps 2",
    "kalman_filter": "--steps 2",
    "newton": "--steps 2 --descent 10",
    "predator_prey": "--steps 3",
    "python_tags": "--lines 100 --epochs 1",
    "ring_gan": "--steps 10",
}


@pytest.mark.slow
@pytest.mark.parametrize("program", SMALL)
def test_a_program_is_the_same_again_for_the_same_seed(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main = importlib.import_module(program).main
    runs = []
    for _ in range(2):
        file = tmp_path / f"{len(runs)}.png"
        main([*SMALL[program].split(), "--seed", "3", "--into", str(file)])
        runs.append((capsys.readouterr().out, file.read_bytes()))
    assert runs[0][0] and runs[0] == runs[1]
