"""Fixtures of the conformance suite: transformers of the kind that is tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from geon.transformers.base import Transformer, make_transformer
from geon.transformers.environment import DEBUG

MakeTransformer = Callable[[], Transformer]


@pytest.fixture(autouse=True)
def _verified_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEBUG, "verify", prepend=",")


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
