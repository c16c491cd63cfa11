"""``examples/python_tags.py`` does what its first lines promise."""

import re
from pathlib import Path

import numpy as np
import pytest
import python_tags


@pytest.mark.slow
def test_more_is_right_than_in_a_table_and_a_page_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "tags.html"
    python_tags.main(["--lines", "800", "--epochs", "3", "--into", str(page)])
    found = re.findall(r"([\d.]+) % of the characters", capsys.readouterr().out)
    table, reached = map(float, found)
    assert table < 65 and reached > 80
    assert page.read_text("utf-8").count("\n") == 41


def test_tags_are_those_of_the_tokens() -> None:
    first, second, third, fourth = python_tags.tags_of('if x1:\n    y = 2.5  # "z"\n"""\n"""')
    assert first is not None and second is not None
    assert first.tolist() == [1, 1, 0, 2, 2, 6]
    assert second.tolist() == [0, 0, 0, 0, 2, 0, 6, 0, 3, 3, 3, 0, 0, 5, 5, 5, 5, 5]
    assert third is None and fourth is None  # a string that goes on beyond the line


def test_what_follows_a_line_in_its_batch_changes_nothing() -> None:
    model = python_tags.build(0, 1)
    line = np.array([[ord(each) for each in "x = 1"]])
    alone = model.predict(line, np.ones((1, 5), bool))
    padded = np.pad(line, ((0, 0), (0, 3)), constant_values=65)
    beside = model.predict(padded, np.arange(8)[None] < 5)
    np.testing.assert_allclose(beside[:, :5], alone, atol=1e-6)


def test_the_table_knows_what_a_character_most_often_is() -> None:
    known = [np.array([65, 65, 65, 66])], [np.array([2, 2, 4, 5])]
    lines = [np.array([65, 66, 65])], [np.array([2, 5, 4])]
    assert python_tags.table_accuracy(known, lines) == pytest.approx(2 / 3)
