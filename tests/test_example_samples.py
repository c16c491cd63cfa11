"""``examples/digit_samples.py`` does what its first lines promise."""

import os
import subprocess
import sys
from pathlib import Path

import digit_samples
import digits
import numpy as np


def test_the_program_is_better_than_pixels_by_themselves_and_writes_a_sheet(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, digit_samples.__file__, "--epochs", "20", "--sheet", "samples.png"],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    reached, plain = (float(line.split()[2]) for line in done.stdout.splitlines())
    assert reached < plain - 1  # 25.0 to 25.2 and 27.13
    assert (tmp_path / "samples.png").read_bytes().startswith(b"\x89PNG")


def test_samples_are_more_like_images_than_like_pixels_by_themselves() -> None:
    """By the median distance to the nearest image that the model has not seen."""
    split = digits.load()
    train, test = split.train[0], split.test[0]
    model, draw = digit_samples.build(0, 20)
    model.fit(digit_samples.batches(train, 0), 20)
    random = np.random.default_rng(0)
    samples = draw(random.normal(size=(100, digit_samples.CODE.length)))
    alone = np.stack([random.permutation(train[:, k])[:100] for k in range(64)], 1)

    def distance(images: np.ndarray) -> float:
        return float(np.median(np.linalg.norm(images[:, None] - test, axis=-1).min(1)))

    assert distance(samples) < (distance(train[:100]) + distance(alone)) / 2  # 1.4, of 1.3 and 2.2
    assert samples.std(0).mean() > 0.4 * train.std(0).mean()  # 0.6: not all the same image


def test_a_sheet_has_each_image_in_its_place() -> None:
    images = np.arange(4.0)[:, None] * np.ones(64) + 1
    picture = digit_samples.sheet(images, scale=1)
    assert picture.shape == (20, 20)
    np.testing.assert_array_equal(picture[5::10, 5::10], [[1, 2], [3, 4]])
    assert not picture[::10].any() and not picture[:, 9::10].any()
