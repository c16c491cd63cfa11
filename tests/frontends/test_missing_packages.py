"""Frontends of packages that are not installed say so, with the command that installs them."""

import importlib
import sys

import pytest

import geon


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_a_missing_package_is_named_with_its_cure(name, monkeypatch):
    for module in [m for m in sys.modules if m.startswith(f"geon.frontends.{name}")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        geon.UnavailableError, match=f"needs the package {name}.*pip install {name}"
    ):
        importlib.import_module(f"geon.frontends.{name}")
