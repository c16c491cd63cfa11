"""pytest plugin, loaded wherever geon is installed: the option ``--transformer``, and markers."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--transformer``."""
    parser.getgroup("geon").addoption(
        "--transformer",
        metavar="NAME",
        help="the transformer that geon.testing tests (default: each of geon's own)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse an unknown or unavailable transformer, with the command that fixes it."""
    config.addinivalue_line("markers", "gpu: needs an NVIDIA GPU")
    config.addinivalue_line("markers", "slow: one that geon's own `make test` leaves out")
    config.addinivalue_line(
        "markers", "cases(strength): geon's own `make test` runs all pairs of values for strength=2"
    )
    config.addinivalue_line("markers", "optimized: compiled by `make test` as users have it")
    name = config.getoption("--transformer")
    if name is not None:
        from geon.errors import UnavailableError
        from geon.transformers.loading.registry import transformer_class

        try:
            missing = transformer_class(name).unavailable()
        except UnavailableError as error:
            raise pytest.UsageError(str(error)) from None
        if missing is not None:
            raise pytest.UsageError(f"the transformer {name!r} cannot be used here: {missing}")
