"""``examples/digit_transfer.py`` does what its first lines promise."""

import re
from pathlib import Path

import digit_transfer
import digits
import numpy as np
import pytest

from geon.frontends import neon


@pytest.mark.slow
def test_a_transferred_body_reads_more_rightly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "new.png"
    digit_transfer.main(["--epochs", "5", "--examples", "20", "50", "--into", str(picture)])
    _, _, *rows = capsys.readouterr().out.splitlines()
    transferred, drawn, _ = [[float(each) for each in re.findall(r"[\d.]+", row)] for row in rows]
    assert min(transferred) > 90
    assert np.mean(transferred) > np.mean(drawn) + 8
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_frozen_body_is_that_of_the_checkpoint(tmp_path: Path) -> None:
    first = digit_transfer.build(0, digit_transfer.KNOWN, 1)
    first.step()
    first.save(tmp_path / "first")
    second = digit_transfer.build(1, digit_transfer.OTHERS, 4, frozen=True)
    second.step()
    second.transformer.restore(tmp_path / "first", only="body.*")
    before = second.transformer.values()
    second.fit(
        neon.Batches(*digit_transfer.part(digits.load().train, digit_transfer.OTHERS), size=90), 1
    )
    after, saved = second.transformer.values(), first.transformer.values()
    bodies = [name for name in after if name.startswith("body.")]
    assert len(bodies) == 2
    for name in bodies:
        np.testing.assert_array_equal(after[name], saved[name])
    assert not np.array_equal(after["head.7.w"], before["head.7.w"])


def test_the_parts_have_their_digits_alone() -> None:
    images, kinds = digit_transfer.part(digits.load().test, digit_transfer.OTHERS, 30)
    assert images.shape == (30, 8, 8, 1) and set(kinds) == {0, 1, 2}
