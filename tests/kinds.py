"""Marks for tests that are about one of the transformers alone, such as those of its text."""

import pytest

numpy_only = pytest.mark.parametrize("transformer_name", ["numpy"])
