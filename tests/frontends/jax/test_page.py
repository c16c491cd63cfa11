"""The programs for JAX on the page about other libraries print what it says."""

import contextlib
import io
from pathlib import Path

import pytest

from tests.document_blocks import blocks

pytest.importorskip("jax", reason="JAX is not installed: run make test-frameworks")
PAGE = Path(__file__).parents[3] / "docs" / "other-libraries.md"


def test_the_page_prints_what_it_says():
    found = blocks(PAGE.read_text())
    namespace = {}
    exec(found[0].body, namespace)
    exec('N = geon.Axis("N"); rows = geon.placeholder([N, B], name="rows")', namespace)
    run = 0
    for block, printed in zip(found, found[1:], strict=False):
        if block.language == "py3" and "import jax" in block.body:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(block.body, namespace)
            assert out.getvalue() == printed.body
            run += 1
    assert run == 1
