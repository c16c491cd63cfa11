"""The page about models from PyTorch and JAX prints what it says."""

from pathlib import Path

import pytest

from tests.document_blocks import with_real_output

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("jax", reason="JAX is not installed")

PAGE = Path(__file__).parents[3] / "docs" / "importing.md"


@pytest.mark.filterwarnings("ignore")
def test_the_page_prints_what_it_says():
    text = PAGE.read_text().replace("```py3", "```python")
    assert with_real_output(text, "importing.md") == text
