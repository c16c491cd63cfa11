"""Tools for authors of transformers: a conformance suite, and comparison of two transformers.

``pytest --pyargs geon.testing --transformer NAME`` runs the suite; it needs pytest, this package
does not.
"""

from __future__ import annotations

from .agreement import assert_agrees
from .comparison import assert_close, close
from .difference import Difference, first_difference

__all__ = ["Difference", "assert_agrees", "assert_close", "close", "first_difference"]
