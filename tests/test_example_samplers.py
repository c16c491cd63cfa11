"""What makes samples in ``examples/``: ``ring_gan`` and ``digit_diffusion``."""

import re
from pathlib import Path

import digit_diffusion
import numpy as np
import pytest
import ring_gan
from digits import load

Capture = pytest.CaptureFixture[str]


def test_the_generator_learns_the_ring(tmp_path: Path, capsys: Capture) -> None:
    picture = tmp_path / "ring.png"
    ring_gan.main(["--steps", "1000", "--into", str(picture)])
    before, after = capsys.readouterr().out.splitlines()
    shares = [float(re.findall(r"([\d.]+) %", line)[0]) for line in (before, after)]
    assert shares[0] < 30 and shares[1] > 50
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_each_step_moves_its_own_network() -> None:
    pair = ring_gan.Pair(0, 10)
    noise = np.random.default_rng(0).normal(size=(16, ring_gan.NOISE.length))
    pair.make(noise)
    pair.tell(np.ones((16, 2)), noise)
    first = pair.transformer.values()
    pair.fool(noise)
    second = pair.transformer.values()
    moved = {name for name in first if not np.array_equal(first[name], second[name])}
    assert {name.split(".")[0] for name in moved} == {"generator", "fool"}
    pair.tell(np.ones((16, 2)), noise)
    third = pair.transformer.values()
    moved = {name for name in third if not np.array_equal(second[name], third[name])}
    assert {name.split(".")[0] for name in moved} == {"discriminator", "tell"}


def test_heaps_are_counted() -> None:
    real = ring_gan.real_points(np.random.default_rng(0), 2000)
    heaps, inside = ring_gan.judged(real)
    assert heaps == 8 and inside > 0.999
    assert ring_gan.judged(np.tile(ring_gan.PLACES[3], (100, 1))) == (1, 1.0)
    assert ring_gan.judged(np.zeros((100, 2))) == (0, 0.0)


def test_samples_are_of_the_digits_that_are_asked_for(tmp_path: Path, capsys: Capture) -> None:
    picture = tmp_path / "diffusion.png"
    digit_diffusion.main(["--epochs", "20", "--into", str(picture)])
    printed = capsys.readouterr().out
    noise, samples, true = (float(each) for each in re.findall(r": ([\d.]+) %", printed))
    assert noise < 15 and samples > 40 and true > 95
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_is_learned_gives_image_and_noise_again() -> None:
    images, digits = load().train
    noisy, level, digit, apart = next(
        iter(digit_diffusion.noisy_images((images, digits), 0).epoch(0))
    )
    share = digit_diffusion.kept()[level][:, None]
    image = (np.sqrt(share) * noisy - np.sqrt(1 - share) * apart + 1) / 2
    order = np.random.default_rng([0, 0]).permutation(len(images))[: len(image)]
    np.testing.assert_allclose(image, images[order], atol=1e-6)
    np.testing.assert_array_equal(digit, digits[order])
    noise = np.sqrt(1 - share) * noisy + np.sqrt(share) * apart
    assert abs(noise.std() - 1) < 0.05


def test_noise_rises_from_almost_none_to_almost_all() -> None:
    shares = digit_diffusion.kept()
    assert shares[0] > 0.99 and shares[-1] < 0.001 and (np.diff(shares) < 0).all()
