"""Fixtures of the conformance suite that apply to every test."""

from __future__ import annotations

import os

import pytest

from geon.op_graph.core import source_info
from geon.testing.fixtures import (  # noqa: F401  # pytest finds them by name
    make,
    pytest_generate_tests,
    transformer,
    transformer_name,
)
from geon.transformers.loading.environment import DEBUG


@pytest.fixture(autouse=True)
def _verified_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEBUG, "verify", prepend=",")


@pytest.fixture(autouse=True)
def _lines_of_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    # The suite lies inside geon, whose lines messages leave out; here it is the user.
    monkeypatch.setattr(source_info, "ROOT", os.path.join(source_info.ROOT, "op_graph") + os.sep)
