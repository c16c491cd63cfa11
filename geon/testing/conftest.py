"""Fixtures of the conformance suite: transformers of the kind that is tested."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from geon.op_graph import sites
from geon.transformers.base import Transformer, make_transformer
from geon.transformers.environment import DEBUG

MakeTransformer = Callable[[], Transformer]


@pytest.fixture(autouse=True)
def _verified_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEBUG, "verify", prepend=",")


@pytest.fixture(autouse=True)
def _lines_of_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    # The suite lies inside geon, whose lines messages leave out; here it is the user.
    monkeypatch.setattr(sites, "_ROOT", os.path.join(sites._ROOT, "op_graph") + os.sep)


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Iterator[MakeTransformer]:
    """A function that makes a new transformer of the tested kind, closed after the test."""
    name = request.config.getoption("--transformer", default=None)
    made: list[Transformer] = []

    def new() -> Transformer:
        made.append(make_transformer(name))
        return made[-1]

    yield new
    for transformer in made:
        transformer.close()


@pytest.fixture
def transformer(make: MakeTransformer) -> Transformer:
    """A new transformer of the tested kind."""
    return make()
