"""Fixtures that give a test each transformer in turn; a ``conftest.py`` imports them by name.

``make`` is a function that makes transformers of the tested kind, ``transformer`` a new one.
Without ``--transformer``, a test that uses them runs once for each of geon's own, except for those
whose device this machine does not have.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import pytest

from geon.transformers.base import Transformer, make_transformer
from geon.transformers.loading.registry import BUILT_IN, transformer_class

MakeTransformer = Callable[..., Transformer]
NEED_A_DEVICE = ("pycuda",)
BESIDE = pytest.StashKey[tuple[str, ...]]()  # further transformers that a configuration tests
# "loads" compiles with -O0: unused loads are not removed, and compiling takes half the time.
CHECKED: dict[str, dict[str, object]] = {"cuda-on-host": {"checks": "loads"}}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise tests that use a transformer by geon's own, unless ``--transformer`` is given.

    A test that has parameters for ``transformer_name`` keeps them.
    """
    asked = metafunc.config.getoption("--transformer", default=None)
    own = any(
        "transformer_name" in m.args[0] for m in metafunc.definition.iter_markers("parametrize")
    )
    if asked is None and not own and "transformer_name" in metafunc.fixturenames:
        names = [name for name in sorted(BUILT_IN) if not is_without_device(name)]
        beside: tuple[str, ...] = metafunc.config.stash.get(BESIDE, ())
        names += beside
        metafunc.parametrize("transformer_name", [_parameter(name) for name in names])


@functools.cache
def is_without_device(name: str) -> bool:
    """Return True if a transformer needs a device that this machine lacks."""
    return name in NEED_A_DEVICE and transformer_class(name).unavailable() is not None


def _parameter(name: str) -> object:
    marks = [pytest.mark.gpu] if name == "pycuda" else []
    missing = transformer_class(name).unavailable()
    if missing is not None:
        marks.append(pytest.mark.skip(reason=f"{name}: {missing}"))
    return pytest.param(name, marks=marks)


@pytest.fixture
def transformer_name(request: pytest.FixtureRequest) -> str:
    """Return the name of the tested kind."""
    name: str = request.config.getoption("--transformer")
    return name


@pytest.fixture
def make(transformer_name: str) -> Iterator[MakeTransformer]:
    """Yield a function that makes a new transformer of the tested kind, closed after the test."""
    made: list[Transformer] = []
    usual = CHECKED.get(transformer_name, {})

    def new(**options: object) -> Transformer:
        made.append(make_transformer(transformer_name, **{**usual, **options}))
        return made[-1]

    yield new
    for transformer in made:
        transformer.close()


@pytest.fixture
def transformer(make: MakeTransformer) -> Transformer:
    """Return a new transformer of the tested kind."""
    return make()
