"""``examples/adding_problem.py`` does what its first lines promise."""

import re
from pathlib import Path

import adding_problem
import numpy as np
import pytest


def test_short_sequences_are_added_and_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "adding.png"
    adding_problem.main(["--length", "30", "--steps", "500", "--into", str(picture)])
    shares = re.findall(r": ([\d.]+) % within 0.04", capsys.readouterr().out)
    always_one, learned = map(float, shares)
    assert always_one < 10 and learned > 60  # 7.3 and 82
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_sequences_mark_a_number_in_each_half() -> None:
    x, totals = adding_problem.sequences(np.random.default_rng(0), 50, 11)
    numbers, marks = x[..., 0], x[..., 1]
    np.testing.assert_array_equal(marks[:, :5].sum(1), 1)
    np.testing.assert_array_equal(marks[:, 5:].sum(1), 1)
    np.testing.assert_allclose((numbers * marks).sum(1), totals)


def test_sequences_grow_to_their_whole_length() -> None:
    lengths = [adding_problem.length_at(step, 100, 200) for step in range(100)]
    assert lengths[0] == 10 and lengths[25] == 100 and set(lengths[50:]) == {200}


def test_near_is_within_four_hundredths() -> None:
    said = np.array([0.5, 0.57, 1.0, 1.35])
    assert adding_problem.share_near(said, np.array([0.53, 0.5, 1.0, 1.4])) == 0.5
