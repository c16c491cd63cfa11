"""``import geon`` is cheap and quiet, and the package says what it is."""

import logging
import re
import subprocess
import sys
from pathlib import Path

import geon

LOADED = """
import sys
import numpy
before = set(sys.modules)
import geon
print("\\n".join(sorted(name.partition(".")[0] for name in set(sys.modules) - before)))
"""
LAZY = (
    *("sympy", "mpmath", "cachetools", "safetensors", "ml_dtypes", "matplotlib", "scipy", "tqdm"),
    *("hashlib", "difflib"),  # OpenSSL, and what only messages need
)


def loaded(program: str) -> set[str]:
    """The top-level packages that a program in another process says it loaded."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return set(done.stdout.split())


def test_import_geon_loads_numpy_and_the_standard_library_alone() -> None:
    found = loaded(LOADED) - {"geon"}
    assert found <= set(sys.stdlib_module_names) | {"numpy"}
    assert not found & set(LAZY)


def test_building_and_deriving_load_nothing_more() -> None:
    program = LOADED.replace(
        "import geon\n",
        "import geon\n"
        "N = geon.Axis('N')\n"
        "x = geon.placeholder(N)\n"
        "y = geon.deriv(geon.sum(geon.tanh(x[1:]) * 2), x)\n",
    )
    assert not loaded(program) & set(LAZY)


def test_a_tensor_is_shown_in_a_notebook_that_has_shown_nothing_else() -> None:
    program = "import geon; print(geon.iota(geon.Axis('N', 3))._repr_html_())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "iota" in done.stdout, done.stderr


def test_logging_is_quiet_unless_asked_for() -> None:
    logger = logging.getLogger("geon")
    assert any(isinstance(handler, logging.NullHandler) for handler in logger.handlers)


def test_the_package_is_typed() -> None:
    assert (Path(geon.__file__).parent / "py.typed").is_file()


def test_the_version() -> None:
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?(\.?(a|b|rc|dev)\d+)?", geon.__version__)
    root = Path(__file__).parent.parent
    assert "geon.version.__version__" in (root / "setup.cfg").read_text()
    assert geon.__version__ in (root / "CHANGELOG.md").read_text()
